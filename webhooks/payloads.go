package webhooks

import (
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

//go:generate go run ../scripts/generate

// Source is where wearable data comes from. It has two shapes: Name, Slug and Logo, which the
// interface specification gives, or Provider, Type and what follows, which newer events have and
// which are to replace the first; [Source.ProviderSlug] reads both. Absent fields are empty or nil.
// Source of the second shape: public API reference only.
type Source struct {
	Name string `json:"name,omitzero"` // what people call it
	Slug string `json:"slug,omitzero"` // a short name that does not change
	Logo string `json:"logo,omitzero"` // URL of a picture

	// Source of the fields below: public API reference only.

	Provider  string     `json:"provider,omitzero"`   // what Slug is in the other shape
	Type      SourceType `json:"type,omitzero"`       // kind of device or method; empty means unknown
	AppID     *string    `json:"app_id,omitzero"`     // which app recorded it
	DeviceID  *string    `json:"device_id,omitzero"`  // which device recorded it
	Sport     *string    `json:"sport,omitzero"`      // of a workout
	WorkoutID *string    `json:"workout_id,omitzero"` // of a workout

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

// Activity is the summary of a user's activity on a day: the data of daily.data.activity.created
// and .updated. A number that is missing or null is nil. It redacts itself when printed, except its
// IDs.
type Activity struct {
	ID     uuid.UUID `json:"id"`               // the same in every version of the summary; zero if it cannot be read
	UserID uuid.UUID `json:"user_id,omitzero"` // the service's ID of the user
	Source Source    `json:"source,omitzero"`  // where it comes from
	// CalendarDate is the day, where the user was.
	CalendarDate labhealth.Date `json:"calendar_date"`
	// Date is the day as a date-time.
	//
	// Deprecated: use CalendarDate. Source: public API reference only.
	Date           time.Time `json:"date,omitzero"`
	TimezoneOffset *int64    `json:"timezone_offset,omitzero"` // seconds east of UTC
	// TimeZone is the name of a time zone. Source: public API reference only.
	TimeZone *string `json:"time_zone,omitzero"`

	// Source of the units of the fields below: public API reference only.

	CaloriesActive *float64 `json:"calories_active,omitzero"` // kilocalories of movement
	CaloriesTotal  *float64 `json:"calories_total,omitzero"`  // kilocalories in all
	Distance       *float64 `json:"distance,omitzero"`        // meters
	FloorsClimbed  *float64 `json:"floors_climbed,omitzero"`  // count
	Steps          *float64 `json:"steps,omitzero"`           // count
	High           *float64 `json:"high,omitzero"`            // minutes of high intensity
	Medium         *float64 `json:"medium,omitzero"`          // minutes of medium intensity
	Low            *float64 `json:"low,omitzero"`             // minutes of low intensity
	// DailyMovement is in meters.
	//
	// Deprecated: use Distance. Source: public API reference only.
	DailyMovement *float64 `json:"daily_movement,omitzero"`

	// Source of the fields below: public API reference only.

	HeartRate      *ActivityHeartRate `json:"heart_rate,omitzero"`      // nil if not measured
	WheelchairUse  *bool              `json:"wheelchair_use,omitzero"`  // whether the user is known to use a wheelchair
	WheelchairPush *float64           `json:"wheelchair_push,omitzero"` // count
	CreatedAt      time.Time          `json:"created_at,omitzero"`      // when the summary was made
	UpdatedAt      time.Time          `json:"updated_at,omitzero"`      // when it last changed

	labhealth.RawObject `json:"-"`
}

// ActivityHeartRate summarizes the heart rate over a day, in beats per minute. A number that was
// not measured is nil. It redacts itself when printed. Source: public API reference only.
type ActivityHeartRate struct {
	labhealth.Redacted[ActivityHeartRate] `json:"-"`

	AvgBPM        *float64 `json:"avg_bpm,omitzero"`         // mean
	MinBPM        *float64 `json:"min_bpm,omitzero"`         // lowest
	MaxBPM        *float64 `json:"max_bpm,omitzero"`         // highest
	RestingBPM    *float64 `json:"resting_bpm,omitzero"`     // at rest
	AvgWalkingBPM *float64 `json:"avg_walking_bpm,omitzero"` // mean while walking

	labhealth.RawObject `json:"-"`
}

// Summary is a summary of wearable data other than activity: the data of
// daily.data.<resource>.created and .updated. The interface specification gives ID, UserID and
// Source only; [Summary.Decode] and [Summary.Fields] read the other fields of a resource. It
// redacts itself when printed, except its IDs.
type Summary struct {
	ID     uuid.UUID `json:"id"`               // the same in every version of the summary; zero if it cannot be read
	UserID uuid.UUID `json:"user_id,omitzero"` // the service's ID of the user
	Source Source    `json:"source,omitzero"`  // where it comes from

	// Source of the fields below: public API reference only.

	CalendarDate labhealth.Date `json:"calendar_date,omitzero"` // the day, where the user was; zero if there is none
	CreatedAt    time.Time      `json:"created_at,omitzero"`    // when it was created
	UpdatedAt    time.Time      `json:"updated_at,omitzero"`    // when it last changed

	labhealth.RawObject `json:"-"`
}

// Decode decodes the received JSON of the summary into what v points to, as encoding/json does.
func (s *Summary) Decode(v any) error { return decode(jsonread.Ref(s.RawObject), v) }

// Fields iterates over the received fields of the summary: names and copies of the values.
func (s *Summary) Fields() iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for name, value := range jsonread.Fields(s.RawJSON()) {
			if !yield(string(name), slices.Clone(value)) {
				return
			}
		}
	}
}

