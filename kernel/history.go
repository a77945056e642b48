package kernel

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	// historyBytes bounds the history folder: the oldest sessions are removed when a
	// new one begins. maxHistoryEntry is the longest cell that is kept, and
	// maxHistoryOutput the longest output.
	historyBytes     = 16 << 20
	maxHistoryEntry  = 256 << 10
	maxHistoryOutput = 16 << 10
)

// history keeps the cells of this session and finds those of earlier ones.
//
// Each session has a file of its own, NUMBER.jsonl, so that kernels that run at the
// same time never write to the same one: the number is taken by creating the file,
// when the first cell is stored. A line is {"n":line,"i":input} or, when the cell
// has a result, {"n":line,"o":output}.
//
// What is wrong with the folder never stops a kernel: where it can't be written (a
// read-only or full disk) the session's cells are kept in memory alone, and lines and
// files that can't be read are skipped. Each is said once, with report.
type history struct {
	dir    string      // "" keeps nothing on disk
	report func(error) // hears *HistoryError; called with mu held

	mu      sync.Mutex
	session int // 0 until a cell is stored
	file    *os.File
	cells   []historyCell
	bytes   int                    // of cells
	earlier map[int]sessionInCache // by session number
	failed  error                  // why the disk isn't written any more
	told    map[int]bool           // sessions of which report has heard
}

type historyCell struct {
	line   int
	input  string
	output *string
}

type sessionInCache struct {
	size  int64 // of the file that was read
	cells []historyCell
}

// historyEntry says where an output belongs.
type historyEntry struct{ line int }

type historyLine struct {
	Line   int     `json:"n"`
	Input  *string `json:"i,omitempty"`
	Output *string `json:"o,omitempty"`
}

// HistoryError says what is wrong with the history folder, or with one of its files.
type HistoryError struct {
	Path string
	Err  error
	Then string // what becomes of the cells
}

func (e *HistoryError) Error() string {
	err := e.Err
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		err = p.Err // without the path again
	}
	return fmt.Sprintf("kernel: history %s: %v; %s", e.Path, err, e.Then)
}

func (e *HistoryError) Unwrap() error { return e.Err }

// openHistory always gives a history: one in memory where the folder can't be made.
func openHistory(dir string, report func(error)) *history {
	h := &history{dir: dir, report: report, earlier: map[int]sessionInCache{}, told: map[int]bool{}}
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			h.fail(dir, err)
		}
	}
	return h
}

// fail says why the disk isn't written from now on. h.mu is held.
func (h *history) fail(path string, err error) {
	h.failed = &HistoryError{path, err, "from now on the cells of this session are kept in memory only; deltafin doctor says more"}
	h.report(h.failed)
}

// skip says, once for a session, what of an earlier one can't be read. h.mu is held.
func (h *history) skip(session int, err error) {
	if h.told[session] {
		return
	}
	h.told[session] = true
	h.report(&HistoryError{h.path(session), err, "what can't be read is left out"})
}

const historySuffix = ".jsonl"

// sessions lists the numbers of the sessions on disk, oldest first, with their
// files' sizes.
func (h *history) sessions() (numbers []int, sizes map[int]int64) {
	sizes = map[int]int64{}
	if h.dir == "" {
		return nil, sizes
	}
	entries, err := os.ReadDir(h.dir)
	if err != nil && h.failed == nil {
		h.fail(h.dir, err)
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), historySuffix)
		n, err := strconv.Atoi(name)
		if !ok || err != nil || n <= 0 {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			numbers = append(numbers, n)
			sizes[n] = info.Size()
		}
	}
	slices.Sort(numbers)
	return numbers, sizes
}

func (h *history) path(session int) string {
	return filepath.Join(h.dir, fmt.Sprintf("%06d%s", session, historySuffix))
}

// begin gives the session its number and file, and removes the oldest sessions when
// the folder has grown too large. h.mu is held.
func (h *history) begin() {
	numbers, _ := h.sessions()
	next := 1
	if len(numbers) > 0 {
		next = numbers[len(numbers)-1] + 1
	}
	h.session = next
	if h.dir == "" || h.failed != nil {
		return
	}
	h.prune(numbers)
	for ; ; next++ {
		f, err := os.OpenFile(h.path(next), os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			h.session, h.file = next, f
			return
		}
		if !errors.Is(err, fs.ErrExist) || next > h.session+1000 {
			h.fail(h.path(next), err)
			return
		}
	}
}

