//go:build nomodels

package models

import "embed"

// embedded is empty: the binary is small, and finds its models elsewhere.
var embedded embed.FS
