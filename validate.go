package labhealth

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Local validation reports only what the interface specification or the public API reference rules
// out: when in doubt, the request is sent and the service decides. Two operations on lists of teams
// are stricter, because an empty list may mean every team.

// validator collects what is wrong with a request, with the paths that the service itself reports.
type validator struct {
	loc    []string
	fields []FieldError
}

// validateAt validates x, if it can be invalid, as the part of the request named root.
func (v *validator) validateAt(root string, x any) {
	if x, ok := x.(validated); ok {
		v.within(root, func() { x.validate(v) })
	}
}

// validate returns everything that is wrong with a body as a *ValidationError.
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

// within runs a validation of the fields of name.
func (v *validator) within(name string, validate func()) {
	v.loc = append(v.loc, name)
	validate()
	v.loc = v.loc[:len(v.loc)-1]
}

func (v *validator) add(name, code, msg string) {
	loc := append(slices.Clone(v.loc), name)
	v.fields = append(v.fields, FieldError{Loc: loc, Type: code, Msg: msg})
}

// invalid returns the error of an option, or of a request with one mistake.
func invalid(msg string, loc ...string) error {
	return &ValidationError{Fields: []FieldError{{Loc: loc, Type: "value_error", Msg: msg}}}
}

func (v *validator) required(name, s string) {
	if s == "" {
		v.add(name, "missing", "is required")
	}
}

func (v *validator) length(name, s string, least, most int) {
	if n := utf8.RuneCountInString(s); n < least {
		v.add(name, "string_too_short", fmt.Sprintf("is required: %d to %d characters", least, most))
	} else if n > most {
		v.add(name, "string_too_long", fmt.Sprintf("must have at most %d characters", most))
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

// requiredIDs validates a list that must have an element, of which missing names the kind.
func (v *validator) requiredIDs(name, missing string, ids []uuid.UUID) {
	if len(ids) == 0 {
		v.add(name, "missing", "is required: at least one "+missing)
	}
	v.within(name, func() {
		for i, id := range ids {
			v.requiredID(strconv.Itoa(i), id)
		}
	})
}

func (v *validator) atLeast(name string, n, least int) {
	if n < least {
		v.add(name, "greater_than_equal", fmt.Sprintf("must be at least %d", least))
	}
}

func (v *validator) between(name string, n, least, most int) {
	if n < least || n > most {
		v.add(name, "value_error", fmt.Sprintf("must be between %d and %d", least, most))
	}
}

// date reports whether d is a date that exists.
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

// earliestToday and latestToday are today's dates in the time zones where a day starts last and
// first.
func earliestToday() Date { return DateOf(time.Now().UTC().Add(-12 * time.Hour)) }
func latestToday() Date   { return DateOf(time.Now().UTC().Add(14 * time.Hour)) }
