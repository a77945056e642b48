// Package checkpoint reads and writes tensors in safetensors files: one file,
// or the shards of a model directory with their index.
//
// A file is an 8-byte little-endian length, a JSON header of that length that
// gives each tensor's dtype, shape and place, and the tensors' bytes, back to
// back. Files come from outside: every length, offset and shape is checked
// before it is used, and what is wrong with a file is one *FileError or
// *TensorError. Tensors are views of read-only mapped memory, so opening a
// checkpoint reads its headers only.
package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"
	"unsafe"
)

// The two files that begin a model directory.
const (
	SingleFile = "model.safetensors"
	IndexFile  = "model.safetensors.index.json"
)

// DType names an element type as safetensors does: "BF16", "F32", "U8", ….
type DType string

// Bits returns the size of one element, or 0 if d is not a safetensors dtype.
func (d DType) Bits() int {
	switch d {
	case "F4":
		return 4
	case "F6_E2M3", "F6_E3M2":
		return 6
	case "BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ":
		return 8
	case "U16", "I16", "F16", "BF16":
		return 16
	case "U32", "I32", "F32":
		return 32
	case "U64", "I64", "F64", "C64":
		return 64
	}
	return 0
}

// Size returns the bytes that a tensor of this dtype and shape occupies. ok is
// false if d is unknown, a dimension is negative, the product overflows, or
// the elements do not fill whole bytes.
func (d DType) Size(shape []int) (n int64, ok bool) {
	total := uint64(d.Bits())
	if total == 0 {
		return 0, false
	}
	for _, dim := range shape {
		hi, lo := bits.Mul64(total, uint64(dim))
		if dim < 0 || hi != 0 {
			return 0, false
		}
		total = lo
	}
	return int64(total / 8), total%8 == 0
}

// Tensor is a view of one tensor: row-major, little-endian, first byte at
// Offset of File. Data of an opened tensor is read-only memory (a write to it
// faults) of any alignment, valid until the snapshot's Close. Shape is shared:
// leave it as it is.
type Tensor struct {
	Name   string
	File   string
	Offset int64
	DType  DType
	Shape  []int
	Data   []byte
}

// Snapshot is an opened checkpoint. It does not change after Open, so its
// methods may be called from any goroutine, except that Close must come after
// the last use of any tensor.
type Snapshot struct {
	where    string // the directory or file, for errors
	files    []file
	tensors  []Tensor // in file order
	byName   map[string]int32
	metadata map[string]string
}

// file is one mapped safetensors file.
type file struct {
	name    string // as errors give it
	path    string // on disk, or "" where the bytes are memory from elsewhere
	data    []byte
	modTime time.Time
	release func() error
}

// Open opens the checkpoint in a directory: model.safetensors where there is
// one, otherwise the shards that model.safetensors.index.json names.
//
// The files are mapped. Do not truncate them while the snapshot is open: on
// Linux and macOS a read beyond a mapped file's new end is a fault that ends
// the process unless the reading goroutine prepared for it (see Fault);
// Windows refuses the truncation. Replacing or deleting a file is harmless,
// the mapping keeps the old one.
func Open(dir string) (*Snapshot, error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, &FileError{File: dir, Want: "a model directory", Got: reason(err), Fix: "give the directory of a model", Err: err}
	case !info.IsDir():
		return nil, &FileError{File: dir, Want: "a model directory", Got: "a file", Fix: "give the directory that holds it"}
	}
	return open(dir, dir, os.DirFS(dir))
}

// OpenFS is Open for any file system. A file that is an *os.File is mapped; one
// with a method Bytes() []byte lends its bytes until the snapshot's Close; any
// other is read into memory.
func OpenFS(fsys fs.FS) (*Snapshot, error) { return open("", "", fsys) }

