package enginetest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"time"

	"deltafin/checkpoint"
	"deltafin/engine"
)

// OpenInMemory is a snapshot of random tensors that lie in memory and not on a disk, for
// models of K3's widths. Its large matrices repeat themselves after a prime number of
// values, so that they are made as fast as memory is written.
func OpenInMemory(c engine.Config, seed uint64) (*checkpoint.Snapshot, error) {
	b := &builder{r: rand.New(rand.NewPCG(seed, 0)), repeat: 2 * 65521}
	b.model(c)
	type entry struct {
		DType   checkpoint.DType `json:"dtype"`
		Shape   []int            `json:"shape"`
		Offsets [2]int           `json:"data_offsets"`
	}
	entries, size := map[string]entry{}, 0
	for _, t := range b.planned {
		entries[t.name] = entry{t.dtype, t.shape, [2]int{size, size + t.size}}
		size += t.size
	}
	header, err := json.Marshal(entries)
	if err != nil {
		return nil, err
	}
	for len(header)%8 != 0 {
		header = append(header, ' ')
	}
	file := make([]byte, 0, 8+len(header)+size)
	file = append(binary.LittleEndian.AppendUint64(file, uint64(len(header))), header...)
	data := file[len(file):cap(file)]
	for _, t := range b.planned {
		t.fill(data[:t.size:t.size])
		data = data[t.size:]
	}
	return checkpoint.OpenFS(oneFile(file[:cap(file)]))
}

// oneFile is a directory with model.safetensors alone, of these bytes.
type oneFile []byte

func (f oneFile) Open(name string) (fs.File, error) {
	if name != "model.safetensors" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return memoryFile{bytes.NewReader(f), f}, nil
}

type memoryFile struct {
	*bytes.Reader
	data []byte
}

func (f memoryFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f memoryFile) Close() error               { return nil }
func (f memoryFile) Bytes() []byte              { return f.data } // spares checkpoint a copy
func (f memoryFile) Name() string               { return "model.safetensors" }
func (f memoryFile) Mode() fs.FileMode          { return 0o444 }
func (f memoryFile) ModTime() time.Time         { return time.Time{} }
func (f memoryFile) IsDir() bool                { return false }
func (f memoryFile) Sys() any                   { return nil }
