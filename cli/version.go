package cli

import (
	"runtime"
	"runtime/debug"

	"deltafin/rig"
)

// Version is this release. The commit comes from the build.
const Version = "0.1.0"

type versionCmd struct {
	JSON bool `name:"json" help:"Print one JSON object: version, commit, modified, go, platform, devices."`
}

func (versionCmd) Help() string {
	return `Example:

    deltafin version --json`
}

type versionInfo struct {
	Version  string   `json:"version"`
	Commit   string   `json:"commit"`   // "" in a build outside a checkout
	Modified bool     `json:"modified"` // the checkout had uncommitted changes
	Go       string   `json:"go"`
	Platform string   `json:"platform"` // GOOS/GOARCH
	Devices  []string `json:"devices"`
}

func readVersion() versionInfo {
	v := versionInfo{
		Version:  Version,
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Devices:  rig.Devices(),
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range build.Settings {
			switch setting.Key {
			case "vcs.revision":
				v.Commit = setting.Value
			case "vcs.modified":
				v.Modified = setting.Value == "true"
			}
		}
	}
	return v
}

func (c versionCmd) Run(p *process) error {
	v := readVersion()
	if c.JSON {
		return p.printJSON(v)
	}
	commit := ""
	if v.Commit != "" {
		commit = ", commit " + v.Commit[:min(len(v.Commit), 12)]
		if v.Modified {
			commit += " with changes"
		}
	}
	p.printf("deltafin %s%s\n%s %s\n", v.Version, commit, v.Go, v.Platform)
	for _, device := range v.Devices {
		p.printf("device: %s\n", device)
	}
	return nil
}
