package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// streams are the standard streams of a run.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// app is what all commands share.
type app struct {
	streams
	json bool // print JSON
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	a := &app{streams: s}
	root := newRoot(a)
	root.SetArgs(longFlags(root, args))
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(s.err, "labhealth:", err)
		return 1
	}
	return 0
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "labhealth",
		Short:         "Try, inspect and operate the lab-order, user and webhook API",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	root.AddCommand(newSandbox(a), newListen(a))
	return root
}
