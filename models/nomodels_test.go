//go:build nomodels

package models

import (
	"errors"
	"testing"
)

func TestNotEmbedded(t *testing.T) {
	for _, name := range Names() {
		_, unpacked := Unpack(t.TempDir(), name)
		_, inMemory := Memory(name)
		_, _, opened := Open(t.TempDir(), name)
		for _, err := range []error{unpacked, inMemory, opened} {
			var missing *NotEmbeddedError
			if !errors.As(err, &missing) || missing.Name != name {
				t.Errorf("got %v, want a NotEmbeddedError of %s", err, name)
			}
		}
	}
}
