package models

import (
	"bytes"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// memory is a flat file system of whole files.
type memory map[string][]byte

func (m memory) Open(name string) (fs.File, error) {
	if name == "." {
		d := &memoryDir{}
		for n, b := range m {
			d.entries = append(d.entries, fs.FileInfoToDirEntry(memoryInfo{n, int64(len(b)), 0o444}))
		}
		slices.SortFunc(d.entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		return d, nil
	}
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	b, ok := m[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &memoryFile{bytes.NewReader(b), memoryInfo{name, int64(len(b)), 0o444}, b}, nil
}

type memoryFile struct {
	*bytes.Reader
	info memoryInfo
	b    []byte
}

func (f *memoryFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *memoryFile) Close() error               { return nil }
func (f *memoryFile) Bytes() []byte              { return f.b }

type memoryDir struct{ entries []fs.DirEntry }

func (d *memoryDir) Stat() (fs.FileInfo, error) { return memoryInfo{".", 0, fs.ModeDir | 0o555}, nil }
func (d *memoryDir) Close() error               { return nil }

func (d *memoryDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: ".", Err: fs.ErrInvalid}
}

func (d *memoryDir) ReadDir(n int) ([]fs.DirEntry, error) {
	all := d.entries
	if n <= 0 {
		d.entries = nil
		return all, nil
	}
	if len(all) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(all))
	d.entries = all[n:]
	return all[:n], nil
}

type memoryInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func (i memoryInfo) Name() string       { return i.name }
func (i memoryInfo) Size() int64        { return i.size }
func (i memoryInfo) Mode() fs.FileMode  { return i.mode }
func (i memoryInfo) ModTime() time.Time { return time.Time{} }
func (i memoryInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memoryInfo) Sys() any           { return nil }
