// Package models holds the models inside the binary: nano-k3, the default, and
// its two drafters, nano-dspark and nano-qwen. They were trained for this
// project. Unpack makes one an ordinary model directory, once; Memory gives the
// same files where no directory can be written.
//
// The files are committed compressed under packed/; go generate makes them and
// manifest.go from unpacked/MODEL, which is not committed.
package models

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

//go:generate go run ./pack -from unpacked

// File is one file of a model, uncompressed.
type File struct {
	Name   string
	Size   int64
	SHA256 string // lower-case hexadecimal
}

// Names returns the models, the default first.
func Names() []string {
	names := make([]string, len(manifest))
	for i, m := range manifest {
		names[i] = m.name
	}
	return names
}

// Files returns the files of a model; the error is an *UnknownError.
func Files(name string) ([]File, error) {
	for _, m := range manifest {
		if m.name == name {
			return m.files, nil
		}
	}
	return nil, &UnknownError{Name: name}
}

// model is a line of the manifest.
type model struct {
	name  string
	files []File
}

// Dir returns where Unpack puts a model: a directory named after the model and
// its content, so that two versions of deltafin share a cache.
func Dir(cacheDir, name string) (string, error) {
	files, err := Files(name)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%s %d %s\n", f.Name, f.Size, f.SHA256)
	}
	return filepath.Join(cacheDir, "models", name+"-"+hex.EncodeToString(h.Sum(nil))[:12]), nil
}

// Unpack makes the embedded model name ("nano-k3", "nano-dspark", "nano-qwen")
// an ordinary model directory under cacheDir and returns that directory.
//
// It writes only the files that are absent or not what they should be; later calls
// find all of them and only ask their sizes and times. A file arrives by rename,
// after its SHA-256 was checked and its bytes were synced, so it is whole however
// the process that wrote it ended, and any number of processes may unpack at once.
// It carries a time of modification that says so: whoever writes to it later
// changes that, and the next call sums the file again. Replacing a file leaves those
// who have it mapped with the old bytes.
//
// The error is an *UnknownError, a *NotEmbeddedError, a *DamagedError, or a
// *CacheError where cacheDir can't be written or is "": Memory is the way then.
func Unpack(cacheDir, name string) (dir string, err error) {
	dir, err = Dir(cacheDir, name)
	if err != nil {
		return "", err
	}
	if cacheDir == "" {
		return "", &CacheError{Dir: "a cache directory", Err: errors.New("none is known")}
	}
	files, _ := Files(name)
	made := false
	for _, f := range files {
		target := filepath.Join(dir, f.Name)
		if intact(target, f) {
			continue
		}
		if !made {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return "", &CacheError{Dir: dir, Err: err}
			}
			clean(dir)
			made = true
		}
		if err := install(dir, name, f); err != nil && !intact(target, f) {
			return "", err // else another process was quicker, and holds the file open
		}
	}
	return dir, nil
}

// unpacked is the time of modification of a file that nobody wrote to since Unpack.
var unpacked = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// intact reports whether f is there, whole and unchanged. A file of another time,
// which may be a mere copy, is summed, and gets the time back if it is right.
func intact(file string, f File) bool {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() != f.Size {
		return false
	}
	if info.ModTime().Equal(unpacked) {
		return true
	}
	r, err := os.Open(file)
	if err != nil {
		return false
	}
	defer r.Close()
	var sum checksum
	sum.Hash = sha256.New()
	if _, err := io.Copy(&sum, r); err != nil || sum.check(file, f) != nil {
		return false
	}
	os.Chtimes(file, unpacked, unpacked) // if it can't be, the next call sums again
	return true
}

// partial begins the names of files that are still being written.
const partial = ".partial-"

// clean removes what a killed process left half written an hour ago or earlier.
func clean(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), partial) && time.Since(info.ModTime()) > time.Hour {
			os.Remove(filepath.Join(dir, e.Name())) // if it stays, it costs space only
		}
	}
}

