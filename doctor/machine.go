package doctor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"time"

	"deltafin/internal/units"
)

// binary looks at this program's file and at the one that a shell would start.
func (e Environment) binary() []Finding {
	own, err := os.Stat(e.Binary)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Finding{problem("this program at "+e.Binary, "that it was moved or deleted since it started",
			"kernels can't start their cells without it: start the program from where it is now, and run deltafin install there")}
	case err != nil:
		return []Finding{problem("this program at "+e.Binary, reason(err), "make it readable")}
	}
	findings := []Finding{okf("deltafin %s, %s", e.Version, e.Binary)}
	if path, err := e.LookPath("deltafin"); err == nil {
		if other, err := os.Stat(path); err == nil && !os.SameFile(own, other) && !sameContent(path, e.Binary) {
			findings = append(findings, warn("this program as deltafin on the PATH", "another at "+path, "put the folder of the one that you want first on the PATH"))
		}
	}
	return findings
}

// memory compares what there is with what the model needs.
func (e Environment) memory() []Finding {
	if e.Memory == 0 {
		return []Finding{okf("the system doesn't tell how much there is")}
	}
	dir, need, err := e.Inspect(e.Model)
	if err != nil {
		return []Finding{problem("the model that a kernel takes", err.Error(), "set DELTAFIN_MODEL to a snapshot, or unset it for the embedded model")}
	}
	if dir == "" {
		dir = "the embedded model, unpacked into memory"
	}
	want := fmt.Sprintf("%s for %s", units.Bytes(need), dir)
	switch {
	case need > e.Memory:
		return []Finding{problem(want, fmt.Sprintf("%s in all", units.Bytes(e.Memory)), "choose a smaller model, or raise the limit of memory")}
	case e.MemoryAvailable > 0 && need > e.MemoryAvailable:
		return []Finding{warn(want, fmt.Sprintf("%s free of %s", units.Bytes(e.MemoryAvailable), units.Bytes(e.Memory)), "end other programs: the model will be read from disk again and again")}
	case e.MemoryAvailable > 0:
		return []Finding{okf("%s free of %s, and the model has %s", units.Bytes(e.MemoryAvailable), units.Bytes(e.Memory), units.Bytes(need))}
	}
	return []Finding{okf("%s, and the model has %s", units.Bytes(e.Memory), units.Bytes(need))}
}

// fewDescriptors is what a kernel with a few front ends gets along with.
const fewDescriptors = 256

// descriptors judges how many files a process may have open; 0 is no limit.
func (e Environment) descriptors(limit uint64) []Finding {
	switch {
	case limit == 0:
		return []Finding{okf("the system sets no limit")}
	case limit < fewDescriptors:
		return []Finding{warn(fmt.Sprintf("%d open files or more (ulimit -n)", fewDescriptors), fmt.Sprint(limit), "raise it with ulimit -n 1024 before Jupyter starts")}
	}
	return []Finding{okf("%d open files allowed", limit)}
}

// loopback sends a byte through a socket of 127.0.0.1, as Jupyter reaches kernels.
func (e Environment) loopback() []Finding {
	const want = "sockets that can be bound and reached on 127.0.0.1"
	const do = "bring the interface lo up (ip link set lo up), or let the firewall pass 127.0.0.1"
	l, err := e.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return []Finding{problem(want, reason(err), do)}
	}
	defer l.Close()
	sent := make(chan error, 1)
	go func() {
		c, err := net.DialTimeout("tcp", l.Addr().String(), 5*time.Second)
		if err == nil {
			_, err = c.Write([]byte{1})
			c.Close()
		}
		if err != nil {
			l.Close() // ends Accept
		}
		sent <- err
	}()
	c, err := l.Accept()
	if err == nil {
		c.SetDeadline(time.Now().Add(5 * time.Second))
		_, err = io.ReadFull(c, make([]byte, 1))
		c.Close()
	}
	if serr := <-sent; serr != nil {
		err = serr
	}
	if err != nil {
		return []Finding{problem(want, reason(err), do)}
	}
	return []Finding{okf("127.0.0.1 can be bound and reached")}
}

// reason is an error without the path that the finding names already.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
