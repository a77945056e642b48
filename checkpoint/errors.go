package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf8"
)

// TensorError reports a tensor that is absent, out of place, or not what was
// asked for. File is the safetensors file, or the model directory where no
// file holds the tensor.
type TensorError struct{ Tensor, File, Want, Got string }

func (e *TensorError) Error() string {
	in := ""
	if e.File != "" {
		in = " in " + show(e.File)
	}
	return fmt.Sprintf("checkpoint: %s%s: want %s, got %s; download the snapshot again", show(e.Tensor), in, e.Want, e.Got)
}

// FileError reports a file that is absent, unreadable or not safetensors.
type FileError struct {
	File   string
	Offset int64 // byte of the file where it goes wrong; 0 means the file as a whole
	Want   string
	Got    string
	Fix    string // what to do; "" means to download the file again
	Err    error  // the system's error, or nil
}

func (e *FileError) Error() string {
	at := ""
	if e.Offset > 0 {
		at = fmt.Sprintf(" at byte %d", e.Offset)
	}
	fix := e.Fix
	if fix == "" {
		fix = "download the file again"
	}
	return fmt.Sprintf("checkpoint: %s%s: want %s, got %s; %s", show(e.File), at, e.Want, e.Got, fix)
}

func (e *FileError) Unwrap() error { return e.Err }

// reason is an error's text without the path, which the message already gives.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// show makes text from a file fit one line of an error.
func show(s string) string {
	if q := strconv.Quote(s); len(q) != len(s)+2 || strings.Contains(s, " ") || s == "" {
		return strconv.Quote(clip(s))
	}
	return clip(s)
}

// clip shortens s to about 200 bytes.
func clip(s string) string {
	if len(s) <= 200 {
		return s
	}
	n := 200
	for n > 196 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
