// Gotest runs go test -json with its arguments and prints what a reader needs: each
// package's line, the whole output of what failed, why a test was skipped, and at
// the end how many passed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// event is one line of go test -json.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Output     string
}

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		return 1
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "gotest: %v; install Go 1.26\n", err)
		return 1
	}

	var passed, failed, skipped int
	output := map[string]*strings.Builder{} // by package and test
	lines := bufio.NewReader(pipe)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				os.Stdout.Write(line)
				continue
			}
			key := e.Package + " " + e.Test
			switch e.Action {
			case "build-output":
				fmt.Print(e.Output)
			case "output":
				if e.Test == "" && (strings.HasPrefix(e.Output, "ok") || strings.HasPrefix(e.Output, "FAIL\t")) {
					fmt.Print(e.Output)
					continue
				}
				if output[key] == nil {
					output[key] = &strings.Builder{}
				}
				output[key].WriteString(e.Output)
			case "pass", "skip", "fail":
				text := ""
				if output[key] != nil {
					text = output[key].String()
					delete(output, key)
				}
				switch {
				case e.Action == "fail":
					if e.Test != "" {
						failed++
					}
					fmt.Print(text)
				case e.Test == "":
				case e.Action == "pass":
					passed++
				default:
					skipped++
					fmt.Print(text)
				}
			}
		}
		if err != nil {
			break
		}
	}
	err = cmd.Wait()
	if err != nil && failed == 0 {
		failed = 1 // a package that does not build, or a test binary that died
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if err != nil || passed == 0 {
		return 1
	}
	return 0
}
