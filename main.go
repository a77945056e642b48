// Deltafin is a Jupyter kernel that keeps a Kimi K3 engine warm across cells,
// and the command line around it.
package main

import (
	"os"

	"deltafin/cli"
)

func main() {
	os.Exit(cli.Main())
}
