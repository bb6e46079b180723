package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRejected    = 3
	exitUnknown     = 4
	exitIncomplete  = 5
	exitInterrupted = 130
)

const exitCodesHelp = `The exit code tells a script what happened:

    0    success
    1    failed: nothing was changed, or nothing was to be changed; doctor found a problem;
         an event has parts that cannot be read; an endpoint did not accept a delivery;
         stdout cannot be written
    2    usage or invalid input: nothing was sent
    3    the service rejected the request
    4    the outcome is unknown, or the response could not be read: the service may have
         processed the request. Check before you repeat it
    5    orders import: some records have no order. The report says which and why.
         The same command resumes the import
    130  interrupted

With --json, the last line of stderr is an object with the error:

    {"error":{"message":"…","exit_code":3,"outcome":"rejected","operation":"GET /v3/order/{order_id}",
     "status":404,"request_id":"…","fields":[{"path":"body.sample_id","type":"missing"}]}}

outcome is "not sent", "rejected", "unknown" or "applied". Fields that do not apply are missing.`

// newExitCodes returns the help topic about exit codes.
func newExitCodes() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesHelp}
}

// usageError reports invalid arguments, flags, settings or input. Nothing was sent.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// invalid returns err as a usage error, unless it is an interruption, and nil for nil.
func invalid(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return err
	}
	return usagef("%s", errorText(pathError(err)))
}

// exitError is an error with its own exit code.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// operation returns the operation of an error of the library, such as "GET /v3/order/{order_id}".
func operation(err error) string {
	if e, ok := errors.AsType[*labhealth.APIError](err); ok {
		return e.Op
	}
	if e, ok := errors.AsType[*labhealth.TransportError](err); ok {
		return e.Op
	}
	if e, ok := errors.AsType[*labhealth.DecodeError](err); ok {
		return e.Op
	}
	if e, ok := errors.AsType[*labhealth.RedirectError](err); ok {
		return e.Op
	}
	return ""
}

// exitCode returns the exit code of an error.
func exitCode(ctx context.Context, err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*labhealth.ValidationError](err); ok {
		return exitUsage
	}
	op := operation(err)
	changes := op != "" && !strings.HasPrefix(op, "GET ")
	switch outcome := labhealth.OutcomeOf(err); {
	case changes && (outcome == labhealth.OutcomeUnknown || outcome == labhealth.OutcomeApplied):
		return exitUnknown
	case ctx.Err() != nil:
		return exitInterrupted
	case op != "" && outcome == labhealth.OutcomeRejected:
		return exitRejected
	}
	return exitFailed
}

// errorJSON is an error on stderr with --json.
type errorJSON struct {
	Message   string           `json:"message"`
	ExitCode  int              `json:"exit_code"`
	Outcome   string           `json:"outcome,omitzero"`
	Operation string           `json:"operation,omitzero"`
	Status    int              `json:"status,omitzero"`
	RequestID string           `json:"request_id,omitzero"`
	Fields    []errorFieldJSON `json:"fields,omitzero"`
	Service   string           `json:"service_message,omitzero"` // with --show-patient
}

type errorFieldJSON struct {
	Path string `json:"path"`
	Type string `json:"type"`
}

// report writes an error to stderr and returns the exit code.
func (a *app) report(ctx context.Context, err error) int {
	code := exitCode(ctx, err)
	e, isAPI := errors.AsType[*labhealth.APIError](err)
	message := errorText(err)
	if a.json {
		out := errorJSON{Message: message, ExitCode: code, Operation: operation(err)}
		if out.Operation != "" {
			out.Outcome = labhealth.OutcomeOf(err).String()
		}
		if isAPI {
			out.Status, out.RequestID, out.Fields = e.StatusCode, e.RequestID, fieldsJSON(e.Fields())
			if a.showPatient {
				out.Service = e.Message()
			}
		}
		if invalid, ok := errors.AsType[*labhealth.ValidationError](err); ok {
			out.Outcome, out.Fields = labhealth.OutcomeNotSent.String(), fieldsJSON(invalid.Fields)
		}
		b, _ := json.Marshal(map[string]errorJSON{"error": out})
		fmt.Fprintf(a.err, "%s\n", escapeJSON(b))
		return code
	}
	fmt.Fprintf(a.err, "%s %s\n", a.paintErr(red, "labhealth:"), message)
	if isAPI && a.showPatient && e.Message() != "" {
		fmt.Fprintf(a.err, "the service says: %s\n", clean(e.Message()))
	}
	switch {
	case code == exitUnknown && labhealth.OutcomeOf(err) == labhealth.OutcomeApplied:
		fmt.Fprintln(a.err, "The service has processed the request: do not repeat it.")
	case code == exitUnknown:
		fmt.Fprintln(a.err, "The service may have processed the request: check before you repeat it.")
	}
	return code
}

// fieldsJSON returns what may be printed of the fields: paths and types that the library knows.
func fieldsJSON(fields []labhealth.FieldError) []errorFieldJSON {
	var list []errorFieldJSON
	for _, f := range fields {
		path, kind, _ := strings.Cut(fmt.Sprint(f), " (")
		list = append(list, errorFieldJSON{path, strings.TrimSuffix(kind, ")")})
	}
	return list
}

// errorText returns the message of an error in the words of the command line, without the names of
// packages.
func errorText(err error) string {
	text := err.Error()
	for _, prefix := range []string{"labhealth: ", "bulk: ", "webhooks: ", "inspect: "} {
		text = strings.ReplaceAll(strings.TrimPrefix(text, prefix), ": "+prefix, ": ")
	}
	return clean(commandWords.Replace(text))
}
