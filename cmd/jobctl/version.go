package main

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

type versionView struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	return a.command(&spec{
		use: "version", short: "print the version of jobctl", nofile: true,
		long:    "Prints the version of jobctl and the Go release it was built with.",
		example: "  jobctl version -o json",
		json:    "one object with version, go, platform\n",
		run:     func(context.Context, []string) error { return a.version() },
	})
}

func (a *app) version() error {
	v := versionView{"(devel)", runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	return a.result(v, "jobctl %s %s %s\n", v.Version, v.Go, v.Platform)
}
