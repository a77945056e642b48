package cell

import (
	"fmt"
	"log"
	"reflect"
)

// logSymbols is package log itself, where the interpreter's tables have a stand-in
// whose Logger is another type. Fatal and its like end the cell, as os.Exit does: what
// they would end is the process of all cells.
func (c *child) logSymbols() map[string]reflect.Value {
	return map[string]reflect.Value{
		"Default":   reflect.ValueOf(log.Default),
		"Fatal":     reflect.ValueOf(func(v ...any) { c.logFatal(log.Default(), v...) }),
		"Fatalf":    reflect.ValueOf(func(format string, v ...any) { c.logFatalf(log.Default(), format, v...) }),
		"Fatalln":   reflect.ValueOf(func(v ...any) { c.logFatalln(log.Default(), v...) }),
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

// fatals are the child's functions for methods of a Logger that end the process.
var fatals = map[string]string{
	"(*log.Logger).Fatal":   "LogFatal",
	"(*log.Logger).Fatalf":  "LogFatalf",
	"(*log.Logger).Fatalln": "LogFatalln",
}

func (c *child) logFatal(l *log.Logger, v ...any) { c.fatal(l, fmt.Sprint(v...)) }
func (c *child) logFatalf(l *log.Logger, format string, v ...any) {
	c.fatal(l, fmt.Sprintf(format, v...))
}
func (c *child) logFatalln(l *log.Logger, v ...any) { c.fatal(l, fmt.Sprintln(v...)) }

// fatal logs text and ends the cell.
func (c *child) fatal(l *log.Logger, text string) {
	l.Output(3, text)
	c.end("log.Fatal")
}
