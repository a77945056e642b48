// Package kernelspec installs the folder from which Jupyter learns of a kernel:
// kernel.json, which says how to start it, and its logos. It reads neither the
// environment nor the system: the caller says where.
package kernelspec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Spec describes the kernel to install.
type Spec struct {
	Name        string            // of the folder, by which front ends ask for the kernel; "" means "deltafin"
	DisplayName string            // what front ends show; "" means "Go (deltafin)"
	Binary      string            // absolute path of the executable
	Args        []string          // options of its kernel command
	Env         map[string]string // set for the kernel's process
}

const (
	defaultName    = "deltafin"
	defaultDisplay = "Go (deltafin)"
	protocol       = "5.5"
)

// NameError says that a name is none that Jupyter takes.
type NameError struct{ Name string }

func (e *NameError) Error() string {
	return fmt.Sprintf("kernelspec: name %q: want 1 to 100 of a-z, 0-9, '.', '-' and '_', with a letter or digit first; choose another with --name", e.Name)
}

// NotInstalledError says that there is no such kernel to remove.
type NotInstalledError struct{ Dir string }

func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("kernelspec: %s: want an installed kernel, found none; jupyter kernelspec list shows where kernels are", e.Dir)
}

// ForeignError says that a folder belongs to another kernel, which is not touched.
type ForeignError struct {
	Dir    string
	Reason string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("kernelspec: %s: want a kernel that deltafin installed, found %s; choose another name with --name", e.Dir, e.Reason)
}

// validName is what CheckName takes: lower case, because Jupyter lowers names.
var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,99}$`)

// CheckName returns a *NameError for a name that Jupyter doesn't take.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return &NameError{name}
	}
	return nil
}

// file is kernel.json.
type file struct {
	Argv          []string          `json:"argv"`
	DisplayName   string            `json:"display_name"`
	Language      string            `json:"language"`
	InterruptMode string            `json:"interrupt_mode"`
	Protocol      string            `json:"kernel_protocol_version"`
	Env           map[string]string `json:"env,omitempty"`
	Metadata      map[string]any    `json:"metadata"`
}

// command is what every installed kernel's argv has after the binary. Front ends put
// the path in for the braces.
var command = []string{"kernel", "--connection-file", "{connection_file}"}

// JSON is the content of kernel.json.
func (s Spec) JSON() ([]byte, error) {
	if !filepath.IsAbs(s.Binary) {
		return nil, fmt.Errorf("kernelspec: binary %q: want an absolute path, since front ends start kernels in any folder", s.Binary)
	}
	f := file{
		Argv:          slices.Concat([]string{s.Binary}, command, s.Args),
		DisplayName:   s.DisplayName,
		Language:      "go",
		InterruptMode: "message",
		Protocol:      protocol,
		Env:           s.Env,
		Metadata:      map[string]any{"debugger": false},
	}
	if f.DisplayName == "" {
		f.DisplayName = defaultDisplay
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// Install writes the spec's folder into kernels, a folder such as UserDir gives, and
// returns its path. It replaces an earlier installation of ours, as a whole: a front
// end never sees half of one. A folder of another kernel is a *ForeignError.
func Install(kernels string, s Spec) (string, error) {
	if s.Name == "" {
		s.Name = defaultName
	}
	if err := CheckName(s.Name); err != nil {
		return "", err
	}
	spec, err := s.JSON()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(kernels, s.Name)
	if err := own(dir); err != nil && !errors.As(err, new(*NotInstalledError)) {
		return "", err
	}
	if err := os.MkdirAll(kernels, 0o755); err != nil {
		return "", fmt.Errorf("kernelspec: %w", err)
	}
	// No kernel's name has a tilde, so front ends don't look into these two.
	fresh, err := os.MkdirTemp(kernels, "~"+s.Name+"-")
	if err != nil {
		return "", fmt.Errorf("kernelspec: %w", err)
	}
	defer os.RemoveAll(fresh)
	if err := os.Chmod(fresh, 0o755); err != nil {
		return "", fmt.Errorf("kernelspec: %w", err)
	}
	files := map[string][]byte{"kernel.json": spec, "logo-svg.svg": SVG()}
	for _, size := range []int{32, 64} {
		files[fmt.Sprintf("logo-%dx%d.png", size, size)] = PNG(size)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(fresh, name), content, 0o644); err != nil {
			return "", fmt.Errorf("kernelspec: %w", err)
		}
	}
	if _, err := os.Lstat(dir); err == nil {
		old := fresh + "~old"
		if err := os.Rename(dir, old); err != nil {
			return "", fmt.Errorf("kernelspec: %w", err)
		}
		if err := os.Rename(fresh, dir); err != nil {
			return "", errors.Join(fmt.Errorf("kernelspec: %w", err), os.Rename(old, dir))
		}
		if err := os.RemoveAll(old); err != nil {
			return dir, fmt.Errorf("kernelspec: installed, but the earlier one is left over: %w", err)
		}
		return dir, nil
	}
	if err := os.Rename(fresh, dir); err != nil {
		return "", fmt.Errorf("kernelspec: %w", err)
	}
	return dir, nil
}

// Uninstall removes a kernel that Install wrote and returns the folder's path. name
// "" means "deltafin".
func Uninstall(kernels, name string) (string, error) {
	if name == "" {
		name = defaultName
	}
	if err := CheckName(name); err != nil {
		return "", err
	}
	dir := filepath.Join(kernels, name)
	if err := own(dir); err != nil {
		return dir, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return dir, fmt.Errorf("kernelspec: %w", err)
	}
	return dir, nil
}

// own says whether a folder is an installation of ours.
func own(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &NotInstalledError{dir}
	case err != nil:
		return fmt.Errorf("kernelspec: %w", err)
	case !info.IsDir():
		return &ForeignError{dir, "a file"}
	}
	b, err := os.ReadFile(filepath.Join(dir, "kernel.json"))
	if err != nil {
		return &ForeignError{dir, "a folder without a readable kernel.json"}
	}
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return &ForeignError{dir, "a broken kernel.json"}
	}
	if len(f.Argv) < 1+len(command) || !slices.Equal(f.Argv[1:1+len(command)], command) {
		return &ForeignError{dir, fmt.Sprintf("the kernel %q", f.DisplayName)}
	}
	return nil
}
