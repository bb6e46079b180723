// Package canarytest helps tests to find keys and patient data in output.
//
// A test puts [Values] wherever a key or a patient's data can be, such as in requests and
// responses, and passes everything that the library writes, prints or returns to a [Checker].
package canarytest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A key and the data of an invented patient.
const (
	Key      = "sk_canary_7f3e9d1c5b8a2046"
	First    = "Zephyrine"
	Last     = "Quillfeather"
	DOB      = "1957-11-23"
	Phone    = "+14155550187"
	Email    = "zq.canary@example.com"
	Street   = "4711 Birdcage Walk"
	City     = "Featherstone"
	Zip      = "94199-0187"
	Sample   = "SMPL-CANARY-90210"
	Notes    = "allergic to canaryseed"
	User     = "patient/zephyrine#57" // a client user ID
	NPI      = "1922334455"
	Tracking = "1Z999CANARY0187"
)

// Values are all of the above.
var Values = []string{Key, First, Last, DOB, Phone, Email, Street, City, Zip, Sample, Notes, User, NPI, Tracking}

// All is one string with all values.
var All = strings.Join(Values, " ; ")

// Forms returns the forms in which a value can appear in output: as it is, and as fmt and encoders
// write it.
func Forms(value string) []string {
	b := []byte(value)
	quoted, _ := json.Marshal(value)
	forms := []string{
		value, hex.EncodeToString(b), strings.ToUpper(hex.EncodeToString(b)), fmt.Sprintf("% x", value),
		strings.Trim(fmt.Sprintf("%v", b), "[]"), strings.Trim(fmt.Sprintf("%#v", b), "[]byte{}"),
		url.QueryEscape(value), url.PathEscape(value), strings.Trim(string(quoted), `"`),
	}
	for shift := range 3 { // wherever the value is in what is encoded
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := enc.EncodeToString(append(make([]byte, shift), b...))
			forms = append(forms, text[(shift*8+5)/6:len(text)-1])
		}
	}
	return forms
}

// Checker searches output for values. Its methods can be called concurrently.
type Checker struct {
	t     testing.TB
	forms map[string]string // the value of each form

	mu    sync.Mutex
	bytes int
	leaks int
	texts map[string]bool // texts that were searched, which are mostly the same redacted form
	types map[string]bool // of errors
}

// New returns a checker that searches for Values and more, such as the key of a server.
func New(t testing.TB, more ...string) *Checker {
	c := &Checker{t: t, forms: map[string]string{}, texts: map[string]bool{}, types: map[string]bool{}}
	for _, value := range slices.Concat(Values, more) {
		for _, form := range Forms(value) {
			c.forms[form] = value
		}
	}
	return c
}

// Except returns a checker for outputs that may have some of the values, such as the sample ID.
func (c *Checker) Except(values ...string) *Checker {
	other := New(c.t)
	for form, value := range c.forms {
		if !slices.Contains(values, value) {
			other.forms[form] = value
		}
	}
	for _, value := range values {
		for _, form := range Forms(value) {
			delete(other.forms, form)
		}
	}
	return other
}

// String returns how much was searched.
func (c *Checker) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%d forms of %d values sought in %d texts (%d bytes), %d types of errors",
		len(c.forms), len(Values), len(c.texts), c.bytes, len(c.types))
}

// SawError reports whether an error of a type was checked, such as "*labhealth.APIError".
func (c *Checker) SawError(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.types[name]
}

// maxLeaks limits the leaks that are reported: one leak is in many outputs.
const maxLeaks = 30

// Text checks a text. where says what wrote it.
func (c *Checker) Text(where, text string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes += len(text)
	if c.texts[text] {
		return
	}
	c.texts[text] = true
	for form, value := range c.forms {
		at := strings.Index(text, form)
		if at < 0 {
			continue
		}
		if c.leaks++; c.leaks <= maxLeaks {
			c.t.Errorf("%s: %q is shown as %q in …%s…", where, value, form, text[max(0, at-60):min(len(text), at+len(form)+20)])
		}
	}
}

// Writer returns a writer that checks what is written to it.
func (c *Checker) Writer(where string) io.Writer {
	return writer(func(p []byte) (int, error) {
		c.Text(where, string(p))
		return len(p), nil
	})
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// NoTime leaves the time out of log records, so that equal records are equal texts.
var NoTime = &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}}

// Verbs are the verbs with which Value prints.
var Verbs = []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%t", "%f", "%T", "%10v", "%-5s"}

// Value checks what fmt and log/slog print of a value, alone and inside other values.
func (c *Checker) Value(where string, v any) {
	c.t.Helper()
	c.Printed(where, v)
	var text, object bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&text, NoTime), slog.NewJSONHandler(&object, NoTime)} {
		l := slog.New(h)
		l.Info("message", "value", v)
		l.With("value", v).WithGroup("group").Error("message", slog.Any("value", v), slog.Group("deeper", slog.Any("value", v)))
	}
	c.Text(where+" slog text", text.String())
	c.Text(where+" slog JSON", object.String())
}

// Printed checks what fmt prints of a value, alone and inside other values.
func (c *Checker) Printed(where string, v any) {
	c.t.Helper()
	for _, verb := range Verbs {
		c.Text(where+" "+verb, fmt.Sprintf(verb, v))
		c.Text(where+" in a slice "+verb, fmt.Sprintf(verb, []any{v}))
		c.Text(where+" in a map "+verb, fmt.Sprintf(verb, map[string]any{"v": v}))
		c.Text(where+" in a field "+verb, fmt.Sprintf(verb, struct{ V any }{v}))
	}
	c.Text(where+" Sprint", fmt.Sprint(v)+fmt.Sprintln(v))
}

// JSON checks the JSON of a value that is documented to be safe to encode.
func (c *Checker) JSON(where string, v any) {
	c.t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		c.t.Errorf("%s: %v", where, err)
	}
	c.Text(where+" as JSON", string(text))
}

// Error checks the printed forms and the JSON of an error, and of the errors of this module that it
// wraps. Other causes are documented to quote what they quote, for a program that looks for them.
func (c *Checker) Error(where string, err error) {
	c.t.Helper()
	if err == nil {
		return
	}
	c.mu.Lock()
	c.types[fmt.Sprintf("%T", err)] = true
	c.mu.Unlock()
	c.Text(where, err.Error())
	c.Value(where, err)
	c.Value(where+" wrapped", fmt.Errorf("my call: %w", err))
	c.Value(where+" joined", errors.Join(err, io.EOF))
	c.JSON(where, map[string]any{"error": err})
	if v := reflect.ValueOf(err); v.Kind() == reflect.Pointer && strings.HasPrefix(v.Type().String(), "*labhealth.") {
		c.Value(where+" value", v.Elem().Interface())
	}
	for _, cause := range causes(err) {
		if strings.HasPrefix(packageOf(cause), module) {
			c.Error(where+" →", cause)
		}
	}
}

// causes returns the errors that err wraps.
func causes(err error) []error {
	if one, ok := err.(interface{ Unwrap() error }); ok {
		return []error{one.Unwrap()}
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return several.Unwrap()
	}
	return nil
}

const module = "github.com/labhealth/labhealth-go"

// packageOf returns the path of the package of the type of err.
func packageOf(err error) string {
	of := reflect.TypeOf(err)
	if of != nil && of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of == nil {
		return ""
	}
	return of.PkgPath()
}
