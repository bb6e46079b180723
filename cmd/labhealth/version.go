package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version returns the version of the program, such as v1.2.3, or (devel).
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Print the version. With --json, it prints version, go and platform.",
		Example: `  labhealth version
  labhealth version --json`,
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if a.json {
				return a.printJSON(map[string]string{"version": version(), "go": runtime.Version(), "platform": platform})
			}
			fmt.Fprintf(a.out, "labhealth %s (%s, %s)\n", version(), runtime.Version(), platform)
			return nil
		},
	}
}
