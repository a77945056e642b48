//go:build !nomodels

package models

import "embed"

// embedded is packed/MODEL/FILE.zst.
//
//go:embed packed
var embedded embed.FS
