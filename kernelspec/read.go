package kernelspec

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Installed is a kernel as its kernel.json describes it, whoever wrote it.
type Installed struct {
	Dir           string            `json:"-"` // with kernel.json in it; its base is the kernel's name
	Argv          []string          `json:"argv"`
	DisplayName   string            `json:"display_name"`
	InterruptMode string            `json:"interrupt_mode"`
	Env           map[string]string `json:"env"`
}

// Read parses a folder's kernel.json. The error wraps fs.ErrNotExist where there is
// none.
func Read(dir string) (Installed, error) {
	i := Installed{Dir: dir}
	b, err := os.ReadFile(filepath.Join(dir, specFile))
	if err != nil {
		return i, fmt.Errorf("kernelspec: %w", err)
	}
	if err := json.Unmarshal(b, &i); err != nil {
		return i, fmt.Errorf("kernelspec: %s: %w", filepath.Join(dir, specFile), err)
	}
	return i, nil
}

// Name is what front ends ask for: Jupyter lowers the folder's.
func (i Installed) Name() string { return strings.ToLower(filepath.Base(i.Dir)) }

// Ours says whether Install wrote it.
func (i Installed) Ours() bool {
	return len(i.Argv) > len(command) && slices.Equal(i.Argv[1:1+len(command)], command)
}

// Model is the --model of the kernel's command, or the DELTAFIN_MODEL that it is
// started with; "" where it has neither.
func (i Installed) Model() string {
	for at, a := range i.Argv {
		if a == "--model" && at+1 < len(i.Argv) {
			return i.Argv[at+1]
		}
		if model, ok := strings.CutPrefix(a, "--model="); ok {
			return model
		}
	}
	return i.Env["DELTAFIN_MODEL"]
}

// Logos are the names of the files that a folder of ours has beside kernel.json.
func Logos() []string { return []string{"logo-32x32.png", "logo-64x64.png", "logo-svg.svg"} }
