package kernelspec

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// System is what the places of kernels depend on.
type System struct {
	OS     string                   // runtime.GOOS
	Home   string                   // the user's home folder
	Getenv func(name string) string // os.Getenv
}

// PlaceError says why a place isn't known.
type PlaceError struct{ Want, Do string }

func (e *PlaceError) Error() string {
	return fmt.Sprintf("kernelspec: want %s, found none; %s", e.Want, e.Do)
}

// UserDir is the folder of the user's kernels, where every Jupyter of the user
// looks. It follows jupyter_core's rules: JUPYTER_DATA_DIR, else the system's place.
func UserDir(s System) (string, error) {
	data := s.Getenv("JUPYTER_DATA_DIR")
	if data == "" {
		var err error
		if data, err = dataDir(s); err != nil {
			return "", err
		}
	}
	return filepath.Join(data, "kernels"), nil
}

func dataDir(s System) (string, error) {
	platform := truthy(s.Getenv("JUPYTER_PLATFORM_DIRS"))
	switch s.OS {
	case "windows":
		base, name := s.Getenv("APPDATA"), "jupyter"
		if platform {
			base, name = s.Getenv("LOCALAPPDATA"), "Jupyter"
		}
		if base == "" {
			return "", &PlaceError{"APPDATA or LOCALAPPDATA in the environment", "set JUPYTER_DATA_DIR, or give --prefix"}
		}
		return filepath.Join(base, name), nil
	case "darwin":
		if s.Home == "" {
			break
		}
		if platform {
			return filepath.Join(s.Home, "Library", "Application Support", "Jupyter"), nil
		}
		return filepath.Join(s.Home, "Library", "Jupyter"), nil
	default:
		if xdg := s.Getenv("XDG_DATA_HOME"); xdg != "" {
			return filepath.Join(xdg, "jupyter"), nil
		}
		if s.Home != "" {
			return filepath.Join(s.Home, ".local", "share", "jupyter"), nil
		}
	}
	return "", &PlaceError{"the user's home folder", "set JUPYTER_DATA_DIR, or give --prefix"}
}

// truthy is how Jupyter reads an environment variable that is on or off.
func truthy(v string) bool {
	switch strings.ToLower(v) {
	case "", "0", "no", "n", "false", "off":
		return false
	}
	return true
}

// PrefixDir is the folder of the kernels of one Python installation or environment:
// what Python calls sys.prefix, or any prefix that JUPYTER_PATH names the
// share/jupyter of.
func PrefixDir(prefix string) string {
	return filepath.Join(prefix, "share", "jupyter", "kernels")
}

// SysPrefix finds sys.prefix of the active Python environment, from VIRTUAL_ENV or
// CONDA_PREFIX, or by asking python: a function that runs a Python of the search
// path with the given program and returns what it prints. It may be nil.
func SysPrefix(s System, python func(program string) (string, error)) (string, error) {
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if prefix := s.Getenv(name); prefix != "" {
			return prefix, nil
		}
	}
	if python != nil {
		out, err := python("import sys; sys.stdout.write(sys.prefix)")
		if prefix := strings.TrimSpace(out); err == nil && filepath.IsAbs(prefix) {
			return prefix, nil
		}
	}
	return "", &PlaceError{"an active Python environment (VIRTUAL_ENV, CONDA_PREFIX or python3)", "activate one, or give --prefix"}
}

// Places are the folders of kernels in the order in which a Jupyter looks, by
// jupyter_core's rules: the first of two kernels of one name wins. prefixes are those
// of the Python environments, the active one first; active says that there is one,
// which then goes before the user's folder.
func Places(s System, prefixes []string, active bool) []string {
	var data, env []string
	for _, dir := range filepath.SplitList(s.Getenv("JUPYTER_PATH")) {
		if dir != "" {
			data = append(data, dir)
		}
	}
	for _, prefix := range prefixes {
		env = append(env, filepath.Join(prefix, "share", "jupyter"))
	}
	if prefer := s.Getenv("JUPYTER_PREFER_ENV_PATH"); prefer != "" {
		active = truthy(prefer)
	}
	if active {
		data = append(data, env...)
	}
	if user, err := UserDir(s); err == nil {
		data = append(data, filepath.Dir(user))
	}
	data = append(data, env...)
	if s.OS != "windows" {
		data = append(data, "/usr/local/share/jupyter", "/usr/share/jupyter")
	}
	var places []string
	for _, dir := range data {
		if kernels := filepath.Join(dir, "kernels"); !slices.Contains(places, kernels) {
			places = append(places, kernels)
		}
	}
	return places
}

// RuntimeDir is where Jupyter writes connection files.
func RuntimeDir(s System) (string, error) {
	if dir := s.Getenv("JUPYTER_RUNTIME_DIR"); dir != "" {
		return dir, nil
	}
	user, err := UserDir(s)
	return filepath.Join(filepath.Dir(user), "runtime"), err
}
