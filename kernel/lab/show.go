package lab

import (
	"crypto/rand"
	"fmt"
	"image"
	"os"
	"sync"
	"time"

	"deltafin/kernel/display"
	"deltafin/kernel/display/widget"
)

// displayID is a new id, unique among the notebook's.
func (l *Lab) displayID(of string) string { return of + "-" + rand.Text() }

// Display shows a value now, in its richest form, as a cell's last value is shown.
func (l *Lab) Display(values ...any) {
	for _, v := range values {
		l.session.Output().Display(display.Render(v), widget.DisplayID(v))
	}
}

// Shown is a value on display that another can take the place of.
type Shown struct {
	ID  string // the protocol's display_id
	out Output
}

// Show shows a value as Display does, and returns what Update changes in place,
// from any goroutine and also from a later cell.
//
//	at := Show("not yet")
//	for i := range 3 {
//		time.Sleep(time.Second)
//		at.Update(fmt.Sprint(i+1, " of 3"))
//	}
func (l *Lab) Show(v any) *Shown {
	s := &Shown{ID: l.displayID("shown"), out: l.session.Output()}
	s.out.Display(display.Render(v), s.ID)
	return s
}

// Update shows v in the place of what was shown before.
func (s *Shown) Update(v any) { s.out.Update(display.Render(v), s.ID) }

// String names what is on display; the value itself stands where it was shown.
func (s *Shown) String() string { return "shown as " + s.ID }

// ClearOutput removes what the cell has shown so far; with wait only when it shows
// the next thing, so that what replaces it doesn't flicker.
func (l *Lab) ClearOutput(wait bool) { l.session.Output().Clear(wait) }

// HTML is HTML source that a cell shows as it is.
func (l *Lab) HTML(source string) display.Bundle { return display.HTML(source) }

// Markdown is Markdown source that a cell shows.
func (l *Lab) Markdown(source string) display.Bundle { return display.Markdown(source) }

// Image is a picture to show: an image.Image, the bytes of a PNG, JPEG, GIF or SVG
// file, or its path.
func (l *Lab) Image(v any) display.Bundle {
	var b display.Bundle
	var err error
	switch v := v.(type) {
	case image.Image:
		b, err = display.Image(v)
	case []byte:
		b, err = display.ImageFile(v)
	case string:
		var data []byte
		if data, err = os.ReadFile(v); err == nil {
			b, err = display.ImageFile(data)
		}
	default:
		err = fmt.Errorf("want an image.Image, the bytes of an image file or its path, got %T", v)
	}
	if err != nil {
		fail("Image", err)
	}
	return b
}

// Table shows a slice as a table: of structs, maps, slices or plain values.
func (l *Lab) Table(rows any) display.Bundle {
	t, err := display.TableOf(rows)
	if err != nil {
		fail("Table", err)
	}
	return t.DisplayBundle()
}

// Bars shows a bar for each label.
func (l *Lab) Bars(title string, labels []string, values []float64) display.Bundle {
	return display.Bars{Title: title, Labels: labels, Series: []display.Series{{Name: title, Values: values}}}.DisplayBundle()
}

// Lines shows values as a line over 0, 1, 2 and so on.
func (l *Lab) Lines(title string, values []float64) display.Bundle {
	return display.Lines{Title: title, Series: []display.Series{{Name: title, Values: values}}}.DisplayBundle()
}

// ProgressBar is how far long work has come, shown in place. Its methods may be
// called from any goroutine.
type ProgressBar struct {
	lab   *Lab
	out   Output
	id    string
	start time.Time

	mu       sync.Mutex
	progress display.Progress
	changed  time.Time
}

// Progress shows a progress bar for work of total steps; 0 means that the total is
// not known.
//
//	bar := Progress(len(prompts))
//	for _, p := range prompts {
//		Generate(p, Params{Quiet: true})
//		bar.Add(1)
//	}
func (l *Lab) Progress(total int) *ProgressBar {
	b := &ProgressBar{lab: l, out: l.session.Output(), id: l.displayID("progress"), start: l.now()}
	b.progress.Total = int64(total)
	b.changed = b.start
	b.out.Display(b.progress.DisplayBundle(), b.id)
	return b
}

// String is the bar as text.
func (b *ProgressBar) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprint(b.progress.DisplayBundle().Data[display.MIMEText])
}

// Add says that n more steps are done.
func (b *ProgressBar) Add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(b.progress.Done + int64(n))
}

// Set says that n steps are done.
func (b *ProgressBar) Set(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(int64(n))
}

// Title names the work.
func (b *ProgressBar) Title(title string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.progress.Title = title
	b.out.Update(b.progress.DisplayBundle(), b.id)
}

// set shows the new state, the last one always and others now and then.
func (b *ProgressBar) set(done int64) {
	now := b.lab.now()
	b.progress.Done, b.progress.Elapsed = done, now.Sub(b.start)
	if now.Sub(b.changed) < progressEvery && done != b.progress.Total {
		return
	}
	b.changed = now
	b.out.Update(b.progress.DisplayBundle(), b.id)
}

// Input asks for a line of text.
func (l *Lab) Input(prompt string) string { return l.input("Input", prompt, false) }

// Password asks for a line of text that is not shown.
func (l *Lab) Password(prompt string) string { return l.input("Password", prompt, true) }

func (l *Lab) input(fn, prompt string, password bool) string {
	s, err := l.session.Output().Input(l.session.Context(), prompt, password)
	if err != nil {
		fail(fn, err)
	}
	return s
}
