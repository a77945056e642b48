//go:build !nomodels

package models

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"deltafin/checkpoint"
)

// small is the quickest model to unpack.
const small = "nano-qwen"

// TestMain lets the test binary be a process that unpacks.
func TestMain(m *testing.M) {
	if cache, name := os.Getenv("TEST_UNPACK_CACHE"), os.Getenv("TEST_UNPACK_MODEL"); name != "" {
		dir, err := Unpack(cache, name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(dir)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is another process that unpacks a model.
func process(t *testing.T, cache, name string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TEST_UNPACK_CACHE="+cache, "TEST_UNPACK_MODEL="+name)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &out
}

func unpack(t testing.TB, cache, name string) string {
	t.Helper()
	dir, err := Unpack(cache, name)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// whole checks an unpacked model, and that nothing lies beside its files.
func whole(t *testing.T, dir, name string) {
	t.Helper()
	if err := verify(dir, name); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if files, _ := Files(name); len(entries) != len(files) {
		t.Errorf("%s: found %v, want %d files", name, entries, len(files))
	}
}

// verify compares every file of an unpacked model with the manifest.
func verify(dir, name string) error {
	files, err := Files(name)
	for _, f := range files {
		err = errors.Join(err, verifyFile(filepath.Join(dir, f.Name), f))
	}
	return err
}

func verifyFile(path string, f File) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := checksum{Hash: sha256.New()}
	sum.Write(b)
	return sum.check(path, f)
}

func TestUnpack(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "not", "there", "yet")
	for _, name := range Names() {
		dir := unpack(t, cache, name)
		whole(t, dir, name)
		if base := filepath.Base(dir); !strings.HasPrefix(base, name+"-") || len(base) != len(name)+13 {
			t.Errorf("directory %s, want %s and 12 digits", base, name)
		}
		s, err := checkpoint.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestUnpackOnce(t *testing.T) {
	cache := t.TempDir()
	dir := unpack(t, cache, small)
	before := times(t, dir)
	if again := unpack(t, cache, small); again != dir {
		t.Errorf("unpacked to %s, then to %s", dir, again)
	}
	if after := times(t, dir); after != before {
		t.Errorf("written again: %s, then %s", before, after)
	}
}

// times lists a directory's files with the times they were written.
func times(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, e.Name(), info.ModTime().UnixNano())
	}
	return b.String()
}

// TestUnpackDamaged damages an unpacked model in ways that its sizes show.
func TestUnpackDamaged(t *testing.T) {
	weights := func(dir string) string { return filepath.Join(dir, checkpoint.SingleFile) }
	for what, damage := range map[string]func(dir string) error{
		"short":     func(dir string) error { return replace(weights(dir), []byte("short")) },
		"empty":     func(dir string) error { return replace(weights(dir), nil) },
		"absent":    func(dir string) error { return os.Remove(filepath.Join(dir, "config.json")) },
		"all gone":  os.RemoveAll,
		"left over": func(dir string) error { return old(filepath.Join(dir, partial+"1")) },
	} {
		t.Run(what, func(t *testing.T) {
			cache := t.TempDir()
			dir := unpack(t, cache, small)
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			if what == "left over" { // is removed with the next repair, not on each start
				if err := os.Remove(filepath.Join(dir, "config.json")); err != nil {
					t.Fatal(err)
				}
			}
			if verify(dir, small) == nil {
				t.Fatal("the file is as it was")
			}
			if again := unpack(t, cache, small); again != dir {
				t.Errorf("unpacked to %s, then to %s", dir, again)
			}
			whole(t, dir, small)
		})
	}
}

// replace puts another file in the place of one.
func replace(file string, b []byte) error {
	if err := os.Remove(file); err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644)
}

// old makes a file that was written two hours ago.
func old(file string) error {
	then := time.Now().Add(-2 * time.Hour)
	return errors.Join(os.WriteFile(file, []byte("x"), 0o644), os.Chtimes(file, then, then))
}

// TestUnpackMapped repairs a file that a snapshot has mapped: the snapshot keeps
// what it had. Windows refuses to move the file away.
func TestUnpackMapped(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file stays in its place on Windows")
	}
	cache := t.TempDir()
	dir := unpack(t, cache, small)
	s, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	name := s.Names()[0]
	before, _ := s.Tensor(name)
	want := bytes.Clone(before.Data)
	if err := replace(filepath.Join(dir, checkpoint.SingleFile), []byte("short")); err != nil {
		t.Fatal(err)
	}
	unpack(t, cache, small)
	whole(t, dir, small)
	if after, _ := s.Tensor(name); !bytes.Equal(after.Data, want) {
		t.Error("the mapped tensor changed")
	}
}

