package lab

import (
	"reflect"
	"strings"
	"testing"

	"deltafin/kernel/display"
)

const hostile = `"><script>alert('1')</script><img src=x onerror=alert(2)>&`

// fill puts hostile text into every string that can be set, two of each into slices,
// and 1 into numbers.
func fill(v reflect.Value, depth int) {
	if !v.CanSet() || depth > 6 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	}
}

// Text of the model, of prompts and of file names is never markup in what is shown.
func TestHostileText(t *testing.T) {
	types := map[reflect.Type]bool{}
	for _, v := range New(nil).Exports() {
		if v.Kind() == reflect.Func {
			for i := range v.Type().NumOut() {
				types[v.Type().Out(i)] = true
			}
		} else {
			types[v.Type().Elem()], types[v.Type()] = true, true
		}
	}
	l, _, _ := start(t, &fakeRig{})
	out := l.Output()
	out.Run(func() {
		l.session.Output().Stream("stdout", hostile)
		l.session.Output().Display(display.Text(hostile), "")
	})
	values := []display.Value{
		l.IntSlider(hostile, 0, 1, 1), l.FloatSlider(hostile, 0, 1, 1), l.IntProgress(hostile, 1), l.Checkbox(hostile, true),
		l.Dropdown(hostile, hostile), l.Text(hostile, hostile), l.Button(hostile), l.Label(hostile), out, l.VBox(hostile, out),
	}
	for typ := range types {
		pkg := typ.PkgPath()
		if typ.Kind() == reflect.Pointer {
			pkg = typ.Elem().PkgPath()
		}
		if !typ.Implements(reflect.TypeFor[display.Value]()) || typ.Kind() == reflect.Interface || strings.HasSuffix(pkg, "/widget") {
			continue
		}
		v := reflect.New(typ).Elem()
		fill(v, 0)
		if tr, ok := v.Interface().(*Trace); ok { // its lists belong together
			tr.Routes.Experts, tr.Routes.Layers, tr.Routes.Tokens = 4, []int{1}, tr.Routes.Tokens[:1]
			tr.Routes.IDs, tr.Routes.Weights = []int32{1}, []float32{0.5}
		}
		values = append(values, v.Interface().(display.Value))
	}
	for _, v := range values {
		b := v.DisplayBundle()
		for mime, data := range b.Data {
			s, ok := data.(string)
			if !ok || mime == display.MIMEText || mime == "text/markdown" {
				continue
			}
			for _, bad := range []string{"<script", "<img src=x", `""`} { // the last: out of an attribute
				if strings.Contains(s, bad) {
					t.Errorf("%T: %s has %q: %.400s", v, mime, bad, s)
				}
			}
		}
	}
	if len(values) < 15 {
		t.Errorf("only %d values were shown", len(values))
	}
}
