// Sources, and the payloads of connections, devices and workout streams.

package webhooks

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
)

//go:generate go run ../scripts/generate

// Source identifies the origin of wearable data. It has two shapes: Name, Slug and Logo, as in the
// interface specification, or Provider, Type and the fields after them, as in newer events. The
// second shape is expected to replace the first. [Source.ProviderSlug] supports both. Absent fields
// are empty or nil. Source of the second shape: public API reference only.
type Source struct {
	Name string `json:"name,omitzero"` // display name
	Slug string `json:"slug,omitzero"` // stable identifier
	Logo string `json:"logo,omitzero"` // URL of a logo

	// Source of the fields below: public API reference only.

	Provider  string     `json:"provider,omitzero"`   // the Slug of the other shape
	Type      SourceType `json:"type,omitzero"`       // kind of device or method; empty means unknown
	AppID     *string    `json:"app_id,omitzero"`     // ID of the app that recorded the data
	DeviceID  *uuid.UUID `json:"device_id,omitzero"`  // ID of the device that recorded the data
	Sport     *string    `json:"sport,omitzero"`      // of a workout
	WorkoutID *uuid.UUID `json:"workout_id,omitzero"` // of a workout

	labhealth.RawObject `json:"-"`
}

// ProviderSlug returns the slug of the provider, whichever shape the source has: Provider or, if
// that is empty or "unknown", Slug. It is empty if neither is known.
func (s Source) ProviderSlug() string {
	if isKnown(s.Provider) {
		return s.Provider
	}
	return whatIsKnown(s.Slug)
}

// SourceType is the kind of device or method that a source used. Values other than the constants
// occur and must be expected. Source: public API reference only.
type SourceType string

// The documented source types.
const (
	SourceTypeUnknown         SourceType = "unknown"
	SourceTypePhone           SourceType = "phone"
	SourceTypeWatch           SourceType = "watch"
	SourceTypeApp             SourceType = "app"
	SourceTypeMultipleSources SourceType = "multiple_sources"
	SourceTypeFingerprick     SourceType = "fingerprick"
	SourceTypeCuff            SourceType = "cuff"
	SourceTypeManualScan      SourceType = "manual_scan"
	SourceTypeAutomatic       SourceType = "automatic"
	SourceTypeInsulinPump     SourceType = "insulin_pump"
	SourceTypeScale           SourceType = "scale"
	SourceTypeChestStrap      SourceType = "chest_strap"
	SourceTypeRing            SourceType = "ring"
	SourceTypeLab             SourceType = "lab"
	SourceTypeExerciseMachine SourceType = "exercise_machine"
	SourceTypeEarphone        SourceType = "earphone"
)

// WorkoutStreamNotice reports that the stream of a workout can be read: the data of
// daily.data.workout_stream.created. The stream itself is too large for an event.
type WorkoutStreamNotice struct {
	WorkoutID  uuid.UUID `json:"workout_id"`            // ID for GET /v2/timeseries/workouts/{workout_id}/stream
	UserID     uuid.UUID `json:"user_id,omitzero"`      // the service's ID of the user
	Source     Source    `json:"source,omitzero"`       // origin of the data
	ProviderID string    `json:"provider_id"`           // the provider's ID of the workout
	Sport      Sport     `json:"sport" jsonread:"text"` // kind of workout; zero if it is missing or ""
	Message    string    `json:"message,omitzero"`      // human-readable; the path in it can be wrong

	labhealth.RawObject `json:"-"`
}

// Sport is a kind of workout.
type Sport struct {
	// ID is the service's number of the sport.
	//
	// Deprecated: it changes; use Slug. Source: public API reference only.
	ID   int64  `json:"id"`
	Name string `json:"name"`          // display name
	Slug string `json:"slug,omitzero"` // stable identifier; empty if it is missing

	labhealth.RawObject `json:"-"`
}

