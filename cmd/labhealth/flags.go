// The kinds of flags, and what is read of their values.

package main

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// parsed is a flag whose value is checked and read when it is set.
type parsed struct {
	kind    string // for the help
	initial string
	read    func(value string) error
}

func (p parsed) Set(value string) error { return p.read(value) }
func (p parsed) String() string         { return p.initial }
func (p parsed) Type() string           { return p.kind }

// idFlag adds a flag for an ID.
func idFlag(flags *pflag.FlagSet, to *uuid.UUID, name, usage string) {
	flags.Var(parsed{kind: "uuid", read: func(value string) (err error) {
		*to, err = parseID("--"+name, value)
		return err
	}}, name, usage)
}

// timeFlag adds a flag for a date, a date-time, or a duration before now.
func timeFlag(flags *pflag.FlagSet, to *time.Time, name, usage string) {
	flags.Var(parsed{kind: "time", read: func(value string) (err error) {
		*to, err = parseTime("--"+name, value)
		return err
	}}, name, usage)
}

// choiceFlag adds a flag with one of the allowed values, which are completed.
func choiceFlag[T ~string](cmd *cobra.Command, to *T, name, usage string, allowed ...T) {
	cmd.Flags().Var(parsed{"string", string(*to), func(value string) error {
		*to = T(value)
		return oneOf("--"+name, *to, allowed...)
	}}, name, usage)
	complete(cmd, name, allowed...)
}

// choicesFlag adds a flag with several of the allowed values, separated by commas.
func choicesFlag[T ~string](cmd *cobra.Command, to *[]T, name, usage string, allowed ...T) {
	cmd.Flags().Var(parsed{kind: "strings", read: func(values string) error {
		for value := range strings.SplitSeq(values, ",") {
			if err := oneOf("--"+name, T(value), allowed...); err != nil {
				return err
			}
			*to = append(*to, T(value))
		}
		return nil
	}}, name, usage)
	complete(cmd, name, allowed...)
}

// complete completes the values of a flag.
func complete[T ~string](cmd *cobra.Command, flag string, values ...T) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(texts(values), cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag does not exist
	}
}

func texts[T ~string](values []T) (list []string) {
	for _, value := range values {
		list = append(list, string(value))
	}
	return list
}

// oneOf returns an error if the value of a flag is not allowed.
func oneOf[T ~string](flag string, value T, allowed ...T) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	list := texts(allowed)
	return usagef("%s must be %s or %s, not %q", flag, strings.Join(list[:len(list)-1], ", "), list[len(list)-1], value)
}

// parseTime parses a date, a date-time, or a duration before now.
func parseTime(flag, value string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, value); err == nil {
			return t, nil
		}
	}
	if d, err := time.ParseDuration(value); err == nil && d >= 0 {
		return time.Now().Add(-d), nil
	}
	return time.Time{}, usagef("%s must be a date such as 2026-01-31, a time such as 2026-01-31T08:00:00Z, or a duration before now such as 24h, not %q", flag, value)
}

// parseID parses an ID. The error does not quote it, because it may be anything.
func parseID(name, value string) (uuid.UUID, error) {
	id, err := uuid.Parse(value)
	if err != nil || id == uuid.Nil {
		return uuid.Nil, usagef("%s must be a UUID, such as 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02", name)
	}
	return id, nil
}
