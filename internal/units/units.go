// Package units writes quantities for readers.
package units

import "fmt"

// Bytes is a number of bytes in decimal units, as drives are sold, to three digits.
func Bytes(n int64) string {
	v, unit := float64(n), "B"
	for _, u := range []string{"kB", "MB", "GB", "TB"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}
