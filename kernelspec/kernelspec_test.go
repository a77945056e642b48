package kernelspec_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"deltafin/kernelspec"
)

// binary is an absolute path with spaces.
func binary(t *testing.T) string { return filepath.Join(t.TempDir(), "my programs", "deltafin") }

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestInstall(t *testing.T) {
	kernels := filepath.Join(t.TempDir(), "with space", "kernels")
	bin := binary(t)
	for _, args := range [][]string{nil, {"--model", "a <model> & more"}} {
		dir, err := kernelspec.Install(kernels, kernelspec.Spec{Binary: bin, Args: args}, false)
		if err != nil {
			t.Fatal(err)
		}
		if dir != filepath.Join(kernels, "deltafin") {
			t.Errorf("folder %s", dir)
		}
		if got, want := names(t, kernels), []string{"deltafin"}; !reflect.DeepEqual(got, want) {
			t.Errorf("kernels %v, want %v", got, want)
		}
		if got, want := names(t, dir), []string{"kernel.json", "logo-32x32.png", "logo-64x64.png", "logo-svg.svg"}; !reflect.DeepEqual(got, want) {
			t.Errorf("files %v, want %v", got, want)
		}
		b, err := os.ReadFile(filepath.Join(dir, "kernel.json"))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		argv := []any{bin, "kernel", "--connection-file", "{connection_file}"}
		for _, a := range args {
			argv = append(argv, a)
		}
		want := map[string]any{
			"argv": argv, "language": "go", "display_name": "Go (deltafin)", "interrupt_mode": "message",
			"kernel_protocol_version": "5.5", "metadata": map[string]any{"debugger": false},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("kernel.json %v, want %v", got, want)
		}
	}
	if dir, err := kernelspec.Uninstall(kernels, ""); err != nil || dir != filepath.Join(kernels, "deltafin") {
		t.Errorf("Uninstall: %s, %v", dir, err)
	}
	if got := names(t, kernels); len(got) != 0 {
		t.Errorf("left over: %v", got)
	}
	var missing *kernelspec.NotInstalledError
	if _, err := kernelspec.Uninstall(kernels, ""); !errors.As(err, &missing) {
		t.Errorf("a second Uninstall: %v", err)
	}
}

