package kerneltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"deltafin/kernel/wire"
)

// Notebook is a .ipynb file, format 4. Fields that nothing here looks at are kept.
type Notebook struct {
	Cells []*NotebookCell
	rest  map[string]json.RawMessage
}

// NotebookCell is one cell.
type NotebookCell struct {
	Type    string // "code", "markdown" or "raw"
	Source  string
	Tags    []string
	Outputs []*NotebookOutput // of a code cell
	Count   int               // execution_count, 0 when it has not been run
	rest    map[string]json.RawMessage
}

// NotebookOutput is one output of a code cell, as a notebook keeps it.
type NotebookOutput struct {
	Type      string         // "stream", "display_data", "execute_result" or "error"
	Name      string         // of a stream
	Text      string         // of a stream
	Data      map[string]any // MIME bundle
	Metadata  map[string]any
	Count     int // execution_count of an execute_result
	Ename     string
	Evalue    string
	Traceback []string
	displayID string
}

// NotebookError says what in a notebook can't be read.
type NotebookError struct {
	File string
	Err  error
}

func (e *NotebookError) Error() string { return fmt.Sprintf("notebook %s: %v", e.File, e.Err) }
func (e *NotebookError) Unwrap() error { return e.Err }

// CellFailure says which cell of a notebook failed.
type CellFailure struct {
	Cell      int // from 0, markdown cells counted
	Source    string
	Ename     string
	Evalue    string
	Traceback []string
}

func (e *CellFailure) Error() string {
	return fmt.Sprintf("notebook cell %d: %s: %s\n%s", e.Cell, e.Ename, e.Evalue, e.Source)
}

// ReadNotebook reads a notebook.
func ReadNotebook(path string) (*Notebook, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, &NotebookError{path, err}
	}
	n, err := ParseNotebook(b)
	if err != nil {
		return nil, &NotebookError{path, err}
	}
	return n, nil
}

// text is nbformat's string: one string or a list of lines.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var lines []string
	if json.Unmarshal(b, &lines) == nil {
		*t = text(strings.Join(lines, ""))
		return nil
	}
	return json.Unmarshal(b, (*string)(t))
}

// ParseNotebook reads a notebook from its bytes. Outputs that the file has are left
// out.
func ParseNotebook(b []byte) (*Notebook, error) {
	n := &Notebook{}
	if err := json.Unmarshal(b, &n.rest); err != nil {
		return nil, err
	}
	var top struct {
		Format int                          `json:"nbformat"`
		Cells  []map[string]json.RawMessage `json:"cells"`
	}
	if err := json.Unmarshal(b, &top); err != nil {
		return nil, err
	}
	if top.Format != 4 {
		return nil, fmt.Errorf("nbformat: want 4, got %d", top.Format)
	}
	for i, raw := range top.Cells {
		c := &NotebookCell{rest: raw}
		var source text
		var metadata struct {
			Tags []string `json:"tags"`
		}
		for name, into := range map[string]any{"cell_type": &c.Type, "source": &source, "metadata": &metadata} {
			if raw[name] == nil {
				return nil, fmt.Errorf("cell %d: want %s, got none", i, name)
			}
			if err := json.Unmarshal(raw[name], into); err != nil {
				return nil, fmt.Errorf("cell %d: %s: %w", i, name, err)
			}
		}
		c.Source, c.Tags = string(source), metadata.Tags
		n.Cells = append(n.Cells, c)
	}
	return n, nil
}

