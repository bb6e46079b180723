package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newListen(*app) *cobra.Command {
	return &cobra.Command{
		Use:   "listen",
		Short: "Receive, inspect, forward and replay webhooks",
		RunE:  func(*cobra.Command, []string) error { return errors.New("not yet") },
	}
}