// install writes one file of a model and renames it into place. The directory isn't
// synced: what a power cut takes from a cache, the next start unpacks again.
func install(dir, name string, f File) (err error) {
	tmp, err := os.CreateTemp(dir, partial+"*")
	if err != nil {
		return &CacheError{Dir: dir, Err: err}
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
		}
	}()
	if err := expand(tmp, name, f); err != nil {
		var write *fs.PathError
		if errors.As(err, &write) {
			return &CacheError{Dir: dir, Err: err}
		}
		return err
	}
	for _, step := range []func() error{
		func() error { return tmp.Chmod(0o644) },
		tmp.Sync,
		tmp.Close,
		func() error { return os.Rename(tmp.Name(), filepath.Join(dir, f.Name)) },
		// Last: an old time would make another process's clean take the file for litter.
		func() error { return os.Chtimes(filepath.Join(dir, f.Name), unpacked, unpacked) },
	} {
		if err := step(); err != nil {
			return &CacheError{Dir: dir, Err: err}
		}
	}
	return nil
}

// expand writes the uncompressed bytes of a file to w, and fails if they are
// not what the manifest says.
func expand(w io.Writer, name string, f File) error {
	packed, err := embedded.Open("packed/" + name + "/" + f.Name + ".zst")
	if err != nil {
		return &NotEmbeddedError{Name: name}
	}
	defer packed.Close()
	// One goroutine: a start shares the machine with others.
	z, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return &DamagedError{File: name + "/" + f.Name, Want: "zstd", Got: err.Error()}
	}
	defer z.Close()
	var sum checksum
	sum.Hash = sha256.New()
	_, err = io.Copy(io.MultiWriter(w, &sum), z)
	var write *fs.PathError
	switch {
	case errors.As(err, &write):
		return err
	case err != nil:
		return &DamagedError{File: name + "/" + f.Name, Want: "zstd", Got: err.Error()}
	}
	return sum.check(name+"/"+f.Name, f)
}

// checksum counts and sums what is written to it.
type checksum struct {
	hash.Hash
	n int64
}

func (c *checksum) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return c.Hash.Write(p)
}

func (c *checksum) check(file string, f File) error {
	if c.n != f.Size {
		return &DamagedError{File: file, Want: fmt.Sprintf("%d bytes", f.Size), Got: fmt.Sprintf("%d bytes", c.n)}
	}
	if got := hex.EncodeToString(c.Sum(nil)); got != f.SHA256 {
		return &DamagedError{File: file, Want: "SHA-256 " + f.SHA256, Got: got}
	}
	return nil
}

// Memory unpacks a model into memory: nano-k3 takes 50 MB there. Its files have
// a method Bytes() []byte that lends their content without a copy; the content
// must not be changed. The error is an *UnknownError, a *NotEmbeddedError or a
// *DamagedError.
func Memory(name string) (fs.FS, error) {
	files, err := Files(name)
	if err != nil {
		return nil, err
	}
	m := memory{}
	for _, f := range files {
		b := bytes.NewBuffer(make([]byte, 0, f.Size+1))
		if err := expand(b, name, f); err != nil {
			return nil, err
		}
		m[f.Name] = b.Bytes()
	}
	return m, nil
}

// Open makes a model's files available: unpacked under cacheDir if that can be
// written, otherwise in memory. dir is the directory, or "" in memory.
func Open(cacheDir, name string) (files fs.FS, dir string, err error) {
	dir, err = Unpack(cacheDir, name)
	var cache *CacheError
	if errors.As(err, &cache) {
		files, err = Memory(name)
		return files, "", err
	}
	if err != nil {
		return nil, "", err
	}
	return os.DirFS(dir), dir, nil
}

// reason is an error's text without the path, which the message already gives.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// UnknownError reports a name that is no embedded model's.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("models: want one of %s, got %q; give an embedded model or a directory", strings.Join(Names(), ", "), e.Name)
}

// NotEmbeddedError reports a binary that was built without the models.
type NotEmbeddedError struct{ Name string }

func (e *NotEmbeddedError) Error() string {
	return fmt.Sprintf("models: want %s in this binary, got one built with -tags nomodels; build without the tag, or give a model's directory", e.Name)
}

// CacheError reports a cache directory that can't be written. Memory works
// without one.
type CacheError struct {
	Dir string
	Err error
}

func (e *CacheError) Error() string {
	return fmt.Sprintf("models: want to write %s, got: %s; make it writable, free space there, or choose another cache directory", e.Dir, reason(e.Err))
}

func (e *CacheError) Unwrap() error { return e.Err }

// DamagedError reports an embedded file that is not the one that the manifest
// describes.
type DamagedError struct{ File, Want, Got string }

func (e *DamagedError) Error() string {
	return fmt.Sprintf("models: %s: want %s, got %s; the binary is damaged, install it again", e.File, e.Want, e.Got)
}