// Run runs the code cells in order and collects their outputs in the notebook. A cell
// that fails ends the run with a *CellFailure, unless it has the tag
// "raises-exception".
func (n *Notebook) Run(ctx context.Context, c *Client) error {
	shown := map[string][]*NotebookOutput{} // displays by id
	for i, cell := range n.Cells {
		if cell.Type != "code" {
			continue
		}
		cell.Outputs, cell.Count = nil, 0
		if strings.TrimSpace(cell.Source) == "" {
			continue
		}
		x, err := c.Execute(ctx, cell.Source)
		if err != nil {
			return fmt.Errorf("notebook cell %d: %w", i, err)
		}
		cell.Count = intOf(x.Content()["execution_count"])
		cell.Outputs = Collect(x.Outputs(), shown)
		if x.Status() != "ok" && !slices.Contains(cell.Tags, "raises-exception") {
			f := &CellFailure{Cell: i, Source: cell.Source, Ename: x.Status()}
			for _, o := range cell.Outputs {
				if o.Type == "error" {
					f.Ename, f.Evalue, f.Traceback = o.Ename, o.Evalue, o.Traceback
				}
			}
			return f
		}
	}
	return nil
}

// Collect turns a cell's iopub messages into what a notebook shows: streams joined,
// clear_output and update_display_data done. shown, which may be nil, carries the
// displays of earlier cells, which an update changes too.
func Collect(messages []*wire.Message, shown map[string][]*NotebookOutput) []*NotebookOutput {
	if shown == nil {
		shown = map[string][]*NotebookOutput{}
	}
	var out []*NotebookOutput
	clearNext := false
	for _, m := range messages {
		var v struct {
			Name, Text     string
			Wait           bool
			Data, Metadata map[string]any
			Count          int `json:"execution_count"`
			Transient      struct {
				Display string `json:"display_id"`
			}
			Ename, Evalue string
			Traceback     []string
		}
		json.Unmarshal(m.Content, &v)
		kind := m.Header.MsgType
		switch kind {
		case "clear_output":
			if v.Wait {
				clearNext = true
			} else {
				out = nil
			}
			continue
		case "update_display_data":
			for _, o := range shown[v.Transient.Display] {
				o.Data, o.Metadata = v.Data, v.Metadata
			}
			continue
		case "stream", "display_data", "execute_result", "error":
		default:
			continue
		}
		if clearNext {
			out, clearNext = nil, false
		}
		if last := len(out) - 1; kind == "stream" && last >= 0 && out[last].Type == "stream" && out[last].Name == v.Name {
			out[last].Text += v.Text
			continue
		}
		o := &NotebookOutput{
			Type: kind, Name: v.Name, Text: v.Text, Data: v.Data, Metadata: v.Metadata, Count: v.Count,
			Ename: v.Ename, Evalue: v.Evalue, Traceback: v.Traceback, displayID: v.Transient.Display,
		}
		if o.displayID != "" {
			shown[o.displayID] = append(shown[o.displayID], o)
		}
		out = append(out, o)
	}
	return out
}

func intOf(v any) int {
	f, _ := v.(float64)
	return int(f)
}

// MarshalJSON writes an output as nbformat 4 has it.
func (o *NotebookOutput) MarshalJSON() ([]byte, error) {
	v := map[string]any{"output_type": o.Type}
	object := func(m map[string]any) map[string]any {
		if m == nil {
			return map[string]any{}
		}
		return m
	}
	switch o.Type {
	case "stream":
		v["name"], v["text"] = o.Name, o.Text
	case "error":
		v["ename"], v["evalue"], v["traceback"] = o.Ename, o.Evalue, o.Traceback
	case "execute_result":
		v["execution_count"] = o.Count
		fallthrough
	default:
		v["data"], v["metadata"] = object(o.Data), object(o.Metadata)
	}
	return json.Marshal(v)
}

// Bytes is the notebook's file, with the outputs of the last Run.
func (n *Notebook) Bytes() ([]byte, error) {
	cells := make([]map[string]any, len(n.Cells))
	for i, c := range n.Cells {
		v := map[string]any{}
		for k, raw := range c.rest {
			v[k] = raw
		}
		v["source"] = c.Source
		if c.Type == "code" {
			v["outputs"] = append([]*NotebookOutput{}, c.Outputs...)
			v["execution_count"] = nil
			if c.Count > 0 {
				v["execution_count"] = c.Count
			}
		}
		cells[i] = v
	}
	top := map[string]any{}
	for k, raw := range n.rest {
		top[k] = raw
	}
	top["cells"] = cells
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(top)
	return buf.Bytes(), err
}
