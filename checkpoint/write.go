package checkpoint

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"
)

// A Stream is a tensor whose bytes are made while they are written, so that it need
// not be in memory. Write writes them all, as many as dtype and shape say.
type Stream struct {
	Name  string
	DType DType
	Shape []int
	Write func(w io.Writer) error
}

// Write writes a safetensors file: the tensors in the given order (their File
// and Offset are ignored), the metadata sorted by key, the data from a multiple
// of 8 bytes on. Equal arguments give equal files. It arrives whole, by rename
// and after a sync, or not at all: a snapshot that has the old file open keeps
// it.
func Write(file string, tensors []Tensor, metadata map[string]string) error {
	return writeFile(file, streams(tensors), metadata)
}

// WriteSharded writes a model directory: each shard to
// model-00001-of-0000N.safetensors and so on, then the index. dir must exist
// and hold no other model.
func WriteSharded(dir string, shards [][]Tensor, metadata map[string]string) error {
	return WriteStreams(dir, len(shards), func(i int) []Stream { return streams(shards[i]) }, metadata)
}

// WriteStreams is WriteSharded of n shards, each asked for when its turn comes. After
// an error, which may be a Stream's own, there are the shards before the one that
// failed and no index.
func WriteStreams(dir string, n int, shard func(i int) []Stream, metadata map[string]string) error {
	var total int64
	where := make(map[string]string)
	for i := range n {
		name, streams := ShardFile(i, n), shard(i)
		for _, t := range streams {
			if other, ok := where[t.Name]; ok {
				return &TensorError{Tensor: t.Name, File: filepath.Join(dir, name), Want: "each tensor once", Got: "it also in " + other}
			}
			where[t.Name] = name
			size, _ := t.DType.Size(t.Shape)
			total += size
		}
		if err := writeFile(filepath.Join(dir, name), streams, metadata); err != nil {
			return err
		}
	}
	index := map[string]any{"metadata": map[string]int64{"total_size": total}, "weight_map": where}
	text, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return fmt.Errorf("checkpoint: %s: %w", IndexFile, err)
	}
	return replace(filepath.Join(dir, IndexFile), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// ShardFile names shard i, from 0, of n.
func ShardFile(i, n int) string { return fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, n) }

func streams(tensors []Tensor) []Stream {
	list := make([]Stream, len(tensors))
	for i, t := range tensors {
		list[i] = Stream{t.Name, t.DType, t.Shape, func(w io.Writer) error {
			_, err := w.Write(t.Data)
			return err
		}}
	}
	return list
}

func writeFile(file string, tensors []Stream, metadata map[string]string) error {
	header, err := encodeHeader(file, tensors, metadata)
	if err != nil {
		return err
	}
	return replace(file, func(w io.Writer) error {
		if _, err := w.Write(header); err != nil {
			return err
		}
		for _, t := range tensors {
			counted := counter{w: w}
			if err := t.Write(&counted); err != nil {
				return err
			}
			if size, _ := t.DType.Size(t.Shape); counted.n != size {
				return &TensorError{Tensor: t.Name, File: file, Want: fmt.Sprintf("%d bytes of data", size), Got: fmt.Sprintf("%s with %d bytes", describe(t.DType, t.Shape), counted.n)}
			}
		}
		return nil
	})
}

// counter counts what is written through it.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// encodeHeader returns the length and the header of a safetensors file.
func encodeHeader(file string, tensors []Stream, metadata map[string]string) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 8, 8+128*len(tensors)))
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	value := func(v any) error {
		err := enc.Encode(v)
		b.Truncate(b.Len() - 1) // Encode's line feed
		return err
	}
	sep := byte('{')
	if len(metadata) > 0 {
		b.WriteString(`{"` + metadataKey + `":`)
		if err := value(metadata); err != nil {
			return nil, fmt.Errorf("checkpoint: metadata of %s: %w", file, err)
		}
		sep = ','
	}
	seen := make(map[string]bool, len(tensors))
	var offset int64
	for _, t := range tensors {
		size, ok := t.DType.Size(t.Shape)
		want := ""
		switch {
		case t.Name == metadataKey || !utf8.ValidString(t.Name):
			want = "a name in UTF-8 other than " + metadataKey
		case seen[t.Name]:
			want = "each name once"
		case !ok:
			want = "a dtype and shape of safetensors"
		}
		if want != "" {
			return nil, &TensorError{Tensor: t.Name, File: file, Want: want, Got: describe(t.DType, t.Shape)}
		}
		seen[t.Name] = true
		b.WriteByte(sep)
		sep = ','
		if err := value(t.Name); err != nil {
			return nil, fmt.Errorf("checkpoint: %s: %w", file, err)
		}
		b.WriteByte(':')
		entry := struct {
			DType   DType    `json:"dtype"`
			Shape   []int    `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{t.DType, append([]int{}, t.Shape...), [2]int64{offset, offset + size}}
		if err := value(entry); err != nil {
			return nil, fmt.Errorf("checkpoint: %s: %w", file, err)
		}
		offset += size
	}
	if sep == '{' {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	n := b.Len() - 8
	if n > maxHeader {
		return nil, &FileError{File: file, Want: fmt.Sprintf("a header of at most %d bytes", maxHeader), Got: fmt.Sprintf("%d", n), Fix: "write the tensors to several shards"}
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(n))
	return b.Bytes(), nil
}

// target is the file that a name stands for: symbolic links are followed, and what
// is there must be an ordinary file, since it will be replaced.
func target(file string) (string, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return file, nil
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("it is %s, and would be replaced", kind(info.Mode()))
	}
	return filepath.EvalSymlinks(file)
}

// replace writes a file beside the named one and renames it into place.
func replace(file string, write func(io.Writer) error) (err error) {
	defer func() {
		if wrong := (*TensorError)(nil); err != nil && !errors.As(err, &wrong) {
			err = &FileError{File: file, Want: "the file to be written", Got: reason(err), Fix: "check the directory's permissions and its free space", Err: err}
		}
	}()
	if file, err = target(file); err != nil {
		return err
	}
	dir, base := filepath.Split(file)
	if dir == "" {
		dir = "."
	}
	tmp, err := os.CreateTemp(dir, "."+base+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
		}
	}()
	w := bufio.NewWriterSize(tmp, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := tmp.Chmod(0o644); err != nil {
		return err
	}
	if err := tmp.Sync(); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return err
	}
	return syncDir(dir)
}
