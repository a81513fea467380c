package main

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionView struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionCommand() command {
	return command{words: "version", short: "which build this is",
		text: `Prints the version of jobctl and the Go release it was built with.

JSON: one object with version, go, platform
`,
		setup: func(*flag.FlagSet) action { return version },
	}
}

func version(a *app, _ []string) error {
	v := versionView{"(devel)", runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	if a.flags.output != "table" {
		return a.print(v)
	}
	fmt.Fprintf(a.stdout, "jobctl %s %s %s\n", v.Version, v.Go, v.Platform)
	return nil
}
