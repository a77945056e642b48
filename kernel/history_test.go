package kernel_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deltafin/kernel"
	"deltafin/kernel/kerneltest"
)

// history asks for cells and shows them as "session/line input", with output
// "input→output".
func (k *running) history(c *kerneltest.Client, query map[string]any) []string {
	k.t.Helper()
	reply := k.request(c, kernel.Shell, "history_request", query)
	out := []string{}
	for _, e := range reply["history"].([]any) {
		t := e.([]any)
		if pair, ok := t[2].([]any); ok {
			t[2] = fmt.Sprint(pair[0], "→", pair[1])
		}
		out = append(out, fmt.Sprintf("%v/%v %v", t[0], t[1], t[2]))
	}
	return out
}

type query = map[string]any

func TestHistory(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		t.Run(fmt.Sprint("disk ", dir != ""), func(t *testing.T) {
			k := start(t, "memory", kernel.Options{History: dir})
			c := k.client(kerneltest.Options{})
			equal(t, "empty", k.history(c, query{"hist_access_type": "tail", "n": 5}), []string{})
			for _, code := range []string{"print a", "result b", "print a", "print [x]"} {
				k.run(c, code)
			}
			silent := kerneltest.Cell("print silent")
			silent.Silent = true
			k.wait(k.send(c, kernel.Shell, "execute_request", silent, ""))
			for _, q := range []struct {
				query query
				want  []string
			}{
				{query{"hist_access_type": "tail", "n": 2}, []string{"1/3 print a", "1/4 print [x]"}},
				{query{"hist_access_type": "tail", "n": 0}, []string{}},
				{query{"hist_access_type": "tail", "n": 3, "output": true}, []string{"1/2 result b→b", "1/3 print a→<nil>", "1/4 print [x]→<nil>"}},
				{query{"hist_access_type": "range", "session": 0, "start": 2, "stop": 4}, []string{"1/2 result b", "1/3 print a"}},
				{query{"hist_access_type": "range", "session": 1, "start": 4, "stop": nil}, []string{"1/4 print [x]"}},
				{query{"hist_access_type": "range", "session": -1}, []string{}},
				{query{"hist_access_type": "range", "session": 99}, []string{}},
				{query{"hist_access_type": "search", "pattern": "print*"}, []string{"1/1 print a", "1/3 print a", "1/4 print [x]"}},
				{query{"hist_access_type": "search", "pattern": "print*", "unique": true}, []string{"1/3 print a", "1/4 print [x]"}},
				{query{"hist_access_type": "search", "pattern": "*a", "n": 1}, []string{"1/3 print a"}},
				{query{"hist_access_type": "search", "pattern": "?????? b"}, []string{"1/2 result b"}},
				{query{"hist_access_type": "search", "pattern": "*[[]x]"}, []string{"1/4 print [x]"}},
				{query{"hist_access_type": "search", "pattern": "*[^a-w]]"}, []string{"1/4 print [x]"}},
				{query{"hist_access_type": "search", "pattern": "a"}, []string{}},
			} {
				equal(t, fmt.Sprint(q.query), k.history(c, q.query), q.want)
			}
		})
	}
}

// Each session has its own number and file; later kernels see the earlier ones'
// cells, also those of a kernel that still runs.
func TestHistoryAcrossSessions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b", "history")
	a, b := start(t, "memory", kernel.Options{History: dir}), start(t, "memory", kernel.Options{History: dir})
	ca, cb := a.client(kerneltest.Options{}), b.client(kerneltest.Options{})
	a.run(ca, "print a1")
	b.run(cb, "print b1")
	a.run(ca, "result a2")
	equal(t, "second session", b.history(cb, query{"hist_access_type": "tail", "n": 9, "output": true}),
		[]string{"1/1 print a1→<nil>", "1/2 result a2→a2", "2/1 print b1→<nil>"})
	equal(t, "first session", a.history(ca, query{"hist_access_type": "tail", "n": 1}), []string{"1/2 result a2"})
	a.run(ca, "print a3")
	equal(t, "session before", b.history(cb, query{"hist_access_type": "range", "session": -1, "start": 3}), []string{"1/3 print a3"})

	// What is not whole is left out.
	for name, content := range map[string]string{
		"000003.jsonl": `{"n":1,"i":"kept"}` + "\n" + `{"n":2,"i":` + "\n\xff\n" + `{"n":2,"o":"of nothing"}` + "\n" + `{"n":3,"i":"cut o`,
		"notes.txt":    "x",
		"-4.jsonl":     `{"n":1,"i":"no session"}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := start(t, "memory", kernel.Options{History: dir})
	cc := c.client(kerneltest.Options{})
	c.run(cc, "print c1")
	equal(t, "fourth session", c.history(cc, query{"hist_access_type": "tail", "n": 2}), []string{"3/1 kept", "4/1 print c1"})
}

// The folder doesn't grow without bound: the oldest sessions go first.
func TestHistoryBound(t *testing.T) {
	dir := t.TempDir()
	big := strings.Repeat(fmt.Sprintf(`{"n":1,"i":%q}`+"\n", strings.Repeat("x", 1000)), 6000)
	for i := 1; i <= 4; i++ {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%06d.jsonl", i)), []byte(big), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k := start(t, "memory", kernel.Options{History: dir})
	c := k.client(kerneltest.Options{})
	k.run(c, "print x")
	k.run(c, "print "+strings.Repeat("y", 1<<20)) // too long to keep
	equal(t, "newest", k.history(c, query{"hist_access_type": "search", "pattern": "print*"}), []string{"5/1 print x"})
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	equal(t, "files", names, []string{"000003.jsonl", "000004.jsonl", "000005.jsonl"})
}

// A folder that can't be made is a line in the log, and the cells are in memory.
func TestHistoryFolderInTheWay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k := start(t, "memory", kernel.Options{History: file})
	c := k.client(kerneltest.Options{})
	k.run(c, "print a")
	k.run(c, "print b")
	equal(t, "cells", k.history(c, query{"hist_access_type": "tail", "n": 9}), []string{"1/1 print a", "1/2 print b"})
	if n := strings.Count(k.log.String(), "history "+file); n != 1 {
		t.Errorf("%d lines about the folder in:\n%s", n, k.log)
	}
}

// A file of rubbish is a line in the log, once, and takes no other session with it.
func TestHistoryCorruptFile(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"000001.jsonl": `{"n":1,"i":"old"}` + "\n",
		"000002.jsonl": "\x00\x00\x00\xff\n" + strings.Repeat("x", 1<<20) + "\n[1]\n" + `{"n":7,"i":"between"}` + "\n\x00",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "000003.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	k := start(t, "memory", kernel.Options{History: dir})
	c := k.client(kerneltest.Options{})
	for range 2 {
		equal(t, "cells", k.history(c, query{"hist_access_type": "tail", "n": 9}), []string{"1/1 old", "2/7 between"})
	}
	k.run(c, "print new")
	equal(t, "cells", k.history(c, query{"hist_access_type": "tail", "n": 1}), []string{"4/1 print new"})
	if n := strings.Count(k.log.String(), "000002.jsonl: want lines of JSON, got 3 that are none"); n != 1 {
		t.Errorf("%d lines about the file in:\n%s", n, k.log)
	}
}