// TestUnpackAtOnce unpacks with several processes, into nothing and over damage.
func TestUnpackAtOnce(t *testing.T) {
	cache := t.TempDir()
	for round := range 3 {
		var cmds []*exec.Cmd
		var outs []*bytes.Buffer
		for range 4 {
			cmd, out := process(t, cache, small)
			cmds, outs = append(cmds, cmd), append(outs, out)
		}
		dir, _ := Dir(cache, small)
		for i, cmd := range cmds {
			if err := cmd.Wait(); err != nil || strings.TrimSpace(outs[i].String()) != dir {
				t.Errorf("round %d: process %d: %v: %s", round, i, err, outs[i])
			}
		}
		whole(t, dir, small)
		if err := replace(filepath.Join(dir, checkpoint.SingleFile), []byte("damaged")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnpackInterrupted kills unpacking processes ever later, until one ends by
// itself; each file that is in its place must be whole.
func TestUnpackInterrupted(t *testing.T) {
	const name = "nano-k3"
	files, _ := Files(name)
	killed := 0
	for delay := 5 * time.Millisecond; ; delay += delay / 2 {
		cache := t.TempDir()
		dir, _ := Dir(cache, name)
		cmd, out := process(t, cache, name)
		timer := time.AfterFunc(delay, func() { cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		for _, f := range files {
			path := filepath.Join(dir, f.Name)
			if _, err := os.Stat(path); err == nil {
				if err := verifyFile(path, f); err != nil {
					t.Error(err)
				}
			}
		}
		if err == nil {
			break
		}
		if cmd.ProcessState.Exited() && cmd.ProcessState.ExitCode() == 1 && out.Len() > 0 {
			t.Fatal(out)
		}
		killed++
		if err := verify(unpack(t, cache, name), name); err != nil {
			t.Error(err)
		}
		os.RemoveAll(cache)
	}
	if killed == 0 {
		t.Error("no process was killed in time")
	}
}

// TestNoCache has no directory to write: Unpack says so, Open goes on in memory.
func TestNoCache(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	caches := []string{"", filepath.Join(file, "cache")}
	locked := filepath.Join(dir, "locked")
	if err := os.Mkdir(locked, 0o555); err != nil {
		t.Fatal(err)
	}
	if os.WriteFile(filepath.Join(locked, "x"), nil, 0o644) != nil { // root may write anywhere
		caches = append(caches, locked)
	}
	for _, cache := range caches {
		_, err := Unpack(cache, small)
		var want *CacheError
		if !errors.As(err, &want) || !strings.HasPrefix(want.Dir, cache) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want a CacheError of %s", err, cache)
		}
		files, dir, err := Open(cache, small)
		if err != nil {
			t.Fatal(err)
		}
		if dir != "" {
			t.Errorf("opened in %s, want memory", dir)
		}
		s, err := checkpoint.OpenFS(files)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	if entries, _ := os.ReadDir("."); len(entries) != 0 {
		t.Errorf("no cache directory, yet the working directory has %v", entries)
	}
}

func TestOpen(t *testing.T) {
	files, dir, err := Open(t.TempDir(), small)
	if err != nil {
		t.Fatal(err)
	}
	whole(t, dir, small)
	s, err := checkpoint.OpenFS(files)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func TestMemory(t *testing.T) {
	fsys, err := Memory(small)
	if err != nil {
		t.Fatal(err)
	}
	dir := unpack(t, t.TempDir(), small)
	var names []string
	files, _ := Files(small)
	for _, f := range files {
		names = append(names, f.Name)
		want, err := os.ReadFile(filepath.Join(dir, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := fs.ReadFile(fsys, f.Name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, or other bytes than unpacked", f.Name, err)
		}
	}
	if err := fstest.TestFS(fsys, names...); err != nil {
		t.Error(err)
	}

	onDisk, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer onDisk.Close()
	inMemory, err := checkpoint.OpenFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	defer inMemory.Close()
	for _, name := range onDisk.Names() {
		want, _ := onDisk.Tensor(name)
		got, err := inMemory.Want(name, want.DType, want.Shape...)
		if err != nil || !bytes.Equal(got.Data, want.Data) {
			t.Errorf("%s: %v, or other bytes than unpacked", name, err)
		}
	}
}

func TestUnknown(t *testing.T) {
	_, unpacked := Unpack(t.TempDir(), "../nano-k3")
	_, inMemory := Memory("nano")
	for _, err := range []error{unpacked, inMemory} {
		var unknown *UnknownError
		if !errors.As(err, &unknown) || !strings.Contains(err.Error(), "nano-k3, nano-dspark, nano-qwen") {
			t.Errorf("got %v, want an UnknownError", err)
		}
	}
}

// failing is a file on a full disk.
type failing struct{ room int }

func (f *failing) Write(p []byte) (int, error) {
	if len(p) > f.room {
		return 0, &fs.PathError{Op: "write", Path: "x", Err: errors.New("no space left")}
	}
	f.room -= len(p)
	return len(p), nil
}

// TestExpand gives expand files that are not what the manifest says, and a disk
// without space.
func TestExpand(t *testing.T) {
	files, _ := Files(small)
	f := files[len(files)-1]
	longer, other, absent := f, f, f
	longer.Size++
	other.SHA256 = strings.Repeat("0", 64)
	absent.Name = "absent"
	var (
		damaged *DamagedError
		missing *NotEmbeddedError
		write   *fs.PathError
	)
	if err := expand(&bytes.Buffer{}, small, longer); !errors.As(err, &damaged) {
		t.Errorf("another size: got %v", err)
	}
	if err := expand(&bytes.Buffer{}, small, other); !errors.As(err, &damaged) {
		t.Errorf("another sum: got %v", err)
	}
	if err := expand(&bytes.Buffer{}, small, absent); !errors.As(err, &missing) {
		t.Errorf("not embedded: got %v", err)
	}
	if err := expand(&failing{1 << 20}, small, files[2]); !errors.As(err, &write) {
		t.Errorf("no space: got %v", err)
	}
	dir := t.TempDir()
	if err := install(dir, small, other); !errors.As(err, &damaged) {
		t.Errorf("another sum: got %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("a failed installation left %v", entries)
	}
}

func BenchmarkUnpack(b *testing.B) {
	for _, name := range Names() {
		b.Run("first/"+name, func(b *testing.B) {
			for b.Loop() {
				dir := unpack(b, b.TempDir(), name)
				b.StopTimer()
				os.RemoveAll(dir)
				b.StartTimer()
			}
		})
		b.Run("later/"+name, func(b *testing.B) {
			cache := b.TempDir()
			unpack(b, cache, name)
			for b.Loop() {
				unpack(b, cache, name)
			}
		})
	}
}

func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		if _, err := Memory("nano-k3"); err != nil {
			b.Fatal(err)
		}
	}
}

// A file that somebody wrote to is made right, one that was merely copied is kept.
func TestUnpackChanged(t *testing.T) {
	cache := t.TempDir()
	dir := unpack(t, cache, small)
	file := filepath.Join(dir, "model.safetensors")
	whole(t, dir, small)

	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{0xff, 0x7f}, 2_000_000); err != nil { // the size stays
		t.Fatal(err)
	}
	f.Close()
	if verify(dir, small) == nil {
		t.Fatal("the test changed nothing")
	}
	unpack(t, cache, small)
	whole(t, dir, small)

	if err := os.Chtimes(file, time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	unpack(t, cache, small)
	after, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("a right file was replaced")
	}
	if after.ModTime().Equal(before.ModTime()) {
		t.Error("a right file did not get its time back")
	}
}
