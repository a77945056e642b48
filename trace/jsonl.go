package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// maxLine bounds one line of a file, in bytes. A token of 92 layers with 16
// experts and their weights takes about 25 kB.
const maxLine = 8 << 20

// formatVersion is the value of "deltafin_trace" in the header line.
const formatVersion = 1

type header struct {
	Version int    `json:"deltafin_trace"`
	Model   string `json:"model"`
	Layers  []int  `json:"layers"`
	Experts int    `json:"experts"`
	TopK    int    `json:"top_k"`
}

type line struct {
	Tok       *int        `json:"tok"`
	ID        int         `json:"id"`
	Text      string      `json:"text"`
	Generated bool        `json:"generated"`
	Layers    [][]int32   `json:"layers"`
	Weights   [][]float32 `json:"weights"`
}

// Write writes tr as JSON lines: a header
//
//	{"deltafin_trace":1,"model":"nano-k3","layers":[1,2],"experts":64,"top_k":4}
//
// then a line a token
//
//	{"tok":0,"id":791,"text":"The","generated":false,"layers":[[1,5,9,60],[0,2,3,7]],"weights":[[…],[…]]}
//
// with one list a traced layer; "weights" is left out where they are unknown.
// Read gives the same trace back, weights bit for bit; text that is not UTF-8 has
// U+FFFD in its place. A trace that Check refuses is refused before anything is
// written.
func (tr *Trace) Write(w io.Writer) error {
	if err := tr.Check(); err != nil {
		return err
	}
	bw := bufio.NewWriterSize(w, 64<<10)
	head, err := json.Marshal(header{formatVersion, tr.Model, tr.Layers, tr.Experts, tr.TopK})
	if err != nil {
		return err
	}
	bw.Write(append(head, '\n'))
	var b []byte
	for t, tok := range tr.Tokens {
		text, err := json.Marshal(tok.Text)
		if err != nil {
			return err
		}
		b = append(b[:0], `{"tok":`...)
		b = strconv.AppendInt(b, int64(t), 10)
		b = append(b, `,"id":`...)
		b = strconv.AppendInt(b, int64(tok.ID), 10)
		b = append(b, `,"text":`...)
		b = append(b, text...)
		b = append(b, `,"generated":`...)
		b = strconv.AppendBool(b, tok.Generated)
		b = append(b, `,"layers":[`...)
		for l := range tr.Layers {
			ids, _ := tr.Route(t, l)
			b = appendList(b, l, ids, func(b []byte, id int32) []byte { return strconv.AppendInt(b, int64(id), 10) })
		}
		b = append(b, ']')
		if tr.Weights != nil {
			b = append(b, `,"weights":[`...)
			for l := range tr.Layers {
				_, weights := tr.Route(t, l)
				b = appendList(b, l, weights, func(b []byte, w float32) []byte { return strconv.AppendFloat(b, float64(w), 'g', -1, 32) })
			}
			b = append(b, ']')
		}
		b = append(b, '}', '\n')
		if len(b) > maxLine {
			return &FormatError{What: fmt.Sprintf("token %d", t), Want: fmt.Sprintf("a line of at most %d bytes", maxLine), Got: fmt.Sprint(len(b))}
		}
		if _, err := bw.Write(b); err != nil {
			return err
		}
	}
	return bw.Flush()
}

// appendList appends the i-th list of a list of lists.
func appendList[T any](b []byte, i int, list []T, one func([]byte, T) []byte) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, v)
	}
	return append(b, ']')
}

