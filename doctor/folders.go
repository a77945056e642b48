package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deltafin/internal/disk"
	"deltafin/internal/units"
	"deltafin/kernelspec"
)

// leastSpace is what a folder's disk should have beside what is meant for it.
const leastSpace = 20 << 20

// state looks at the folder of the history. A kernel starts without it.
func (e Environment) state() []Finding {
	const do = "kernels keep their history in memory until then: make it writable, or set DELTAFIN_STATE to another folder"
	if e.StateErr != nil {
		return []Finding{warn("a folder for the history of cells", e.StateErr.Error(), "kernels keep their history in memory until then")}
	}
	dir := filepath.Join(e.State, "history")
	findings := folder(dir, 0, Warning, do)
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".jsonl") || !entry.Type().IsRegular() {
			continue
		}
		name := filepath.Join(dir, entry.Name())
		f, err := os.Open(name)
		if err != nil {
			return append(findings, warn("history that can be read", name+": "+reason(err), "make it readable, or remove it"))
		}
		f.Close()
	}
	return findings
}

// cache looks at where the embedded model is unpacked. A kernel starts without it.
func (e Environment) cache() []Finding {
	const do = "kernels unpack the embedded model into memory at each start until then: make room, or set DELTAFIN_STATE to another folder"
	if e.CacheErr != nil {
		return []Finding{warn("a folder for the unpacked model", e.CacheErr.Error(), "kernels unpack the embedded model into memory at each start until then")}
	}
	need := e.Unpacked
	if unpacked, _ := filepath.Glob(filepath.Join(globEscape(e.Cache), "models", "*", "model.safetensors")); len(unpacked) > 0 {
		need = 0
	}
	return folder(e.Cache, need, Warning, do)
}

// globEscape makes a path stand for itself in a pattern.
func globEscape(path string) string {
	if filepath.Separator == '\\' {
		return path // there is no escaping there
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// runtime looks at where Jupyter writes connection files; without it no kernel starts.
func (e Environment) runtime(pythons []python) []Finding {
	dir, err := kernelspec.RuntimeDir(e.System)
	if main := jupyterOf(pythons); main != nil && main.Runtime != "" {
		dir, err = main.Runtime, nil
	}
	const do = "Jupyter writes connection files there: make it writable, or set JUPYTER_RUNTIME_DIR to another folder"
	if err != nil {
		return []Finding{problem("a folder for connection files", err.Error(), "set JUPYTER_RUNTIME_DIR to one")}
	}
	findings := folder(dir, 0, Problem, do)
	if info, err := os.Stat(dir); err == nil && e.System.OS != "windows" && info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		findings = append(findings, warn("a folder that only you can write to", fmt.Sprintf("%s, %s", dir, info.Mode()), "chmod 700 it: who can write there can change where your notebooks connect to"))
	}
	return findings
}

// folder says whether a folder is there and can be written, or could be made, and has
// room for some bytes. It leaves nothing behind.
func folder(dir string, need int64, level Level, do string) []Finding {
	bad := func(want, found string) []Finding {
		return []Finding{{Level: level, Want: want, Found: found, Do: do}}
	}
	at, there := dir, true
	for {
		info, err := os.Stat(at)
		if err == nil && info.IsDir() {
			break
		}
		if err == nil {
			return bad("a folder "+dir, "a file at "+at)
		}
		if _, lerr := os.Lstat(at); lerr == nil {
			return bad("a folder "+dir, "a link to nowhere at "+at)
		}
		up := filepath.Dir(at)
		if errors.Is(err, fs.ErrPermission) || up == at {
			return bad("a folder "+dir, reason(err))
		}
		at, there = up, false
	}
	if err := probe(at, there); err != nil {
		return bad(fmt.Sprintf("to write in %s", dir), reason(err))
	}
	free, known := disk.Free(at)
	switch {
	case known && free < need+leastSpace:
		return bad(fmt.Sprintf("%s free for %s", units.Bytes(need+leastSpace), dir), units.Bytes(free))
	case !there:
		return []Finding{okf("%s will be made when it is needed", dir)}
	case known:
		return []Finding{okf("%s, %s free", dir, units.Bytes(free))}
	}
	return []Finding{okf("%s", dir)}
}

// probe writes a file there, or makes a folder, and removes it.
func probe(dir string, file bool) error {
	if !file {
		made, err := os.MkdirTemp(dir, ".deltafin-doctor-")
		if err == nil {
			err = os.Remove(made)
		}
		return err
	}
	f, err := os.CreateTemp(dir, ".deltafin-doctor-")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 4096))
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
}
