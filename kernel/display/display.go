// Package display builds MIME bundles: what a notebook shows of a value, rich in
// a browser and plain in a terminal.
//
// Every chart comes in three forms. application/vnd.vegalite.v5+json is drawn by
// JupyterLab itself, with tooltips; image/svg+xml is for viewers that don't
// (nbconvert, editors, plain files); text/plain is for a terminal of 80 columns.
// In SVG, gonum's plot draws axes, bars and lines; title, keys and the viewer's font
// are added here. A heat map is axes with one PNG of a pixel a cell, since gonum draws
// each cell as a path: of 92 layers of 896 experts that would be some 8 MB, and so it
// fits a notebook.
//
// Pictures have a description for readers who don't see them: in the SVG itself, and
// as "alt" in the metadata of their MIME type, where nbconvert's templates read it.
//
// Colours: text and axes are a grey that reads on white and on near black, and
// backgrounds are transparent, since a front end's theme is not known here and an
// output outlives a change of theme. Data has viridis and the Okabe–Ito colours,
// which stay apart for colour-blind readers.
//
// Text from outside is escaped for the form it goes to: HTML, SVG, a Vega
// expression, or a terminal (control characters).
package display

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html"
	"image"
	_ "image/gif" // for ImageFile
	_ "image/jpeg"
	"image/png"
	"reflect"
	"slices"
	"strings"
)

// MIME types of a Bundle's data.
const (
	MIMEText     = "text/plain"
	MIMEHTML     = "text/html"
	MIMEMarkdown = "text/markdown"
	MIMELatex    = "text/latex"
	MIMESVG      = "image/svg+xml"
	MIMEPNG      = "image/png"
	MIMEVegaLite = "application/vnd.vegalite.v5+json"
)

// Value is a value that displays itself: a cell that ends in it shows its bundle,
// which must have MIMEText.
type Value interface{ DisplayBundle() Bundle }

// Of returns the bundle of a value that has more to show than its Go syntax:
// a Bundle, a Value, an image.Image, one with methods such as HTML() string (see
// byMethods), or a slice of structs (a table). ok is false for every other value, whose text is the interpreter's business, and for a nil
// pointer. Methods of v that panic make Of panic.
func Of(v any) (b Bundle, ok bool) {
	if isNil(v) {
		return Bundle{}, false
	}
	switch v := v.(type) {
	case Bundle:
		return v.complete(), true
	case *Bundle:
		return v.complete(), true
	case Value:
		return v.DisplayBundle().complete(), true
	case image.Image:
		b, err := Image(v)
		return b, err == nil
	}
	if b, ok := byMethods(v); ok {
		return b, true
	}
	return table(reflect.ValueOf(v))
}

// byMethods is the bundle of a value whose methods give it in one form or several:
// HTML, Markdown, Latex and SVG a string, PNG and JPEG the file's bytes, as values in
// other kernels for Go have them. Its text is what String says, or that of the first form.
func byMethods(v any) (b Bundle, ok bool) {
	add := func(part Bundle) {
		if !ok {
			b, ok = Bundle{Data: map[string]any{}, Metadata: map[string]any{}}, true
			if s, is := v.(fmt.Stringer); is {
				b.Data[MIMEText] = s.String()
			}
		}
		for mime, data := range part.Data {
			if _, has := b.Data[mime]; !has {
				b.Data[mime] = data
			}
		}
		for mime, data := range part.Metadata {
			b.Metadata[mime] = data
		}
	}
	if v, is := v.(interface{ HTML() string }); is {
		add(HTML(v.HTML()))
	}
	if v, is := v.(interface{ Markdown() string }); is {
		add(Markdown(v.Markdown()))
	}
	if v, is := v.(interface{ Latex() string }); is {
		source := v.Latex()
		add(bundle(source, MIMELatex, source))
	}
	var files [][]byte
	if v, is := v.(interface{ SVG() string }); is {
		files = append(files, []byte(v.SVG()))
	}
	if v, is := v.(interface{ PNG() []byte }); is {
		files = append(files, v.PNG())
	}
	if v, is := v.(interface{ JPEG() []byte }); is {
		files = append(files, v.JPEG())
	}
	for _, file := range files {
		if part, err := ImageFile(file); err == nil {
			add(part)
		}
	}
	return b, ok
}

