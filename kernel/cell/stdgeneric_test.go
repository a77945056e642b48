//go:build unix

package cell

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestPackages: packages that the interpreter's own tables lack do what they do in
// compiled code.
func TestPackages(t *testing.T) {
	h := newHost(t, nil)
	for _, c := range []struct{ code, want string }{
		{"key, err := hkdf.Key(sha256.New, []byte(\"secret\"), []byte(\"salt\"), \"info\", 8)\nfmt.Sprintf(\"%x %v\", key, err)", "result:f6d2fcc47cb939de <nil>"},
		{"prk, _ := hkdf.Extract(sha256.New, []byte(\"secret\"), []byte(\"salt\"))\nout, _ := hkdf.Expand(sha256.New, prk, \"info\", 8)\nbytes.Equal(out, key)", "result:true"},
		{"key, err = pbkdf2.Key(sha256.New, \"password\", []byte(\"salt\"), 600_000, 8)\nfmt.Sprintf(\"%x %v\", key, err)", "result:669cfe52482116fd <nil>"},
		{"dk, _ := mlkem.GenerateKey768()\nshared, sealed := dk.EncapsulationKey().Encapsulate()\nagain, err := dk.Decapsulate(sealed)\nfmt.Sprint(bytes.Equal(shared, again), err)", "result:true <nil>"},
		{"sk, _ := hpke.DHKEM(ecdh.X25519()).GenerateKey()\nsealedText, _ := hpke.Seal(sk.PublicKey(), hpke.HKDFSHA256(), hpke.AES128GCM(), nil, []byte(\"text\"))\nplain, err := hpke.Open(sk, hpke.HKDFSHA256(), hpke.AES128GCM(), nil, sealedText)\nstring(plain)", "result:text"},
		{"fmt.Sprintf(\"%x\", sha3.Sum256(nil))[:8]", "result:a7ffc6f8"},
		{"stop := make(chan os.Signal, 1)\nsignal.Notify(stop, os.Interrupt, syscall.SIGTERM)\nsyscall.Kill(syscall.Getpid(), syscall.SIGTERM)\nsig := <-stop\nsignal.Stop(stop)\nfmt.Sprint(sig, sig == syscall.SIGTERM)", "result:terminated true"},
		{"_, failed := os.Open(\"/none\")\nvar code syscall.Errno\nfmt.Sprint(errors.Is(failed, syscall.ENOENT), errors.As(failed, &code), code == syscall.ENOENT, code, syscall.EACCES.Is(fs.ErrPermission))", "result:true true true no such file or directory true"},
		{"fips140.Enabled()", "result:false"},
		{"a, b := unique.Make(\"x\"), unique.Make(\"x\")\nfmt.Sprintln(a == b, a == unique.Make(\"y\"), a.Value())", "result:true false x\n"},
		{"type big struct { n [64]int }\nkept := &big{}\nw := weak.Make(kept)\nfmt.Sprint(w.Value() == kept, weak.Make(kept) == w, weak.Make[big](nil).Value() == nil)", "result:true true true"},
		{"func gone() weak.Pointer[big] { return weak.Make(&big{}) }\nlost := gone()\nruntime.GC()\nlost.Value() == nil", "result:true"},
		{"done := make(chan string, 1)\nfunc wait() string { for range 100 { runtime.GC(); select { case s := <-done: return s; case <-time.After(10 * time.Millisecond): } }; return \"kept\" }\nfunc drop() { p := &big{}; runtime.AddCleanup(p, func(s string) { done <- s }, \"cleaned\") }\ndrop()\nwait()", "result:cleaned"},
		{"func clean(s string) { done <- s }\nfunc dropNamed() { p := &big{}; runtime.AddCleanup(p, clean, \"named\") }\ndropNamed()\nwait()", "result:named"},
		{"func finish() { p := &big{}; runtime.SetFinalizer(p, func(p *big) { done <- fmt.Sprint(len(p.n)) }) }\nfinish()\nwait()", "result:64"},
		{"stopped := func() runtime.Cleanup { return runtime.AddCleanup(&big{}, clean, \"never\") }()\nstopped.Stop()\nruntime.GC()\nlen(done)", "result:0"},
		{"import _ \"time/tzdata\"\nl, err := time.LoadLocation(\"Europe/Rome\")\nl", "result:Europe/Rome"},
	} {
		r, e := run(h, c.code)
		if e != nil || r.text() != c.want {
			t.Errorf("%s\nerror %v, got %q, want %q", c.code, e, r.text(), c.want)
		}
	}
}

// TestPackagesThatAreLeftOut: docs/cells.md lists every package of the standard library
// that cells can't import.
func TestPackagesThatAreLeftOut(t *testing.T) {
	docs, err := os.ReadFile("../../docs/cells.md")
	if err != nil {
		t.Fatal(err)
	}
	_, listed, _ := strings.Cut(string(docs), "can be imported but for these:")
	out, err := exec.Command("go", "list", "std").Output()
	if err != nil {
		t.Fatal(err)
	}
	lib := newAsked(t).table.lib
	for p := range strings.Lines(string(out)) {
		p = strings.TrimSpace(p)
		if strings.Contains(p, "internal") || strings.HasPrefix(p, "vendor/") {
			continue
		}
		_, err := lib.Import(p)
		left := regexp.MustCompile(`[|,] ` + regexp.QuoteMeta(p) + `[ ,]`).MatchString(listed)
		if left != (err != nil) {
			t.Errorf("%s: listed %v, import says %v", p, left, err)
		}
	}
}
