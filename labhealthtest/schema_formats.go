// The formats of schemas: UUIDs, dates, URLs, secrets.

package labhealthtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The schemas of strings that have a format.

// parseUUID parses a UUID with or without hyphens. [uuid.Parse] alone accepts more forms and does
// not check all of them.
func parseUUID(s string) (uuid.UUID, bool) {
	if len(s) != 36 && len(s) != 32 {
		return uuid.UUID{}, false
	}
	id, err := uuid.Parse(s)
	return id, err == nil
}

// uuidSchema returns the UUID with hyphens.
func uuidSchema(v *validator, location []any, raw json.RawMessage) any {
	s, ok := unquote(raw)
	if !ok {
		v.add("uuid_type", location, "UUID input should be a string, bytes or UUID object", raw, nil)
		return nil
	}
	id, ok := parseUUID(s)
	if !ok {
		reason := "invalid character"
		if len(s) != 36 {
			reason = fmt.Sprintf("invalid length: expected length 32 for simple format, found %d", len(s))
		}
		v.add("uuid_parsing", location, "Input should be a valid UUID, "+reason, raw, map[string]any{"error": reason})
	}
	return id.String()
}

var timeLayouts = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05"}

// parseTime parses a date or a date-time, which may have no offset.
func parseTime(s string) (t time.Time, isDate, ok bool) {
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, true, true
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, false, true
		}
	}
	return time.Time{}, false, false
}

// dateSchema also accepts a date-time at midnight. It returns the date.
func dateSchema(v *validator, location []any, raw json.RawMessage) any {
	s, ok := unquote(raw)
	if !ok {
		v.add("date_type", location, "Input should be a valid date", raw, nil)
		return nil
	}
	t, isDate, ok := parseTime(s)
	switch {
	case !ok:
		v.addInvalidDate(location, raw)
	case !isDate && !t.Equal(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())):
		v.add("date_from_datetime_inexact", location,
			"Datetimes provided to dates should have zero time - e.g. be exact dates", raw, nil)
	}
	return t.Format(time.DateOnly)
}

func (v *validator) addInvalidDate(location []any, raw []byte) {
	const reason = "input is not a date or datetime"
	v.add("date_from_datetime_parsing", location, "Input should be a valid date or datetime, "+reason, raw,
		map[string]any{"error": reason})
}

// dateText is the schema of a date or date-time in a query.
var dateText = stringOf(func(v *validator, location []any, s string, raw json.RawMessage) {
	if _, _, ok := parseTime(s); !ok {
		v.addInvalidDate(location, raw)
	}
})

func dateTimeSchema(v *validator, location []any, raw json.RawMessage) any {
	s, ok := unquote(raw)
	if !ok {
		v.add("datetime_type", location, "Input should be a valid datetime", raw, nil)
		return nil
	}
	if _, _, ok := parseTime(s); !ok {
		const reason = "input is not a datetime"
		v.add("datetime_from_date_parsing", location, "Input should be a valid datetime or date, "+reason, raw,
			map[string]any{"error": reason})
	}
	return s
}

var emailPattern = regexp.MustCompile(`^[^@\s]+@[^@\s.]+(\.[^@\s.]+)+$`)

var emailSchema = stringOf(func(v *validator, location []any, s string, raw json.RawMessage) {
	if !emailPattern.MatchString(s) {
		const reason = "An email address must have a name, an @-sign and a domain."
		v.add("value_error", location, "value is not a valid email address: "+reason, raw, map[string]any{"reason": reason})
	}
})

// phoneSchema accepts 10 to 15 digits and punctuation. The service publishes no rule. This one
// rejects what the service was observed to reject.
var phoneSchema = stringOf(func(v *validator, location []any, s string, raw json.RawMessage) {
	digits := 0
	for _, r := range s {
		switch {
		case '0' <= r && r <= '9':
			digits++
		case !strings.ContainsRune("+-(). ", r):
			digits = -len(s)
		}
	}
	if digits < 10 || digits > 15 {
		v.addValueError(location, "Phone number is not correct", raw)
	}
})

// urlSchema accepts an http or https URL to which events can be delivered.
var urlSchema = stringOf(func(v *validator, location []any, s string, raw json.RawMessage) {
	if !isHTTPURL(s) {
		v.add("url_parsing", location, "Input should be a valid URL", raw, map[string]any{"error": "invalid address"})
	}
})

func isHTTPURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

const secretPrefix = "whsec_"

// secretSchema accepts a signing secret. Its error does not quote the secret.
var secretSchema = stringOf(func(v *validator, location []any, s string, _ json.RawMessage) {
	if key, _ := secretKey(s); len(key) < 24 || len(key) > 64 || !strings.HasPrefix(s, secretPrefix) {
		v.addValueError(location, "a secret is whsec_ and 24 to 64 bytes in base64", jsonNull)
	}
})

// secretKey decodes a signing secret with or without its prefix.
func secretKey(secret string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
}
