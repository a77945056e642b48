// Package doctor explains a broken environment: why Jupyter doesn't find the kernel,
// why it doesn't start, what it will lack. Each Check looks at one thing and gives
// findings of what was expected, what was found and what to do. What the checks may
// know of the process comes in an Environment.
package doctor

import (
	"context"
	"fmt"
)

// Level says how bad a finding is.
type Level string

const (
	OK      Level = "ok"
	Warning Level = "warning" // works, with less than there could be
	Problem Level = "problem" // something doesn't work
)

// Finding is one line of the report.
type Finding struct {
	Check string `json:"check"` // the check's name
	Level Level  `json:"level"`
	Found string `json:"found"`
	Want  string `json:"want,omitempty"` // "" when all is well
	Do    string `json:"do,omitempty"`   // likewise
}

func (f Finding) String() string {
	if f.Level == OK {
		return f.Found
	}
	s := fmt.Sprintf("want %s, found %s", f.Want, f.Found)
	if f.Do != "" {
		s += "; " + f.Do
	}
	return s
}

// Check looks at one thing. Run gives at least one finding, and fills in neither
// Finding.Check nor an error: what it can't find out is a finding too.
type Check struct {
	Name string
	Run  func(ctx context.Context) []Finding
}

// Run makes the checks one after the other and hands on each finding as it comes. It
// stops early, with ctx's error, when ctx is done.
func Run(ctx context.Context, checks []Check, each func(Finding)) error {
	for _, c := range checks {
		findings := c.Run(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, f := range findings {
			f.Check = c.Name
			each(f)
		}
	}
	return nil
}

func okf(format string, args ...any) Finding {
	return Finding{Level: OK, Found: fmt.Sprintf(format, args...)}
}

func warn(want, found, do string) Finding {
	return Finding{Level: Warning, Want: want, Found: found, Do: do}
}

func problem(want, found, do string) Finding {
	return Finding{Level: Problem, Want: want, Found: found, Do: do}
}