// prune removes the sessions that were written to longest ago when all together are
// too large; not by number, for an old session's kernel may still run. h.mu is held.
func (h *history) prune(numbers []int) {
	type file struct {
		session int
		info    fs.FileInfo
	}
	var files []file
	for _, n := range numbers {
		if info, err := os.Lstat(h.path(n)); err == nil {
			files = append(files, file{n, info})
		}
	}
	slices.SortStableFunc(files, func(a, b file) int { // newest first
		return cmp.Or(b.info.ModTime().Compare(a.info.ModTime()), b.session-a.session)
	})
	total := int64(0)
	for _, f := range files {
		if total += f.info.Size(); total > historyBytes {
			os.Remove(h.path(f.session)) // if it stays, it costs space only
		}
	}
}

// write appends one line in one write. What a full disk took of a line is left out by
// readHistory.
func (h *history) write(l historyLine) {
	if h.file == nil || h.failed != nil {
		return
	}
	b, err := json.Marshal(l)
	if err == nil {
		_, err = h.file.Write(append(b, '\n'))
	}
	if err != nil {
		h.fail(h.file.Name(), err)
	}
}

// input stores a cell when it begins to run.
func (h *history) input(line int, code string) historyEntry {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session == 0 {
		h.begin()
	}
	if len(code) > maxHistoryEntry {
		return historyEntry{}
	}
	h.cells = append(h.cells, historyCell{line: line, input: code})
	h.bytes += len(code)
	for h.bytes > historyBytes {
		h.bytes -= len(h.cells[0].input)
		h.cells = h.cells[1:]
	}
	h.write(historyLine{Line: line, Input: &code})
	return historyEntry{line}
}

// output stores a cell's result.
func (h *history) output(e historyEntry, text string) {
	if len(text) > maxHistoryOutput {
		text = strings.ToValidUTF8(text[:maxHistoryOutput], "") + "…"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.cells) - 1; i >= 0 && e.line > 0; i-- {
		if h.cells[i].line == e.line {
			h.cells[i].output = &text
			h.write(historyLine{Line: e.line, Output: &text})
			return
		}
	}
}

// close flushes the session to disk.
func (h *history) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file == nil {
		return
	}
	if err := h.file.Close(); err != nil && h.failed == nil {
		h.fail(h.file.Name(), err)
	}
	h.file = nil
}

// load gives the cells of a session. h.mu is held.
func (h *history) load(session int, size int64) []historyCell {
	if session == h.session {
		return h.cells
	}
	if c, ok := h.earlier[session]; ok && c.size == size {
		return c.cells
	}
	b, err := readTail(h.path(session), historyBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another kernel has removed it
	}
	if err != nil {
		h.skip(session, err)
	}
	cells, bad := readHistory(b)
	if bad > 0 {
		h.skip(session, fmt.Errorf("want lines of JSON, got %d that are none", bad))
	}
	h.earlier[session] = sessionInCache{size, cells}
	return cells
}

// readTail reads the end of a file, at most n bytes of it, from the start of a line.
// With an error it gives what could be read.
func readTail(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-n)
	b, err := io.ReadAll(io.NewSectionReader(f, from, n))
	if from > 0 {
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	return b, err
}

// readHistory parses a session's file and counts the lines that it can't read. A last
// line without an end is none of them: a kernel that runs, or was killed, is writing it.
func readHistory(b []byte) (cells []historyCell, bad int) {
	at := map[int]int{}
	for {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if !whole {
			return cells, bad
		}
		b = rest
		var l historyLine
		if json.Unmarshal(line, &l) != nil || l.Line <= 0 {
			bad++
			continue
		}
		if l.Input != nil {
			at[l.Line] = len(cells)
			cells = append(cells, historyCell{line: l.Line, input: *l.Input})
		}
		if i, ok := at[l.Line]; ok && l.Output != nil {
			cells[i].output = l.Output
		}
	}
}

// found is a cell with its session's number.
type found struct {
	session int
	historyCell
}

// newest gives up to n cells that satisfy keep, from the newest back, in order of
// time. h.mu is held.
func (h *history) newest(n int, keep func(historyCell) bool) []found {
	numbers, sizes := h.sessions()
	if h.session > 0 {
		// This session last, whatever sessions began after it.
		numbers = append(slices.DeleteFunc(numbers, func(s int) bool { return s == h.session }), h.session)
	}
	var out []found
	for i := len(numbers) - 1; i >= 0 && len(out) < n; i-- {
		cells := h.load(numbers[i], sizes[numbers[i]])
		for j := len(cells) - 1; j >= 0 && len(out) < n; j-- {
			if keep(cells[j]) {
				out = append(out, found{numbers[i], cells[j]})
			}
		}
	}
	slices.Reverse(out)
	return out
}

