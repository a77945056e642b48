package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"deltafin": func() { os.Exit(Main()) },
	})
}

// TestScript runs the scripts of testdata/script, each in a directory of its own.
// They share the unpacked model.
func TestScript(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("DELTAFIN_STATE", state)
			e.Setenv("NO_COLOR", "1")
			e.Setenv("PLATFORM", runtime.GOOS+"/"+runtime.GOARCH)
			return nil
		},
	})
}
