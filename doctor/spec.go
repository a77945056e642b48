package doctor

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deltafin/kernelspec"
)

// spec is a kernel's folder where a Jupyter may look.
type spec struct {
	kernelspec.Installed
	err      error // of reading it
	searched bool  // by the Jupyter that is on the PATH
}

// meant says whether a folder is a kernel of ours, even if broken.
func (s spec) meant() bool {
	return s.err == nil && s.Ours() || (s.err != nil || len(s.Argv) == 0) && strings.Contains(s.Name(), "deltafin")
}

// places are the folders of kernels: as the Jupyter on the PATH has them, and then
// those that only another one would look into.
func (e Environment) places(pythons []python) (places []string, searched int) {
	var prefixes []string
	active := false
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if prefix := e.System.Getenv(name); prefix != "" {
			prefixes, active = append(prefixes, prefix), true
		}
	}
	for _, p := range pythons {
		if p.Prefix != "" {
			prefixes = append(prefixes, p.Prefix)
		}
	}
	rules := kernelspec.Places(e.System, prefixes, active)
	if main := jupyterOf(pythons); main != nil {
		places = slices.Clone(main.Kernels)
		searched = len(places)
		for _, dir := range rules {
			if !slices.Contains(places, dir) {
				places = append(places, dir)
			}
		}
		return places, searched
	}
	return rules, len(rules)
}

// specs reads every kernel's folder of the places, in their order.
func specs(places []string, searched int) (all []spec) {
	for i, place := range places {
		entries, _ := os.ReadDir(place)
		for _, entry := range entries {
			dir := filepath.Join(place, entry.Name())
			if _, err := os.Stat(filepath.Join(dir, "kernel.json")); err != nil {
				continue // Jupyter doesn't see it either
			}
			installed, err := kernelspec.Read(dir)
			all = append(all, spec{installed, err, i < searched})
		}
	}
	return all
}

// kernelspecs looks at every kernel of ours, and at what hides it.
func (e Environment) kernelspecs(ctx context.Context, pythons []python) []Finding {
	places, searched := e.places(pythons)
	all := specs(places, searched)
	var findings []Finding
	ours, visible := 0, 0
	winners := map[string]spec{}
	for _, s := range all {
		if s.meant() {
			ours++
		}
		first, taken := winners[s.Name()]
		switch {
		case !s.searched:
			if s.meant() {
				findings = append(findings, okf("%s: the Jupyter on the PATH doesn't look there, that of another environment may", s.Dir))
			}
		case !taken:
			winners[s.Name()] = s
			if s.meant() {
				visible++
				findings = append(findings, e.spec(ctx, s)...)
			}
		case sameFolder(first.Dir, s.Dir):
		case first.meant():
			if s.meant() {
				findings = append(findings, warn("one kernel named "+s.Name(), fmt.Sprintf("that %s, which Jupyter takes, hides %s", first.Dir, s.Dir), "remove the one that you don't want: deltafin uninstall, with the options that it was installed with"))
			}
		case s.meant():
			findings = append(findings, problem("the kernel "+s.Name()+" of "+s.Dir, "that Jupyter takes another program's, "+first.Dir, "give one of them another name: deltafin install --name"))
		}
	}
	switch {
	case ours == 0:
		findings = append(findings, problem("a kernel of deltafin where Jupyter looks", "none in "+strings.Join(places, ", "), "run deltafin install"))
	case visible == 0:
		findings = append(findings, problem("a kernel of deltafin where the Jupyter on the PATH looks", "none in "+strings.Join(places[:searched], ", "), "run deltafin install, or start the Jupyter of the environment that has it"))
	}
	return findings
}

func sameFolder(a, b string) bool {
	x, err := os.Stat(a)
	y, yerr := os.Stat(b)
	return err == nil && yerr == nil && os.SameFile(x, y)
}

// spec looks at one kernel that Jupyter would take.
func (e Environment) spec(ctx context.Context, s spec) []Finding {
	file := filepath.Join(s.Dir, "kernel.json")
	again := "install it again: deltafin install --force, with the options that it was installed with"
	switch {
	case s.err != nil:
		return []Finding{problem(file+" in JSON", rootCause(s.err), again)}
	case len(s.Argv) == 0:
		return []Finding{problem(file+" with the command in argv", "none", again)}
	case !s.Ours():
		return []Finding{problem(file+" with deltafin's command", strings.Join(s.Argv, " "), again)}
	}
	findings := e.starts(ctx, s)
	if s.InterruptMode != "message" {
		found := s.InterruptMode
		if found == "" {
			found = "none, which means signal"
		}
		findings = append(findings, warn(file+" with the interrupt_mode message", found, again))
	}
	for _, name := range kernelspec.Logos() {
		if _, err := os.Stat(filepath.Join(s.Dir, name)); err != nil {
			findings = append(findings, warn(filepath.Join(s.Dir, name), reason(err), "front ends show no logo: "+again))
			break
		}
	}
	if model := s.Model(); model != "" {
		if _, _, err := e.Inspect(model); err != nil {
			findings = append(findings, problem("the model that "+file+" names", err.Error(), "bring it back, or install with another --model"))
		}
	}
	if len(findings) == 0 {
		findings = append(findings, okf("%s, %s", s.Name(), s.Dir))
	}
	return findings
}

// starts looks at the program that a kernel's argv starts.
func (e Environment) starts(ctx context.Context, s spec) []Finding {
	program := s.Argv[0]
	name := filepath.Join(s.Dir, "kernel.json")
	const again = "run deltafin install with the program that you want, and the options that it was installed with"
	if !filepath.IsAbs(program) {
		return []Finding{warn(name+" with an absolute path", program, again)}
	}
	info, err := os.Stat(program)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Finding{problem("the program that "+name+" starts", "nothing at "+program+": it was moved or deleted", again)}
	case err != nil:
		return []Finding{problem("the program that "+name+" starts", program+": "+reason(err), again)}
	case !info.Mode().IsRegular() || e.System.OS != "windows" && info.Mode().Perm()&0o111 == 0:
		return []Finding{problem("a program at "+program, "one that can't be run, "+info.Mode().String(), "chmod +x it, or "+again)}
	}
	if own, err := os.Stat(e.Binary); err == nil && os.SameFile(own, info) || sameContent(program, e.Binary) {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, err := e.Output(limited, program, "version", "--json")
	var other struct{ Version, Commit string }
	if err == nil {
		err = json.Unmarshal(out, &other)
	}
	if err != nil {
		return []Finding{problem("deltafin at "+program, failure(err), again)}
	}
	found := "another build, " + other.Version
	if other.Commit != "" {
		found += ", commit " + other.Commit[:min(12, len(other.Commit))]
	}
	return []Finding{warn(fmt.Sprintf("this program (%s, %s) started by %s", e.Version, e.Binary, name), found+" at "+program, again)}
}

// sameContent says whether two files have the same bytes.
func sameContent(a, b string) bool {
	x, xerr := sum(a)
	y, yerr := sum(b)
	return xerr == nil && yerr == nil && x == y
}

func sum(name string) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	h.Sum(sum[:0])
	return sum, err
}

// rootCause is the innermost error's text.
func rootCause(err error) string {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err.Error()
}
