package cli

import (
	"reflect"

	"deltafin/kernel/cell"
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
	return cell.ChildMain(cell.Bindings{
		Exports: func(s *cell.Session) map[string]reflect.Value { return lab.New(cellSession{s}).Exports() },
		Docs:    docs,
	})
}

// cellSession is a cell.Session as lab wants it.
type cellSession struct{ *cell.Session }

func (s cellSession) Output() lab.Output { return s.Session.Output() }