// ProviderConnection reports that a user connected a provider: the data of
// provider.connection.created.
type ProviderConnection struct {
	UserID uuid.UUID `json:"user_id,omitzero"` // the service's ID of the user
	// Source is the provider, nil if the event has Provider only. Its fields are Name, Slug and
	// Logo.
	//
	// Deprecated: use ConnectedProvider. Source: public API reference only.
	Source *Source `json:"source,omitzero"`

	// Source of the fields below: public API reference only.

	Provider       *Source `json:"provider,omitzero"`         // a newer field for Source, nil if the event has Source only
	ExternalUserID *string `json:"external_user_id,omitzero"` // the provider's ID of the user, nil if not known
	// ResourceAvailability reports for each resource whether it can be read from the provider. It
	// is nil if it is missing.
	ResourceAvailability map[string]labhealth.ResourceAvailability `json:"resource_availability,omitzero"`

	labhealth.RawObject `json:"-"`
}

// ConnectedProvider returns the provider that the user connected: Provider or, if that names none,
// Source. It is the zero Source if the event has neither.
func (c *ProviderConnection) ConnectedProvider() Source {
	for _, s := range []*Source{c.Provider, c.Source} {
		if s != nil && s.ProviderSlug() != "" {
			return *s
		}
	}
	return *cmp.Or(c.Provider, c.Source, &Source{})
}

// ConnectionError reports that the connection of a user with a provider failed: the data of
// provider.connection.error. Printed or logged, it shows only its IDs. Source: public API reference
// only.
type ConnectionError struct {
	UserID       uuid.UUID                     `json:"user_id"`       // the service's ID of the user
	Provider     string                        `json:"provider"`      // slug of the provider
	ErrorType    labhealth.ConnectionErrorType `json:"error_type"`    // what failed
	ErrorDetails string                        `json:"error_details"` // what failed, for people
	Message      string                        `json:"message"`       // what the event means, for people

	labhealth.RawObject `json:"-"`
}

// ProviderDevice is a device of a user that was found or that changed: the data of
// provider.device.created and .updated. Printed or logged, it shows only its IDs. Source: public
// API reference only.
type ProviderDevice struct {
	labhealth.Device
}

func (d *ProviderDevice) apiObject() (any, *uuid.UUID) { return &d.Device, &d.ID }

// HistoricalPull reports that the historical data of a resource was read after a user connected a
// provider: the data of historical.data.<resource>.created. The historical data itself is sent in
// separate events, before or after this one. Source: public API reference only.
type HistoricalPull struct {
	UserID    uuid.UUID `json:"user_id,omitzero"` // the service's ID of the user
	StartDate time.Time `json:"start_date"`       // start of the history; a bare date is midnight UTC
	EndDate   time.Time `json:"end_date"`         // end of the history
	Provider  string    `json:"provider"`         // slug of the provider
	// IsFinal is always true.
	//
	// Deprecated: there is one event for each pull. Source: public API reference only.
	IsFinal bool `json:"is_final" default:"true"`

	labhealth.RawObject `json:"-"`
}

// Unknown is the data of an event whose type has no payload type in this package, or whose data
// does not match its type.
type Unknown struct {
	// Raw is a copy of the received data. It is nil if the event has none.
	Raw json.RawMessage
	// Err describes how the data does not match the type, without quoting it. It is nil if the type
	// has no payload type in this package, or if an event of wearable data holds nothing: its data
	// is missing, null or empty, and so is everything in it or beside it that is not an ID or a
	// source.
	Err error
}

// RawJSON returns a copy of Raw.
func (u *Unknown) RawJSON() json.RawMessage { return slices.Clone(u.Raw) }

// Malformed returns nil, because the data has no known fields.
func (u *Unknown) Malformed() []labhealth.Malformed { return nil }

// MarshalJSON returns Raw, or null if it is empty.
func (u Unknown) MarshalJSON() ([]byte, error) {
	if len(u.Raw) == 0 {
		return []byte("null"), nil
	}
	return slices.Clone(u.Raw), nil
}
