// Users as plain structs, and invented ones as JSON.

package plain

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// The fields of a page of users.
type (
	UserPage struct {
		Users  []User `json:"users"`
		Total  int64  `json:"total"`
		Offset int64  `json:"offset"`
		Limit  int64  `json:"limit"`
	}
	User struct {
		UserID            uuid.UUID         `json:"user_id"`
		TeamID            uuid.UUID         `json:"team_id"`
		ClientUserID      string            `json:"client_user_id"`
		CreatedOn         time.Time         `json:"created_on"`
		ConnectedSources  []ConnectedSource `json:"connected_sources"`
		FallbackBirthDate *struct {
			Value      string    `json:"value"`
			SourceSlug string    `json:"source_slug"`
			UpdatedAt  time.Time `json:"updated_at"`
		} `json:"fallback_birth_date"`
		FallbackTimeZone *struct {
			ID         string    `json:"id"`
			SourceSlug string    `json:"source_slug"`
			UpdatedAt  time.Time `json:"updated_at"`
		} `json:"fallback_time_zone"`
	}
	ConnectedSource struct {
		CreatedOn time.Time `json:"created_on"`
		Source    Source    `json:"source"`
	}
)

// UserPageJSON returns a page of invented users.
func UserPageJSON(users int) []byte { return AppendUserPage(nil, 0, users, users) }

// AppendUserPage appends a page of invented users to b: up to limit of total users, from offset. It
// is fast, so that a benchmark does not measure the server.
func AppendUserPage(b []byte, offset, limit, total int) []byte {
	b = append(b, `{"users":[`...)
	for n := offset; n < min(offset+limit, total); n++ {
		if n > offset {
			b = append(b, ',')
		}
		b = append(b, `{"user_id":"3f0c9a52-7d1e-4b6a-9c58-0000`...)
		b = appendDigits(b, n)
		b = append(b, `","team_id":"5f2d7c90-13be-4a68-9d0e-7c41b6e8a2f3","client_user_id":"user-`...)
		b = appendDigits(b, n)
		b = append(b, `","created_on":"2025-03-04T12:07:31+00:00","connected_sources":[{"source":{"name":"Example Sensor",`+
			`"slug":"example_sensor","logo":"https://example.com/logo.png"},"created_on":"2025-03-05T08:15:00+00:00"}],`+
			`"fallback_time_zone":{"id":"Europe/London","source_slug":"example_sensor","updated_at":"2025-03-05T08:15:00+00:00"},`+
			`"fallback_birth_date":null}`...)
	}
	return fmt.Appendf(b, `],"total":%d,"offset":%d,"limit":%d}`, total, offset, limit)
}

// appendDigits appends n in eight digits.
func appendDigits(b []byte, n int) []byte {
	for d := 10_000_000; d > 0; d /= 10 {
		b = append(b, byte('0'+n/d%10))
	}
	return b
}
