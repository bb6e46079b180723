package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/fatih/color"
	"golang.org/x/term"
)

const (
	red    = color.FgRed
	green  = color.FgGreen
	yellow = color.FgYellow
	bold   = color.Bold
)

// output is stdout. It keeps the first error, so that a script does not take a truncated result for
// a complete one.
type output struct {
	io.Writer

	mu  sync.Mutex
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// outputError reports that stdout cannot be written. Other errors, apart from those of writing,
// keep their exit code.
func outputError(err, failure error) error {
	if err != nil && !errors.Is(err, failure) {
		return err
	}
	if e, ok := errors.AsType[*fs.PathError](failure); ok {
		failure = e.Err
	}
	return &exitError{exitFailed, fmt.Sprintf("the output is incomplete: stdout cannot be written: %v", failure)}
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	switch s := stream.(type) {
	case *output:
		return isTerminal(s.Writer)
	case interface{ IsTerminal() bool }: // of tests
		return s.IsTerminal()
	case *os.File:
		return term.IsTerminal(int(s.Fd()))
	}
	return false
}

// colored reports whether a stream gets colors.
func (a *app) colored(w io.Writer) bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
}

// paint colors a text for stdout.
func (a *app) paint(attribute color.Attribute, text string) string {
	return a.paintFor(a.out, attribute, text)
}

// paintErr colors a text for stderr.
func (a *app) paintErr(attribute color.Attribute, text string) string {
	return a.paintFor(a.err, attribute, text)
}

func (a *app) paintFor(w io.Writer, attribute color.Attribute, text string) string {
	if !a.colored(w) {
		return text
	}
	c := color.New(attribute)
	c.EnableColor()
	return c.Sprint(text)
}

// paintStatus colors the status of an order.
func (a *app) paintStatus(status, padded string) string {
	switch top, _, _ := strings.Cut(status, "."); top {
	case "completed":
		return a.paint(green, padded)
	case "failed":
		return a.paint(red, padded)
	case "cancelled":
		return a.paint(yellow, padded)
	}
	return padded
}

// clean replaces what could control a terminal in a text of the service.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, text)
}

// pad returns a text with at least a number of characters.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// plural returns a number with a noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprint(n, " ", one)
	}
	return fmt.Sprint(n, " ", many)
}

// stamp formats a time for people.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// printJSON prints a value of this program as one line.
func (a *app) printJSON(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = a.out.Write(append(escapeJSON(b), '\n'))
	return err
}

// escapeJSON escapes in JSON what clean replaces in other texts. The value is the same.
func escapeJSON(document []byte) []byte {
	escaped := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }
	if bytes.IndexFunc(document, escaped) < 0 {
		return document
	}
	var b []byte
	for _, r := range string(document) {
		if !escaped(r) {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	return b
}

// received is a value that was decoded from JSON of the service.
type received interface{ RawJSON() json.RawMessage }

// printReceived prints the service's own JSON as one line, with patient data hidden unless it is to
// be shown. Keys and secrets are always hidden.
func (a *app) printReceived(v received) error {
	b, err := mask(v.RawJSON(), a.showPatient)
	if err != nil {
		return fmt.Errorf("the JSON of the service cannot be printed: %w", err)
	}
	_, err = a.out.Write(append(b, '\n'))
	return err
}

// printResult prints the result of a call, unless it failed: as text, or as the service's JSON.
func printResult[T received](a *app, v T, err error, text func(T)) error {
	switch {
	case err != nil:
		return err
	case a.json:
		return a.printReceived(v)
	}
	text(v)
	return nil
}

// printList prints what a list has, up to a limit if it is not 0: as rows below a header, or the
// service's JSON. Without anything to print, it says so.
func printList[T received](a *app, list iter.Seq2[T, error], limit int, header, none string, row func(T)) error {
	count := 0
	for v, err := range list {
		if err != nil {
			return err
		}
		if count++; count == 1 && header != "" && !a.json {
			fmt.Fprintln(a.out, a.paint(bold, strings.TrimSpace(header)))
		}
		if err := printResult(a, v, nil, row); err != nil {
			return err
		}
		if count == limit {
			return nil
		}
	}
	if count == 0 && !a.json {
		fmt.Fprintln(a.err, none)
	}
	return nil
}

// fields prints names and values, and nothing for empty ones.
func (a *app) fields(lines ...[2]string) {
	width := 0
	for _, line := range lines {
		if line[1] != "" {
			width = max(width, len(line[0]))
		}
	}
	for _, line := range lines {
		if line[1] != "" {
			fmt.Fprintf(a.out, "%s  %s\n", a.paint(bold, pad(line[0], width)), line[1])
		}
	}
}

// outputFile is a file that only its owner can read, and that gets its name when it is complete.
type outputFile struct {
	*os.File

	path string
}

func createFile(path string) (*outputFile, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, usagef("%s is not a regular file", path)
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".labhealth-*") // with mode 0600
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("%s: no such directory", dir)
	}
	if err != nil {
		return nil, usagef("%v", pathError(err))
	}
	return &outputFile{f, path}, nil
}

// finish gives the file its name.
func (o *outputFile) finish() error {
	return errors.Join(o.Sync(), o.Close(), os.Rename(o.Name(), o.path))
}

// discard removes the file if it is not finished.
func (o *outputFile) discard() {
	o.Close()
	_ = os.Remove(o.Name())
}
