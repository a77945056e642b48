package cell

import (
	"fmt"
	"reflect"
	"strings"

	"deltafin/kernel/display"
)

// render shows the values of a cell's last expression: one by its own bundle
// where it has one, else as text.
func render(values []any) display.Bundle {
	if len(values) == 1 {
		if d, ok := values[0].(Displayer); ok {
			if v := reflect.ValueOf(values[0]); v.Kind() != reflect.Pointer || !v.IsNil() {
				return d.DisplayBundle()
			}
		}
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = format(v)
	}
	return display.Text(strings.Join(texts, ", "))
}

func format(v any) string { return fmt.Sprintf("%+v", v) }
