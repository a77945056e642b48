package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"deltafin/models"
)

// Every example of every --help runs, but for the kernel's, which waits for Jupyter;
// so do the commands of the overview.
func TestExamples(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the examples are written for a POSIX shell")
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatalf("%v: the examples run in a shell", err)
	}
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// What they read.
	write("prompt.txt", "Once upon a time")
	write("texts.jsonl", `{"text": "The capital of France is"}`+"\n")
	write("conversation.json", `{"messages": [{"role": "user", "content": "Hello."}]}`)
	model, err := models.Unpack(filepath.Join(dir, "state", "cache"), "nano-k3")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "models"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(model, filepath.Join(dir, "models", "k3")); err != nil {
		t.Fatal(err)
	}

	var grammar commands
	parser, err := kong.New(&grammar, kong.Name("deltafin"))
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{"": overview}
	for _, node := range parser.Model.Leaves(true) {
		pages[node.Path()] = node.Detail
		if node.Parent != nil && node.Parent.Type == kong.CommandNode {
			pages[node.Parent.Path()] = node.Parent.Detail
		}
	}
	example := regexp.MustCompile(`(?m)^ +(deltafin .*)$`)
	ran := 0
	for command, page := range pages {
		found := example.FindAllStringSubmatch(page, -1)
		if len(found) == 0 {
			t.Errorf("deltafin %s --help has no example", command)
		}
		for _, match := range found {
			line := match[1]
			if command == "" {
				line, _, _ = strings.Cut(line, "      ") // what it does follows
				if strings.Contains(line, "COMMAND") {
					continue
				}
			}
			if command == "kernel" {
				continue
			}
			// uninstall removes what install wrote.
			if command == "uninstall" {
				line = strings.Replace(line, " uninstall ", " install ", 1) + " && " + line
			}
			// A random model of K3's widths is gigabytes: only what it would be is said.
			if strings.HasPrefix(line, "deltafin synth ") && !strings.Contains(line, "--hidden") && !strings.Contains(line, "--dry-run") {
				line += " --dry-run"
			}
			if testing.Short() && strings.HasPrefix(line, "deltafin bench kernels ") {
				t.Logf("%s: not in a short run: measuring the machine's limits takes its time under the race detector", line)
				continue
			}
			cmd := exec.Command(shell, "-c", line)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "HOME="+dir, "DELTAFIN_STATE="+filepath.Join(dir, "state"), "JUPYTER_DATA_DIR="+filepath.Join(dir, "data"), "DELTAFIN_MODEL=")
			begin := time.Now()
			said, err := cmd.CombinedOutput()
			t.Logf("%s: %v", line, time.Since(begin).Round(time.Millisecond))
			if strings.HasPrefix(line, "deltafin doctor") && strings.Contains(string(said), "problem") {
				err = nil // what it finds on this machine is its matter
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", line, err, said)
			} else if len(said) == 0 && !strings.Contains(line, " > ") {
				t.Errorf("%s: printed nothing", line)
			}
			ran++
		}
	}
	if ran < 15 {
		t.Errorf("%d examples ran; there were 15 at least", ran)
	}
}
