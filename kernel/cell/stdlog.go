package cell

import (
	"log"
	"reflect"
	"strings"
)

// logSymbols is package log itself, where the interpreter's tables have a stand-in
// whose Logger is another type. Fatal and its like panic: what they would end is the
// process of all cells.
func logSymbols() map[string]reflect.Value {
	return map[string]reflect.Value{
		"Default":   reflect.ValueOf(log.Default),
		"Fatal":     reflect.ValueOf(log.Panic),
		"Fatalf":    reflect.ValueOf(log.Panicf),
		"Fatalln":   reflect.ValueOf(log.Panicln),
		"Flags":     reflect.ValueOf(log.Flags),
		"Logger":    reflect.ValueOf((*log.Logger)(nil)),
		"New":       reflect.ValueOf(log.New),
		"Output":    reflect.ValueOf(log.Output),
		"Panic":     reflect.ValueOf(log.Panic),
		"Panicf":    reflect.ValueOf(log.Panicf),
		"Panicln":   reflect.ValueOf(log.Panicln),
		"Prefix":    reflect.ValueOf(log.Prefix),
		"Print":     reflect.ValueOf(log.Print),
		"Printf":    reflect.ValueOf(log.Printf),
		"Println":   reflect.ValueOf(log.Println),
		"SetFlags":  reflect.ValueOf(log.SetFlags),
		"SetOutput": reflect.ValueOf(log.SetOutput),
		"SetPrefix": reflect.ValueOf(log.SetPrefix),
		"Writer":    reflect.ValueOf(log.Writer),
	}
}

// stays is the method that a call of the compiled method full, called name, becomes:
// a Logger's Fatal would end the process of all cells.
func stays(full, name string) string {
	if verb, ok := strings.CutPrefix(full, "(*log.Logger).Fatal"); ok {
		return "Panic" + verb
	}
	return name
}