// OpenFile opens one safetensors file, whatever its name.
func OpenFile(name string) (*Snapshot, error) {
	dir, base := filepath.Split(name)
	s := &Snapshot{where: name}
	if err := s.add(dir, os.DirFS(cmp.Or(dir, ".")), base, nil); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// open opens the checkpoint in fsys. dir is fsys's directory on disk or "".
func open(where, dir string, fsys fs.FS) (*Snapshot, error) {
	s := &Snapshot{where: where}
	if err := s.load(dir, fsys); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Snapshot) load(dir string, fsys fs.FS) error {
	if _, err := fs.Stat(fsys, SingleFile); !errors.Is(err, fs.ErrNotExist) {
		return s.add(dir, fsys, SingleFile, nil)
	}
	if _, err := fs.Stat(fsys, IndexFile); !errors.Is(err, fs.ErrNotExist) {
		return s.addShards(dir, fsys)
	}
	got := "neither"
	if found, _ := fs.Glob(fsys, "*.safetensors"); len(found) > 0 {
		got = fmt.Sprintf("%d other safetensors files, beginning with %s", len(found), show(found[0]))
	}
	return &FileError{File: cmp.Or(s.where, "."), Want: SingleFile + " or " + IndexFile, Got: got,
		Fix: "give the directory of a model, completely downloaded"}
}

// addShards opens the files that the index names. Index and shards must agree
// on where every tensor is.
func (s *Snapshot) addShards(dir string, fsys fs.FS) error {
	f, err := acquire(dir, fsys, IndexFile)
	if err != nil {
		return err
	}
	where, err := parseIndex(f.name, f.data)
	if e := f.release(); err == nil && e != nil {
		err = &FileError{File: f.name, Want: "the file to close", Got: reason(e), Err: e}
	}
	if err != nil {
		return err
	}
	s.tensors = make([]Tensor, 0, len(where))
	s.byName = make(map[string]int32, len(where))
	shards := make(map[string]bool)
	for _, shard := range where {
		shards[shard] = true
	}
	names := make([]string, 0, len(shards))
	for shard := range shards {
		names = append(names, shard)
	}
	slices.Sort(names)
	for _, shard := range names {
		if !fs.ValidPath(shard) || shard == "." || !filepath.IsLocal(shard) {
			return &FileError{File: f.name, Want: "shards beside the index", Got: "a shard at " + strconv.Quote(clip(shard))}
		}
		if err := s.add(dir, fsys, shard, where); err != nil {
			return err
		}
	}
	if len(s.tensors) == len(where) { // each is where the index says
		return nil
	}
	missing := ""
	for name := range where {
		if _, ok := s.byName[name]; !ok && (missing == "" || name < missing) {
			missing = name
		}
	}
	return &TensorError{Tensor: missing, File: join(dir, where[missing]), Want: "the tensor that the index puts there", Got: "no such tensor"}
}

// add opens one safetensors file and takes its tensors. where is the index, or
// nil where there is none.
func (s *Snapshot) add(dir string, fsys fs.FS, name string, where map[string]string) error {
	f, err := acquire(dir, fsys, name)
	if err != nil {
		return err
	}
	s.files = append(s.files, f)
	tensors, metadata, err := parseFile(f.name, f.data)
	if err != nil {
		return err
	}
	if s.byName == nil {
		s.byName = make(map[string]int32, len(tensors))
	}
	s.tensors = slices.Grow(s.tensors, len(tensors))
	for _, t := range tensors {
		if where != nil && where[t.Name] != name {
			want := "no tensor that the index does not name"
			if other, ok := where[t.Name]; ok {
				want = "it in " + show(other) + ", where the index puts it"
			}
			return &TensorError{Tensor: t.Name, File: f.name, Want: want, Got: "it here"}
		}
		if _, ok := s.byName[t.Name]; ok {
			return &TensorError{Tensor: t.Name, File: f.name, Want: "each tensor once", Got: "it twice"}
		}
		s.byName[t.Name] = int32(len(s.tensors))
		s.tensors = append(s.tensors, t)
	}
	for k, v := range metadata {
		if s.metadata == nil {
			s.metadata = map[string]string{}
		}
		if _, ok := s.metadata[k]; !ok {
			s.metadata[k] = v
		}
	}
	return nil
}

// acquire makes the bytes of a file available until its release.
func acquire(dir string, fsys fs.FS, name string) (file, error) {
	f := file{name: join(dir, name), release: func() error { return nil }}
	fail := func(err error) (file, error) {
		return f, &FileError{File: f.name, Want: "a file that can be read", Got: reason(err), Err: err,
			Fix: "download the missing file, or make it readable"}
	}
	info, err := fs.Stat(fsys, name) // before opening, which would wait on a pipe
	if err != nil {
		return fail(err)
	}
	if !info.Mode().IsRegular() {
		return f, &FileError{File: f.name, Want: "an ordinary file", Got: kind(info.Mode())}
	}
	opened, err := fsys.Open(name)
	if err != nil {
		return fail(err)
	}
	defer opened.Close()
	switch o := opened.(type) {
	case *os.File:
		if info, err = o.Stat(); err != nil {
			return fail(err)
		}
		f.path, f.modTime = o.Name(), info.ModTime()
		if info.Size() > math.MaxInt {
			return f, &FileError{File: f.name, Want: "a file that fits the address space", Got: fmt.Sprintf("%d bytes", info.Size()), Fix: "use a 64-bit system"}
		}
		var release func() error
		if f.data, release, err = mapFile(o, info.Size()); err == nil {
			f.release = release
		}
	case interface{ Bytes() []byte }:
		f.data = o.Bytes()
	default:
		f.data, err = io.ReadAll(o)
	}
	if err != nil {
		return fail(err)
	}
	return f, nil
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return filepath.Join(dir, filepath.FromSlash(name))
}

func kind(m fs.FileMode) string {
	if m.IsDir() {
		return "a directory"
	}
	return "a special file (" + m.String() + ")"
}

// Close unmaps the files: no tensor of s may be used from here on.
func (s *Snapshot) Close() error {
	var errs []error
	for _, f := range s.files {
		if err := f.release(); err != nil {
			errs = append(errs, &FileError{File: f.name, Want: "the mapping to end", Got: reason(err), Err: err})
		}
	}
	s.files, s.tensors, s.byName = nil, nil, nil
	return errors.Join(errs...)
}

// Names returns the names of all tensors, sorted.
func (s *Snapshot) Names() []string {
	names := make([]string, len(s.tensors))
	for i, t := range s.tensors {
		names[i] = t.Name
	}
	slices.Sort(names)
	return names
}

// Tensor returns the tensor of that name.
func (s *Snapshot) Tensor(name string) (Tensor, bool) {
	i, ok := s.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return s.tensors[i], true
}

// Want is Tensor with its dtype and shape checked; the error is a *TensorError.
func (s *Snapshot) Want(name string, dtype DType, shape ...int) (Tensor, error) {
	t, ok := s.Tensor(name)
	if !ok {
		return Tensor{}, &TensorError{Tensor: name, File: s.where, Want: describe(dtype, shape), Got: "no such tensor"}
	}
	if t.DType != dtype || !slices.Equal(t.Shape, shape) {
		return Tensor{}, &TensorError{Tensor: name, File: t.File, Want: describe(dtype, shape), Got: describe(t.DType, t.Shape)}
	}
	return t, nil
}

// Metadata returns the text pairs of the files' headers; where shards differ,
// the first shard's. The map is shared: leave it as it is.
func (s *Snapshot) Metadata() map[string]string { return s.metadata }

// Bytes returns the size of all files.
func (s *Snapshot) Bytes() int64 {
	var n int64
	for _, f := range s.files {
		n += int64(len(f.data))
	}
	return n
}

// Fault turns a recovered panic into an error if it came from reading a tensor
// whose file has become shorter, or whose drive failed. Such a read panics only
// in a goroutine that has called debug.SetPanicOnFault(true); in any other it
// ends the process. ok is false for every other panic.
func (s *Snapshot) Fault(recovered any) (err *FileError, ok bool) {
	fault, ok := recovered.(interface {
		runtime.Error
		Addr() uintptr
	})
	if !ok {
		return nil, false
	}
	for _, f := range s.files {
		if len(f.data) == 0 {
			continue
		}
		begin := uintptr(unsafe.Pointer(unsafe.SliceData(f.data)))
		if at := fault.Addr(); at >= begin && at-begin < uintptr(len(f.data)) {
			return &FileError{File: f.name, Offset: int64(at - begin), Want: "the file as it was opened, " + state(int64(len(f.data)), f.modTime),
				Got: "a read that failed" + f.change(), Fix: "leave the file in place while it is in use, and load the model again", Err: fault}, true
		}
	}
	return nil, false
}

// change says what the file on disk is now, if it has another size or time than when
// it was opened. One that was deleted is no change: its mapping stays.
func (f *file) change() string {
	if f.path == "" {
		return ""
	}
	info, err := os.Stat(f.path)
	if err != nil || info.Size() == int64(len(f.data)) && info.ModTime().Equal(f.modTime) {
		return ""
	}
	return ", and a file of " + state(info.Size(), info.ModTime())
}

// state is a file's size and time, for an error.
func state(size int64, modified time.Time) string {
	return fmt.Sprintf("%d bytes from %s", size, modified.Format(time.RFC3339Nano))
}

func describe(d DType, shape []int) string {
	return show(string(d)) + " " + numbers(shape)
}

func numbers(n []int) string {
	if len(n) > 8 {
		return fmt.Sprintf("%v… of %d", n[:8], len(n))
	}
	return fmt.Sprint(n)
}