// Read reads what Write wrote. It also takes a file without the header, whose
// lines hold at least "tok" and "layers": its layers are then numbered from 0,
// TopK is what the first line has and Experts is the largest id seen plus one.
// Lines must be in order of "tok" from 0, and fields that Write doesn't write are
// refused. Errors in the content are *FormatError with the line.
func Read(r io.Reader) (*Trace, error) {
	lines := &lineReader{r: bufio.NewReaderSize(r, 64<<10)}
	first, err := lines.next()
	if err == io.EOF {
		return nil, &FormatError{Line: 1, What: "the file", Want: "a trace", Got: "nothing"}
	}
	if err != nil {
		return nil, err
	}

	tr := &Trace{}
	var version struct {
		Version *int `json:"deltafin_trace"`
	}
	headed := json.Unmarshal(first, &version) == nil && version.Version != nil
	var weighted *bool
	largest := int32(-1)
	take := func(data []byte) error {
		var ln line
		if err := strict(data, &ln); err != nil {
			return lines.fail("token line", `{"tok": n, "layers": [[ids…]…]} and "id", "text", "generated", "weights"`, err.Error())
		}
		t := len(tr.Tokens)
		switch {
		case ln.Tok == nil || *ln.Tok != t:
			got := "none"
			if ln.Tok != nil {
				got = strconv.Itoa(*ln.Tok)
			}
			return lines.fail(`"tok"`, strconv.Itoa(t), got)
		case t >= maxTokens:
			return lines.fail("the file", fmt.Sprintf("at most %d tokens", maxTokens), "more")
		}
		if tr.Layers == nil { // the first line of a file without header
			tr.Experts = maxExperts
			if len(ln.Layers) > 0 {
				tr.TopK = len(ln.Layers[0])
			}
			tr.Layers = make([]int, min(len(ln.Layers), maxLayers+1))
			for i := range tr.Layers {
				tr.Layers[i] = i
			}
			if err := tr.checkShape(); err != nil {
				err.Line = lines.n
				return err
			}
		}
		if len(ln.Layers) != len(tr.Layers) {
			return lines.fail(fmt.Sprintf("token %d", t), fmt.Sprintf("%d layers", len(tr.Layers)), strconv.Itoa(len(ln.Layers)))
		}
		has := ln.Weights != nil
		if weighted == nil {
			weighted = &has
		}
		if has != *weighted {
			return lines.fail(fmt.Sprintf("token %d", t), "weights in every line or in none", fmt.Sprintf("weights: %t, in the lines before: %t", has, *weighted))
		}
		if has && len(ln.Weights) != len(tr.Layers) {
			return lines.fail(fmt.Sprintf("token %d", t), fmt.Sprintf("weights of %d layers", len(tr.Layers)), strconv.Itoa(len(ln.Weights)))
		}
		for l, ids := range ln.Layers {
			var weights []float32
			if has {
				if weights = ln.Weights[l]; weights == nil {
					weights = []float32{}
				}
			}
			if err := tr.checkRoute(ids, weights); err != nil {
				err.Line, err.What = lines.n, fmt.Sprintf("token %d, layer %d", t, tr.Layers[l])
				return err
			}
			largest = max(largest, ids[len(ids)-1])
			tr.IDs = append(tr.IDs, ids...)
			tr.Weights = append(tr.Weights, weights...)
		}
		tr.Tokens = append(tr.Tokens, Token{ID: ln.ID, Text: ln.Text, Generated: ln.Generated})
		return nil
	}

	if headed {
		var h header
		if err := strict(first, &h); err != nil {
			return nil, lines.fail("header", `{"deltafin_trace":1,"model":…,"layers":[…],"experts":n,"top_k":n}`, err.Error())
		}
		if h.Version != formatVersion {
			return nil, lines.fail(`"deltafin_trace"`, fmt.Sprintf("version %d", formatVersion), fmt.Sprintf("%d; a newer deltafin wrote this file", h.Version))
		}
		tr.Model, tr.Layers, tr.Experts, tr.TopK = h.Model, h.Layers, h.Experts, h.TopK
		if err := tr.checkShape(); err != nil {
			err.Line = lines.n
			return nil, err
		}
	} else if err := take(first); err != nil {
		return nil, err
	}
	for {
		data, err := lines.next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = take(data)
		}
		if err != nil {
			return nil, err
		}
	}
	if !headed {
		tr.Experts = int(largest) + 1
	}
	return tr, nil
}

// strict decodes exactly one JSON object with known fields only.
func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more after the object")
	}
	return nil
}

// lineReader gives a file's lines, none longer than maxLine.
type lineReader struct {
	r   *bufio.Reader
	buf []byte
	n   int // number of the line that next returned, from 1
}

// next returns the next line without its end, valid until the next call, or io.EOF.
func (l *lineReader) next() ([]byte, error) {
	l.n++
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		l.buf = append(l.buf, part...)
		switch {
		case len(l.buf) > maxLine:
			return nil, l.fail("the line", fmt.Sprintf("at most %d bytes", maxLine), "more")
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(l.buf) > 0, err == nil:
			return bytes.TrimRight(l.buf, "\r\n"), nil
		default:
			return nil, err
		}
	}
}

func (l *lineReader) fail(what, want, got string) error {
	return &FormatError{Line: l.n, What: what, Want: want, Got: got}
}