func TestNames(t *testing.T) {
	kernels := t.TempDir()
	for _, name := range []string{"..", ".", "../x", "a/b", `a\b`, "a b", "Ünder", "Upper", "~x", "-x", strings.Repeat("x", 101), "a\n"} {
		var ne *kernelspec.NameError
		if _, err := kernelspec.Install(kernels, kernelspec.Spec{Name: name, Binary: binary(t)}, false); !errors.As(err, &ne) || ne.Name != name {
			t.Errorf("Install %q: %v", name, err)
		}
		if _, err := kernelspec.Uninstall(kernels, name); !errors.As(err, &ne) {
			t.Errorf("Uninstall %q: %v", name, err)
		}
	}
	if _, err := kernelspec.Install(kernels, kernelspec.Spec{Name: "deltafin-k3.big_2", Binary: binary(t)}, false); err != nil {
		t.Error(err)
	}
	if _, err := kernelspec.Install(kernels, kernelspec.Spec{Binary: "deltafin"}, false); err == nil {
		t.Error("a relative path was taken")
	}
	for _, bad := range []string{"\xff", "{prefix}", "a {resource_dir} b"} {
		if _, err := kernelspec.Install(kernels, kernelspec.Spec{Binary: binary(t) + bad}, false); err == nil {
			t.Errorf("a path with %q was taken", bad)
		}
		if _, err := kernelspec.Install(kernels, kernelspec.Spec{Binary: binary(t), Args: []string{"--model", bad}}, false); err == nil {
			t.Errorf("an argument with %q was taken", bad)
		}
	}
	for _, good := range []string{`it's "quoted" {x} ünï🦈\`, "{connection_file", "$HOME %APPDATA% `ls`"} {
		dir, err := kernelspec.Install(kernels, kernelspec.Spec{Binary: binary(t) + good}, false)
		if err != nil {
			t.Fatal(err)
		}
		if i, err := kernelspec.Read(dir); err != nil || !strings.HasSuffix(i.Argv[0], good) {
			t.Errorf("%q became %q, %v", good, i.Argv, err)
		}
	}
}

// Another kernel's folder is neither replaced nor removed.
func TestForeign(t *testing.T) {
	kernels := t.TempDir()
	for name, content := range map[string]string{
		"python3": `{"argv": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "Python 3"}`,
		"broken":  `{`,
		"none":    "",
	} {
		dir := filepath.Join(kernels, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		file := "kernel.json"
		if content == "" {
			file = "notes.txt"
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		var fe *kernelspec.ForeignError
		if _, err := kernelspec.Install(kernels, kernelspec.Spec{Name: name, Binary: binary(t)}, false); !errors.As(err, &fe) {
			t.Errorf("Install over %s: %v", name, err)
		}
		if _, err := kernelspec.Uninstall(kernels, name); !errors.As(err, &fe) {
			t.Errorf("Uninstall %s: %v", name, err)
		}
	}
	if got := names(t, kernels); len(got) != 3 {
		t.Errorf("kernels %v", got)
	}
	// Unless that is asked for.
	dir, err := kernelspec.Install(kernels, kernelspec.Spec{Name: "broken", Binary: binary(t)}, true)
	if err != nil {
		t.Fatal(err)
	}
	if i, err := kernelspec.Read(dir); err != nil || !i.Ours() {
		t.Errorf("with force: %+v, %v", i, err)
	}
}

// Where a kernel is, is not for its kernel.json to say.
func TestReadDir(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kernel.json"), []byte(`{"argv": ["x"], "dir": "/elsewhere/deltafin"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if i, err := kernelspec.Read(dir); err != nil || i.Dir != dir {
		t.Errorf("Dir: want %s, got %s, %v", dir, i.Dir, err)
	}
}

// What an Install left that was killed is completed by the next; what others put into
// the folder outlives an uninstall, and so does what a link leads to.
func TestLeftovers(t *testing.T) {
	kernels := t.TempDir()
	dir := filepath.Join(kernels, "deltafin")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("logo-32x32.png", "half")
	write("kernel.json123~new", "{")
	if _, err := kernelspec.Uninstall(kernels, ""); !errors.As(err, new(*kernelspec.NotInstalledError)) {
		t.Errorf("Uninstall of half an installation: %v", err)
	}
	if _, err := kernelspec.Install(kernels, kernelspec.Spec{Binary: binary(t)}, false); err != nil {
		t.Fatal(err)
	}
	write("kernel.js", "theirs")
	var left *kernelspec.LeftError
	if _, err := kernelspec.Uninstall(kernels, ""); !errors.As(err, &left) {
		t.Errorf("Uninstall with a file of another's: %v", err)
	}
	if got, want := names(t, dir), []string{"kernel.js"}; !reflect.DeepEqual(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
	elsewhere := t.TempDir()
	if _, err := kernelspec.Install(elsewhere, kernelspec.Spec{Binary: binary(t)}, false); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(elsewhere, "deltafin"), filepath.Join(kernels, "linked")); err != nil {
		t.Skip("no links here: ", err)
	}
	if _, err := kernelspec.Uninstall(kernels, "linked"); err != nil {
		t.Fatal(err)
	}
	if got := names(t, filepath.Join(elsewhere, "deltafin")); len(got) != 4 {
		t.Errorf("of what the link led to, %v is left", got)
	}
}

// However often it is replaced meanwhile, the kernel is always there, whole.
func TestReplaceIsAtomic(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows refuses to replace a file while another process reads it")
	}
	kernels := t.TempDir()
	spec := kernelspec.Spec{Binary: binary(t), Args: []string{"--model", strings.Repeat("x", 1<<16)}}
	dir, err := kernelspec.Install(kernels, spec, false)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		for range 10 {
			if _, err := kernelspec.Install(kernels, spec, false); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for reads := 0; ; reads++ {
		select {
		case err := <-done:
			if err != nil || reads == 0 {
				t.Errorf("%d reads, %v", reads, err)
			}
			return
		default:
			if i, err := kernelspec.Read(dir); err != nil || !i.Ours() || i.Model() != spec.Args[1] {
				t.Errorf("read %.200v, %v", i, err)
				<-done
				return
			}
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		os     string
		env    map[string]string
		active bool
		want   string
	}{
		{"linux", map[string]string{"JUPYTER_PATH": "/j:/k"}, false, "/j /k /h/.local/share/jupyter /p/share/jupyter /usr/local/share/jupyter /usr/share/jupyter"},
		{"linux", nil, true, "/p/share/jupyter /h/.local/share/jupyter /usr/local/share/jupyter /usr/share/jupyter"},
		{"linux", map[string]string{"JUPYTER_PREFER_ENV_PATH": "0"}, true, "/h/.local/share/jupyter /p/share/jupyter /usr/local/share/jupyter /usr/share/jupyter"},
		{"darwin", map[string]string{"JUPYTER_PREFER_ENV_PATH": "1"}, false, "/p/share/jupyter /h/Library/Jupyter /usr/local/share/jupyter /usr/share/jupyter"},
	} {
		if filepath.ListSeparator != ':' && c.env["JUPYTER_PATH"] != "" {
			continue
		}
		got := kernelspec.Places(kernelspec.System{OS: c.os, Home: "/h", Getenv: func(n string) string { return c.env[n] }}, []string{"/p"}, c.active)
		want := strings.ReplaceAll(c.want+" ", " ", "/kernels ")
		if strings.TrimSpace(filepath.ToSlash(strings.Join(got, " "))) != strings.TrimSpace(want) {
			t.Errorf("%s %v: got %v, want %s", c.os, c.env, got, want)
		}
	}
}

func TestUserDir(t *testing.T) {
	for _, c := range []struct {
		os, home string
		env      map[string]string
		want     string
	}{
		{"linux", "/h", nil, "/h/.local/share/jupyter/kernels"},
		{"linux", "/h", map[string]string{"XDG_DATA_HOME": "/x y"}, "/x y/jupyter/kernels"},
		{"linux", "", map[string]string{"JUPYTER_DATA_DIR": "/d", "XDG_DATA_HOME": "/x"}, "/d/kernels"},
		{"linux", "", nil, ""},
		{"darwin", "/h", map[string]string{"XDG_DATA_HOME": "/x"}, "/h/Library/Jupyter/kernels"},
		{"darwin", "/h", map[string]string{"JUPYTER_PLATFORM_DIRS": "1"}, "/h/Library/Application Support/Jupyter/kernels"},
		{"windows", "/h", map[string]string{"APPDATA": "/roaming"}, "/roaming/jupyter/kernels"},
		{"windows", "/h", map[string]string{"JUPYTER_PLATFORM_DIRS": "true", "LOCALAPPDATA": "/local"}, "/local/Jupyter/kernels"},
		{"windows", "/h", nil, ""},
	} {
		got, err := kernelspec.UserDir(kernelspec.System{OS: c.os, Home: c.home, Getenv: func(n string) string { return c.env[n] }})
		if filepath.ToSlash(got) != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s %v: got %q, %v; want %q", c.os, c.env, got, err, c.want)
		}
	}
}

func TestSysPrefix(t *testing.T) {
	abs := filepath.Join(t.TempDir(), "py")
	prints := func(s string, err error) func(string) (string, error) {
		return func(program string) (string, error) {
			if !strings.Contains(program, "sys.prefix") {
				t.Errorf("program %q", program)
			}
			return s, err
		}
	}
	for _, c := range []struct {
		env    map[string]string
		python func(string) (string, error)
		want   string
	}{
		{map[string]string{"VIRTUAL_ENV": "/v", "CONDA_PREFIX": "/c"}, nil, "/v"},
		{map[string]string{"CONDA_PREFIX": "/c"}, nil, "/c"},
		{nil, prints(abs+"\n", nil), abs},
		{nil, prints("not a path", nil), ""},
		{nil, prints(abs, fmt.Errorf("no python")), ""},
		{nil, nil, ""},
	} {
		got, err := kernelspec.SysPrefix(kernelspec.System{Getenv: func(n string) string { return c.env[n] }}, c.python)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%v: got %q, %v; want %q", c.env, got, err, c.want)
		}
	}
	if got := filepath.ToSlash(kernelspec.PrefixDir("/p")); got != "/p/share/jupyter/kernels" {
		t.Error(got)
	}
}

func TestLogos(t *testing.T) {
	for _, size := range []int{32, 64} {
		img, err := png.Decode(bytes.NewReader(kernelspec.PNG(size)))
		if err != nil {
			t.Fatal(err)
		}
		if b := img.Bounds(); b.Dx() != size || b.Dy() != size {
			t.Errorf("size %v, want %d", b, size)
		}
		if _, _, _, a := img.At(0, 0).RGBA(); a != 0 {
			t.Error("the corner is not transparent")
		}
		fin, _, _, _ := img.At(size*38/64, size*30/64).RGBA()
		water, _, _, _ := img.At(size/2, size*6/64).RGBA()
		if fin>>8 != 0xf3 || water>>8 != 0x0c {
			t.Errorf("red of the fin %#x, of the water %#x", fin>>8, water>>8)
		}
	}
	d := xml.NewDecoder(bytes.NewReader(kernelspec.SVG()))
	paths := 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := token.(xml.StartElement); ok && s.Name.Local == "path" {
			paths++
		}
	}
	if paths != 3 {
		t.Errorf("%d paths in the SVG, want 3", paths)
	}
}
