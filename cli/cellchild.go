package cli

import (
	"context"
	"reflect"
	"sync"

	"deltafin/kernel"
	"deltafin/kernel/cell"
	"deltafin/kernel/display"
	"deltafin/kernel/display/widget"
	"deltafin/kernel/lab"
)

type cellChildCmd struct{}

// Run is the process in which a kernel's cells run: cell's half of it, with the
// functions of lab in scope.
func (cellChildCmd) Run() error {
	docs := map[string]cell.Doc{}
	for name, doc := range lab.Docs() {
		docs[name] = cell.Doc(doc)
	}
	var once sync.Once
	var l *lab.Lab // one for all shells
	return cell.ChildMain(cell.Bindings{
		Exports: func(s *cell.Session) map[string]reflect.Value {
			once.Do(func() { l = lab.New(cellSession{s}) })
			return l.Exports()
		},
		Docs: docs,
		Comm: func(_ context.Context, m kernel.CommMessage, out kernel.Output) {
			l.Comm(widget.Message(m), func(m widget.Message) { out.Comm(kernel.CommMessage(m)) })
		},
	})
}

// cellSession is a cell.Session as lab wants it.
type cellSession struct{ *cell.Session }

func (s cellSession) Output() lab.Output    { return s.Session.Output() }
func (s cellSession) Cell() widget.Sink     { return s.Session.Cell() }
func (s cellSession) Comm(m widget.Message) { s.Session.Cell().Comm(kernel.CommMessage(m)) }

func (s cellSession) Capture(to widget.Sink, f func()) {
	s.Session.Capture(capture{s.Session.Cell(), to}, f)
}

// capture is a cell's output of which a part goes elsewhere.
type capture struct {
	kernel.Output
	to widget.Sink
}

func (c capture) Stream(name, text string)            { c.to.Stream(name, text) }
func (c capture) Display(b display.Bundle, id string) { c.to.Display(b, id) }
func (c capture) Update(b display.Bundle, id string)  { c.to.Update(b, id) }
func (c capture) Clear(wait bool)                     { c.to.Clear(wait) }
func (c capture) Result(b display.Bundle)             { c.to.Display(b, "") }
