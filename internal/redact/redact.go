// Package redact prints values that hold patient data or secrets.
package redact

import (
	"fmt"
	"io"
)

// Form is what a value prints that shows nothing of itself.
const Form = "{redacted}"

// Print prints the short form of a value, ignoring the verb and the flags.
//
//go:noinline // or the compiler copies it into the methods of every type
func Print(s fmt.State, form string) {
	io.WriteString(s, form) //nolint:errcheck // fmt ignores what its State returns
}