// complete gives b the parts that every bundle has.
func (b Bundle) complete() Bundle {
	data, metadata := b.Data, b.Metadata
	if metadata == nil {
		metadata = map[string]any{}
	}
	if _, ok := data[MIMEText]; !ok {
		with := map[string]any{MIMEText: ""}
		for k, v := range data {
			with[k] = v
		}
		data = with
	}
	return Bundle{Data: data, Metadata: metadata}
}

// HTML is the bundle of HTML source, shown as it is. Its text form is the text
// between the tags.
func HTML(source string) Bundle {
	return bundle(htmlText(source), MIMEHTML, source)
}

// Markdown is the bundle of Markdown source, which is also its text form.
func Markdown(source string) Bundle {
	return bundle(source, MIMEMarkdown, source)
}

// maxPixels is how large an image can be: an image.Uniform has some 10¹⁸ pixels.
const maxPixels = 1 << 26

// Image is the bundle of a picture, as PNG.
func Image(m image.Image) (Bundle, error) {
	if size := m.Bounds().Size(); size.X > maxPixels || size.Y > maxPixels || size.X*size.Y > maxPixels {
		return Bundle{}, fmt.Errorf("display: an image of %d × %d pixels; want at most %d in all", size.X, size.Y, maxPixels)
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, m); err != nil {
		return Bundle{}, fmt.Errorf("display: %w", err)
	}
	size := m.Bounds().Size()
	b := bundle(fmt.Sprintf("image, %d × %d", size.X, size.Y), MIMEPNG, base64.StdEncoding.EncodeToString(buf.Bytes()))
	b.Metadata[MIMEPNG] = map[string]any{"width": size.X, "height": size.Y, "alt": b.Data[MIMEText]}
	return b, nil
}

// ImageFile is the bundle of the content of a PNG, JPEG, GIF or SVG file.
func ImageFile(data []byte) (Bundle, error) {
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err == nil && slices.Contains([]string{"png", "jpeg", "gif"}, format) { // others may be registered, which browsers don't show
		text := fmt.Sprintf("image, %d × %d", config.Width, config.Height)
		b := bundle(text, "image/"+format, base64.StdEncoding.EncodeToString(data))
		b.Metadata["image/"+format] = map[string]any{"alt": text}
		return b, nil
	}
	start := data[:min(len(data), 1024)]
	if bytes.Contains(start, []byte("<svg")) {
		b := bundle("image, SVG", MIMESVG, strings.ToValidUTF8(string(data), "\ufffd"))
		b.Metadata[MIMESVG] = map[string]any{"alt": b.Data[MIMEText]}
		return b, nil
	}
	return Bundle{}, fmt.Errorf("display: want a PNG, JPEG, GIF or SVG image, got %d bytes that begin %.16q", len(data), start)
}

// bundle makes a bundle of a text form and one other.
func bundle(text, mime string, data any) Bundle {
	return Bundle{Data: map[string]any{MIMEText: text, mime: data}, Metadata: map[string]any{}}
}

// htmlText drops the tags of HTML source, and what style and script elements
// hold, keeping line structure roughly.
func htmlText(source string) string {
	var b strings.Builder
	for source != "" {
		before, rest, found := strings.Cut(source, "<")
		b.WriteString(html.UnescapeString(before))
		if !found {
			break
		}
		tag, after, closed := strings.Cut(rest, ">")
		if !closed {
			break
		}
		source = after
		name := strings.ToLower(strings.TrimPrefix(tag, "/"))
		if i := strings.IndexAny(name, " \t\r\n/"); i >= 0 {
			name = name[:i]
		}
		switch name {
		case "style", "script":
			if end := strings.Index(strings.ToLower(source), "</"+name); end >= 0 && !strings.HasPrefix(tag, "/") {
				source = source[end:]
			}
		case "td", "th":
			b.WriteByte(' ')
		case "br", "p", "div", "tr", "li", "h1", "h2", "h3", "h4", "table", "ul", "ol", "pre":
			b.WriteByte('\n')
		}
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
