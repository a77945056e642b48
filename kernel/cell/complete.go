package cell

import (
	"deltafin/kernel"
	"deltafin/kernel/display"
)

func (s *shell) complete(code string, cursor int) kernel.Completions {
	return kernel.Completions{Start: cursor, End: cursor}
}

func (s *shell) inspect(code string, cursor, detail int) (display.Bundle, bool) {
	return display.Bundle{}, false
}