// WorkoutStreamNotice says that the stream of a workout can be read: the data of
// daily.data.workout_stream.created. The stream itself is too large for an event.
type WorkoutStreamNotice struct {
	WorkoutID  uuid.UUID `json:"workout_id"`       // what to ask for: GET /v2/timeseries/workouts/{workout_id}/stream
	UserID     uuid.UUID `json:"user_id,omitzero"` // the service's ID of the user
	Source     Source    `json:"source,omitzero"`  // where it comes from
	ProviderID string    `json:"provider_id"`      // the provider's ID of the workout
	Sport      Sport     `json:"sport"`            // what the user did
	Message    string    `json:"message,omitzero"` // meant for people; the path in it can be wrong

	labhealth.RawObject `json:"-"`
}

// Sport is a kind of workout.
type Sport struct {
	// ID is a number of the service.
	//
	// Deprecated: it changes; use Slug. Source: public API reference only.
	ID   int64  `json:"id"`
	Name string `json:"name"`          // what people call it
	Slug string `json:"slug,omitzero"` // a short name that does not change; empty if it is missing

	labhealth.RawObject `json:"-"`
}

// ProviderConnection says that a user connected a provider: the data of
// provider.connection.created.
type ProviderConnection struct {
	UserID uuid.UUID `json:"user_id,omitzero"` // the service's ID of the user
	// Source is the provider, nil if the event has Provider only.
	Source *Source `json:"source,omitzero"`

	// Source of the fields below: public API reference only.

	Provider       *Source `json:"provider,omitzero"`         // the newer name of Source, nil if the event has Source only
	ExternalUserID *string `json:"external_user_id,omitzero"` // the provider's ID of the user, nil if not known
	// ResourceAvailability says of each resource whether the provider lets it be read, nil if it is
	// missing.
	ResourceAvailability map[string]ResourceAvailability `json:"resource_availability,omitzero"`

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
	for _, s := range []*Source{c.Provider, c.Source} {
		if s != nil {
			return *s
		}
	}
	return Source{}
}

// ResourceAvailability says whether a resource of a connected provider can be read.
// Source: public API reference only.
type ResourceAvailability struct {
	Status            string          `json:"status"`                      // such as "available"
	ScopeRequirements json.RawMessage `json:"scope_requirements,omitzero"` // what the user granted and denied, nil if it is missing

	labhealth.RawObject `json:"-"`
}

// LabOrder is an order whose status changed: the data of labtest.order.created and .updated. Events
// come in any order and more than once, so treat one as a notice: an order read again with
// Orders.Get is certain to be the latest. It redacts itself as [labhealth.Order] does.
// Source: public API reference only.
type LabOrder struct {
	labhealth.Order
}

// HistoricalPull says that the history of a resource was read after a connection: the data of
// historical.data.<resource>.created. The data of that time has its own events, before or after.
// Source: public API reference only.
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

// Unknown is the data of an event of a type that has no payload type here, or data that is not what
// its type promises. It redacts itself when printed.
type Unknown struct {
	// Raw is a copy of the received data. It is nil if the event has none.
	Raw json.RawMessage
	// Err says what is wrong with the data, without quoting it. It is nil if the type has no
	// payload type here.
	Err error
}

// RawJSON returns a copy of Raw.
func (u *Unknown) RawJSON() json.RawMessage { return slices.Clone(u.Raw) }

// Malformed returns nil: nothing is expected of the data.
func (u *Unknown) Malformed() []labhealth.Malformed { return nil }

// MarshalJSON writes Raw, null if there is none.
func (u Unknown) MarshalJSON() ([]byte, error) {
	if len(u.Raw) == 0 {
		return []byte("null"), nil
	}
	return slices.Clone(u.Raw), nil
}
