package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// streams are the standard streams of a run.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// app is what all commands share.
type app struct {
	streams
	settings

	json        bool   // print JSON
	color       string // auto, always or never
	showPatient bool   // print patient data
	yes         bool   // do not ask
	started     bool   // the arguments and flags are valid

	closers []func() // called at the end

	written output // stdout
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	a := &app{streams: s, color: "auto"}
	defer a.close()
	a.written.Writer = s.out
	a.out = &a.written
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(a.out)
	root.SetErr(s.err)
	err := rejectKeys(args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if failure := a.written.failure(); failure != nil {
		err = outputError(err, failure)
		a.started = true
	}
	if err == nil {
		return exitDone
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) && operation(err) == "" {
		err = &exitError{exitInterrupted, "interrupted"}
	}
	if !a.started {
		// The flags may be unread, but a script reads the error.
		a.json = a.json || slices.Contains(args, "--json")
		if _, ok := errors.AsType[*usageError](err); !ok {
			err = usagef("%s", strings.TrimPrefix(err.Error(), "labhealth: "))
		}
	}
	return a.report(ctx, err)
}

func (a *app) close() {
	for _, f := range a.closers {
		f()
	}
}

var keyArgument = regexp.MustCompile(`(^|=)(sk|pk|mk|whsec)_`)

// rejectKeys returns an error if an argument looks like a key, which it does not quote: other users
// of the machine can read arguments, and shells store them.
func rejectKeys(args []string) error {
	for _, arg := range args {
		if keyArgument.MatchString(arg) {
			return usagef("an argument looks like a key: pass keys by environment variables such as LABHEALTH_API_KEY, or LABHEALTH_API_KEY_FILE, and replace this one, which other users and the history of the shell may have seen")
		}
	}
	return nil
}

const rootHelp = `Try, inspect and operate the lab-order, user and webhook API.

Start without an account:

  labhealth sandbox                    # the embedded service, with a console in the browser
  labhealth --sandbox orders list      # in another terminal

Settings come from flags or from the environment:

  LABHEALTH_ENVIRONMENT      --environment: production-us, production-eu, sandbox-us or sandbox-eu
  LABHEALTH_URL              --base-url: the base URL of the team API
  LABHEALTH_MANAGEMENT_URL   --management-url: the base URL of the management API
  LABHEALTH_ORG_ID           --org: the organisation, for webhooks and keys
  LABHEALTH_TEAM_ID          --team: the team, for webhooks and keys

Keys come from the environment or from files, never from arguments:

  LABHEALTH_API_KEY, LABHEALTH_MANAGEMENT_KEY, LABHEALTH_WEBHOOK_SECRET
  LABHEALTH_API_KEY_FILE, …_KEY_FILE, …_SECRET_FILE: a file that only its owner can read

Patient data is printed only with --show-patient. Results go to stdout, and progress and errors to
stderr. With --json, results are the service's own JSON, one value per line; hidden values, and the
names of fields that this program does not have, are "***". See labhealth help exit-codes for scripts.`

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "labhealth",
		Short:         "Try, inspect and operate the lab-order, user and webhook API",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			cmd.SuggestionsMinimumDistance = 2
			hint := "see labhealth --help"
			if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
				hint = "did you mean " + strings.Join(similar, " or ") + "?"
			}
			return usagef("there is no command %q: %s", args[0], hint)
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if a.timeout <= 0 {
				return usagef("--timeout must be positive, such as 30s")
			}
			a.started = true
			return nil
		},
	}
	flags := root.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "print JSON")
	flags.Var(parsed{"string", a.color, func(value string) error {
		a.color = value
		return oneOf("--color", value, colors...)
	}}, "color", "when to use colors: auto, always or never")
	complete(root, "color", colors...)
	flags.BoolVar(&a.showPatient, "show-patient", false, "print patient data, also in JSON")
	a.addFlags(flags)
	complete(root, "environment", "production-us", "production-eu", "sandbox-us", "sandbox-eu")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return flagError(cmd, err)
	})
	root.AddCommand(newSandbox(a), newListen(a), newReplay(a), newOrders(a), newUsers(a), newEvents(a), newWebhooks(a), newKeys(a),
		newDoctor(a), newVersion(a), newExitCodes())
	return root
}

// flagError describes an error of the flags without names of Go.
func flagError(cmd *cobra.Command, err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return usagef("%v: see %s --help", err, cmd.CommandPath())
	}
	if usage, ok := errors.AsType[*usageError](invalid.Unwrap()); ok {
		return usage
	}
	kind := map[string]string{
		"bool": "true or false", "int": "a whole number", "uint64": "a whole number from 0", "float64": "a number", "duration": "a duration such as 30s or 2h",
	}[invalid.GetFlag().Value.Type()]
	if kind == "" {
		return usagef("--%s is invalid: %v", invalid.GetFlag().Name, invalid.Unwrap())
	}
	return usagef("--%s must be %s, not %q", invalid.GetFlag().Name, kind, invalid.GetValue())
}

// group returns a command that only has subcommands.
func group(use, short string, subcommands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs}
	cmd.AddCommand(subcommands...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var names []string
		for _, c := range cmd.Commands() {
			names = append(names, c.Name())
		}
		if len(args) == 0 {
			return usagef("%s needs a command: %s", name(cmd), strings.Join(names, ", "))
		}
		return usagef("%s has no command %q: use %s", name(cmd), args[0], strings.Join(names, ", "))
	}
	return cmd
}

// name returns the name of a command as it is typed, such as orders list.
func name(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), "labhealth ")
}

var colors = []string{"auto", "always", "never"}

// exactArgs requires arguments, and names them in the error.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usagef("%s needs %s: see %s --help", name(cmd), strings.Join(names[len(args):], " and "), cmd.CommandPath())
		}
		return maximumArgs(len(names))(cmd, args)
	}
}

// maximumArgs permits up to n arguments.
func maximumArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("%s has an unexpected argument: %q", name(cmd), args[n])
		}
		return nil
	}
}

// confirmed adds the flag --yes to a command that calls confirm.
func (a *app) confirmed(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.yes, "yes", false, "do not ask")
	return cmd
}

// confirm asks before something is changed that is hard to undo. Without a terminal, it needs
// --yes.
func (a *app) confirm(question string) error {
	if a.yes {
		return nil
	}
	if !isTerminal(a.in) || !isTerminal(a.err) {
		return usagef("%s Confirm with --yes, as there is no terminal to ask at", question)
	}
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	reply, err := readLine(a.in)
	if err != nil {
		return err
	}
	switch strings.ToLower(reply) {
	case "y", "yes":
		return nil
	}
	return &exitError{exitFailed, "not confirmed: nothing was changed"}
}

// readLine reads the first line.
func readLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, 4096)).ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strings.TrimSpace(line), err
}
