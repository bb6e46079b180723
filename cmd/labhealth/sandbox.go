package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newSandbox(*app) *cobra.Command {
	return &cobra.Command{
		Use:   "sandbox",
		Short: "Run the embedded service with a console in the browser",
		RunE:  func(*cobra.Command, []string) error { return errors.New("not yet") },
	}
}
