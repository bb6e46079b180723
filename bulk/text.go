// Text and IDs that are not what they look like.

package bulk

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

// The errors of this file are the reasons of a [Problem].
var (
	errHidden = errors.New("has an invisible character")
	errWide   = errors.New("has full-width characters or digits other than 0 to 9: write it in ASCII")
	errForms  = errors.New("has a character that can be written in several ways, so that one ID could get two orders: " +
		"use ASCII, or letters in composed form (NFC)")
)

// appendTextProblems appends a problem for each string of an object that is not what it looks like.
func appendTextProblems(problems []Problem, body reflect.Value, path string) []Problem {
	for _, f := range fieldsOf(body.Type()).list {
		v := body.Field(f.index)
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		path := path + "." + f.name
		check := misleading
		if f.name == "sample_id" {
			check = hidden
		}
		switch {
		case !v.IsValid(), f.name == "access_notes":
		case v.Kind() == reflect.String:
			problems = appendError(problems, path, check(v.String()))
		case f.elem.Kind() == reflect.Slice && f.elem.Elem().Kind() == reflect.String:
			for i := range v.Len() {
				problems = appendError(problems, path+"."+strconv.Itoa(i), check(v.Index(i).String()))
			}
		case f.kind == object:
			problems = appendTextProblems(problems, v, path)
		}
	}
	return problems
}

func appendError(problems []Problem, path string, err error) []Problem {
	if err == nil {
		return problems
	}
	return append(problems, Problem{Path: path, Reason: err.Error()})
}

// misleading returns the reason why a text is not what it looks like. Some languages need the two
// joiners.
func misleading(text string) error {
	for _, r := range text {
		switch {
		case r <= unicode.MaxASCII, r == '\u200c', r == '\u200d':
		case unicode.Is(unicode.Cf, r):
			return errHidden
		case unicode.Is(unicode.Nd, r), r >= '\uff01' && r <= '\uff5e':
			return errWide
		}
	}
	return nil
}

// hidden returns the reason why an ID is not what it looks like, or could be another ID than one
// that looks the same.
func hidden(id string) error {
	switch {
	case strings.ContainsFunc(id, unicode.IsControl):
		return errLineBreak
	case strings.ContainsFunc(id, func(r rune) bool { return unicode.Is(unicode.Cf, r) }):
		return errHidden
	case strings.ContainsFunc(id, hasForms):
		return errForms
	}
	return nil
}

// hasForms reports whether Unicode normalization may change a character, or join it with others.
// Neither this package nor the standard library normalizes, and whether the service does is
// unknown. Of what is left, ASCII and letters, no two sequences differ in normalization only.
func hasForms(r rune) bool {
	return r > unicode.MaxASCII && (!unicode.IsLetter(r) || unicode.In(r, unicode.Lm, compatibility))
}

// compatibility are blocks of letters that stand for other ones.
var compatibility = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xaa, 0xaa, 1}, {0xba, 0xba, 1}, // ordinals
		{0x1100, 0x11ff, 1}, // parts of Hangul syllables
		{0x1f00, 0x1fff, 1}, // Greek with accents of two forms
		{0x2100, 0x214f, 1}, // symbols like letters
		{0x3130, 0x318f, 1}, // parts of Hangul syllables
		{0xf900, 0xffff, 1}, // compatibility, presentation, full and half width
	},
	R32: []unicode.Range32{
		{0x1d400, 0x1d7ff, 1}, {0x1ee00, 0x1eeff, 1}, // mathematical letters
		{0x2f800, 0x2fa1f, 1}, // compatibility
	},
	LatinOffset: 2,
}