// historyQuery is the content of a history_request.
type historyQuery struct {
	Access  string  `json:"hist_access_type"`
	Output  bool    `json:"output"`
	Session int     `json:"session"`
	Start   *int    `json:"start"`
	Stop    *int    `json:"stop"`
	N       *int    `json:"n"`
	Pattern *string `json:"pattern"`
	Unique  bool    `json:"unique"`
}

// find answers a query.
func (h *history) find(q historyQuery) ([]found, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := int(^uint(0) >> 1)
	if q.N != nil {
		n = max(0, *q.N)
	}
	switch q.Access {
	case "tail":
		return h.newest(n, func(historyCell) bool { return true }), nil
	case "range":
		return h.span(q), nil
	case "search":
		pattern := "*"
		if q.Pattern != nil {
			pattern = *q.Pattern
		}
		seen := map[string]bool{}
		return h.newest(n, func(c historyCell) bool {
			if q.Unique && seen[c.input] || !glob(pattern, c.input) {
				return false
			}
			if q.Unique {
				seen[c.input] = true
			}
			return true
		}), nil
	}
	return nil, &contentError{"content.hist_access_type", "range, tail or search", strconv.Quote(q.Access)}
}

// span gives the lines start ≤ line < stop of one session: a number, 0 for this one,
// or a negative count back from it. h.mu is held.
func (h *history) span(q historyQuery) []found {
	numbers, sizes := h.sessions()
	session := q.Session
	if session <= 0 {
		numbers = slices.DeleteFunc(numbers, func(s int) bool { return s == h.session })
		numbers = append(numbers, h.session)
		at := len(numbers) - 1 + session
		if at < 0 {
			return nil
		}
		session = numbers[at]
	}
	var cells []historyCell
	if _, onDisk := sizes[session]; onDisk || session == h.session {
		cells = h.load(session, sizes[session])
	}
	var out []found
	for _, c := range cells {
		if (q.Start == nil || c.line >= *q.Start) && (q.Stop == nil || c.line < *q.Stop) {
			out = append(out, found{session, c})
		}
	}
	slices.SortStableFunc(out, func(a, b found) int { return cmp.Compare(a.line, b.line) })
	return out
}

// glob matches all of s with a pattern of *, ? and [set].
func glob(pattern, s string) bool {
	p, t := []rune(pattern), []rune(s)
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(t) {
		if i < len(p) && p[i] == '*' {
			star, mark = i, j
			i++
			continue
		}
		if i < len(p) {
			if n := globOne(p[i:], t[j]); n > 0 {
				i += n
				j++
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		i, j = star+1, mark
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// globOne matches one character; it returns the length of the pattern's part, 0 when
// it doesn't match.
func globOne(p []rune, c rune) int {
	switch p[0] {
	case '?':
		return 1
	case '[':
		i := 1
		not := i < len(p) && (p[i] == '^' || p[i] == '!')
		if not {
			i++
		}
		in := false
		for first := true; i < len(p) && (p[i] != ']' || first); first = false {
			lo, hi := p[i], p[i]
			if i+2 < len(p) && p[i+1] == '-' && p[i+2] != ']' {
				hi = p[i+2]
				i += 2
			}
			in = in || lo <= c && c <= hi
			i++
		}
		if i < len(p) {
			if in != not {
				return i + 1
			}
			return 0
		}
	}
	if p[0] == c {
		return 1
	}
	return 0
}

// historyRequest answers with [session, line, input] triples, or with
// [session, line, [input, output]].
func (s *Server) historyRequest(ctx context.Context, r *request) (any, error) {
	var q historyQuery
	if err := parse(r, &q); err != nil {
		return nil, err
	}
	cells, err := s.history.find(q)
	if err != nil {
		return nil, err
	}
	out := make([][3]any, len(cells))
	for i, c := range cells {
		out[i] = [3]any{c.session, c.line, c.input}
		if q.Output {
			out[i][2] = [2]any{c.input, c.output}
		}
	}
	return map[string]any{"status": "ok", "history": out}, nil
}
