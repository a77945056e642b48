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
	"strings"
	"unicode/utf8"
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
	return fmt.Sprintf("kernelspec: %s: want a kernel that deltafin installed, found %s; choose another name with --name, or install --force to replace it", e.Dir, e.Reason)
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

// replaced is what Jupyter puts something else for, wherever in argv it stands.
var replaced = regexp.MustCompile(`\{(connection_file|prefix|resource_dir)\}`)

// JSON is the content of kernel.json.
func (s Spec) JSON() ([]byte, error) {
	if !filepath.IsAbs(s.Binary) {
		return nil, fmt.Errorf("kernelspec: binary %q: want an absolute path, since front ends start kernels in any folder", s.Binary)
	}
	for _, part := range append([]string{s.Binary}, s.Args...) {
		if !utf8.ValidString(part) || replaced.MatchString(part) {
			return nil, fmt.Errorf("kernelspec: %q: want UTF-8 without %s, which Jupyter replaces; give the file another name", part, replaced)
		}
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

// specFile is the file that makes a folder a kernel's.
const specFile = "kernel.json"

// Install writes the spec's folder into kernels, a folder such as UserDir gives, and
// returns its path. It replaces an earlier installation of ours file by file, each as
// a whole and kernel.json last: a front end sees the kernel before or after, never
// without a spec or with half of one. What else is in the folder stays. A folder of
// another kernel is a *ForeignError, or with force is removed first.
func Install(kernels string, s Spec, force bool) (string, error) {
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
	err = own(dir)
	switch {
	case err == nil, errors.As(err, new(*NotInstalledError)):
	case force && errors.As(err, new(*ForeignError)):
		if err := os.RemoveAll(dir); err != nil { // of a link, the link alone
			return "", fmt.Errorf("kernelspec: %w", err)
		}
	default:
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("kernelspec: %w", err)
	}
	for _, name := range Logos() {
		if err := replace(dir, name, logoFile(name)); err != nil {
			return "", err
		}
	}
	if err := replace(dir, specFile, spec); err != nil {
		return "", err
	}
	return dir, nil
}

// logoFile is the content of one of Logos.
func logoFile(name string) []byte {
	var size int
	if _, err := fmt.Sscanf(name, "logo-%dx", &size); err == nil {
		return PNG(size)
	}
	return SVG()
}

// fresh ends the names of files that are being written.
const fresh = "~new"

// replace writes a file of dir as a whole.
func replace(dir, name string, content []byte) (err error) {
	f, err := os.CreateTemp(dir, name+"*"+fresh)
	if err != nil {
		return fmt.Errorf("kernelspec: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("kernelspec: %w", err)
		}
	}()
	if _, err := f.Write(content); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return f.Chmod(0o644) },
		f.Sync,
		f.Close,
		func() error { return os.Rename(f.Name(), filepath.Join(dir, name)) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// LeftError says what Uninstall didn't remove, because Install hadn't written it.
type LeftError struct {
	Dir   string
	Names []string
}

func (e *LeftError) Error() string {
	return fmt.Sprintf("kernelspec: %s: removed the kernel, but want a folder with its files alone, found %s; they stay, for deltafin didn't write them", e.Dir, strings.Join(e.Names, ", "))
}

// Uninstall removes a kernel that Install wrote and returns the folder's path. name
// "" means "deltafin". What else is in the folder stays, and is a *LeftError.
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
	if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if err := os.Remove(dir); err != nil { // what it leads to belongs to whoever made the link
			return dir, fmt.Errorf("kernelspec: %w", err)
		}
		return dir, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return dir, fmt.Errorf("kernelspec: %w", err)
	}
	var left []string
	for _, e := range entries {
		if !ours(e) {
			left = append(left, e.Name())
		} else if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return dir, fmt.Errorf("kernelspec: %w", err)
		}
	}
	if len(left) > 0 {
		return dir, &LeftError{dir, left}
	}
	if err := os.Remove(dir); err != nil {
		return dir, fmt.Errorf("kernelspec: %w", err)
	}
	return dir, nil
}

// ours says whether an entry of a kernel's folder is a file that Install writes.
func ours(e fs.DirEntry) bool {
	name := e.Name()
	return !e.IsDir() && (name == specFile || slices.Contains(Logos(), name) || strings.HasSuffix(name, fresh))
}

// own says whether a folder is an installation of ours. One with nothing in it, or
// with what an Install left that was killed, is none at all.
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
	i, err := Read(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		entries, err := os.ReadDir(dir)
		if err != nil || !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !ours(e) }) {
			return &NotInstalledError{dir}
		}
		return &ForeignError{dir, "a folder without kernel.json"}
	case err != nil:
		return &ForeignError{dir, "a broken kernel.json"}
	case !i.Ours():
		return &ForeignError{dir, fmt.Sprintf("the kernel %q", i.DisplayName)}
	}
	return nil
}
