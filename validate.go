// The validator that bodies and parameters report their invalid fields to.

package labhealth

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Local validation reports only what the interface specification or the public API reference rules
// out. If in doubt, the request is sent and the service decides. Three operations on lists of teams
// or providers are stricter, because an empty list may mean all of them.

// validated is implemented by request bodies and parameters.
type validated interface{ validate(*validator) }

// validate returns a *ValidationError with everything that is wrong with the parameters and the
// body. What cannot be sent at all is wrong even without validation.
func (r *request) validate(skip bool) error {
	if out, ok := r.out.(stream); ok {
		if err := out.check(); err != nil {
			return err
		}
	}
	switch {
	case r.target != nil && r.target.misuse != nil:
		return r.target.misuse
	case skip || r.query == nil && r.body == nil:
		return nil
	}
	var v validator
	v.validateAt("query", r.query)
	v.validateAt("body", r.body)
	return v.err()
}

// validator collects the invalid fields of a request, with the same paths as in a 422 of the
// service.
type validator struct {
	loc    []string
	fields []FieldError
}

// validateAt validates x as the part of the request named root. It does nothing if x has no
// validation.
func (v *validator) validateAt(root string, x any) {
	if x, ok := x.(validated); ok {
		v.within(root, func() { x.validate(v) })
	}
}

// validate returns a *ValidationError with everything that is invalid in body.
func validate(body validated) error {
	var v validator
	v.validateAt("body", body)
	return v.err()
}

func (v *validator) err() error {
	if len(v.fields) == 0 {
		return nil
	}
	return &ValidationError{Fields: v.fields}
}

// within runs validate, whose paths start with name.
func (v *validator) within(name string, validate func()) {
	v.loc = append(v.loc, name)
	validate()
	v.loc = v.loc[:len(v.loc)-1]
}

//go:noinline // or the compiler copies it into every check
func (v *validator) add(name, code, msg string) {
	loc := append(slices.Clone(v.loc), name)
	v.fields = append(v.fields, FieldError{Loc: loc, Type: code, Msg: msg})
}

// invalid returns a *ValidationError with one field.
//
//go:noinline // as add
func invalid(msg string, loc ...string) error {
	return &ValidationError{Fields: []FieldError{{Loc: loc, Type: "value_error", Msg: msg}}}
}

//go:noinline // as add
func (v *validator) required(name, s string) {
	if s == "" {
		v.add(name, "missing", "is required")
	}
}

func (v *validator) length(name, s string, minimum, maximum int) {
	if n := utf8.RuneCountInString(s); n < minimum {
		v.add(name, "string_too_short", fmt.Sprintf("is required: %d to %d characters", minimum, maximum))
	} else if n > maximum {
		v.add(name, "string_too_long", fmt.Sprintf("must have at most %d characters", maximum))
	}
}

func (v *validator) requiredID(name string, id uuid.UUID) {
	if id == uuid.Nil {
		v.add(name, "missing", "is required: a UUID that is not nil")
	}
}

func (v *validator) optionalID(name string, id *uuid.UUID) {
	if id != nil && *id == uuid.Nil {
		v.add(name, "uuid", "must be left out or be a UUID that is not nil")
	}
}

// validIDs validates the elements of a list of IDs.
func (v *validator) validIDs(name string, ids []uuid.UUID) {
	v.within(name, func() {
		for i, id := range ids {
			v.requiredID(strconv.Itoa(i), id)
		}
	})
}

func (v *validator) atLeast(name string, n, minimum int) {
	if n < minimum {
		v.add(name, "greater_than_equal", fmt.Sprintf("must be at least %d", minimum))
	}
}

func (v *validator) between(name string, n, minimum, maximum int) {
	if n < minimum || n > maximum {
		v.add(name, "value_error", fmt.Sprintf("must be between %d and %d", minimum, maximum))
	}
}

// page validates the page number and the number of elements per page. Zero means the default.
func (v *validator) page(page, size int) {
	v.atLeast("page", page, 0)
	v.between("size", size, 0, 100)
}

var zipPattern = regexp.MustCompile(`^\d{5}(-\d{4})?$`)

// zip validates a ZIP code. An empty one is left to required.
func (v *validator) zip(name, s string) {
	if s != "" && !zipPattern.MatchString(s) {
		v.add(name, "string_pattern_mismatch", "must be a ZIP code, such as 94105 or 94105-1234")
	}
}

// date validates a required date and reports whether it is valid.
func (v *validator) date(name string, d Date) bool {
	switch {
	case d.IsZero():
		v.add(name, "missing", "is required: a date")
	case !d.valid():
		v.add(name, "date", "must be a date that exists")
	default:
		return true
	}
	return false
}

// time validates a time of a query, which is omitted if it is zero. Only these can be written in
// the format of RFC 3339.
func (v *validator) time(name string, t time.Time) {
	_, offset := t.Zone()
	if year := t.Year(); year < 0 || year > 9999 || offset <= -24*3600 || offset >= 24*3600 {
		v.add(name, "datetime", "must be in the years 0 to 9999 and less than 24 hours from UTC")
	}
}

func (v *validator) email(name, s string) {
	user, host, _ := strings.Cut(s, "@")
	isSpace := func(r rune) bool { return r <= ' ' || r == 0x7f }
	switch {
	case s == "":
		v.add(name, "missing", "is required")
	case user == "" || host == "" || strings.Contains(host, "@") || strings.ContainsFunc(s, isSpace):
		v.add(name, "value_error", "must be an email address: one @ and no spaces")
	}
}

// earliestToday and latestToday return the current date in the time zones where a day starts last
// and first.
func earliestToday() Date { return DateOf(time.Now().UTC().Add(-12 * time.Hour)) }
func latestToday() Date   { return DateOf(time.Now().UTC().Add(14 * time.Hour)) }
