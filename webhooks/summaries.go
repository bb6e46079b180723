// The summaries of wearable data other than meals and menstrual cycles.

package webhooks

// Source of this file, except for Activity and Summary: public API reference only.

import (
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// wearableSummary is implemented by the payloads that are summaries of wearable data: those with a
// [SummaryKey].
type wearableSummary interface {
	Payload
	json.Unmarshaler

	// head returns what the summaries of all resources have.
	head() summaryHead
}

// summaryHead holds the fields that the summaries of all resources have.
type summaryHead struct {
	id        uuid.UUID
	source    *Source
	updatedAt time.Time
}

func (v *Activity) head() summaryHead          { return summaryHead{v.ID, &v.Source, v.UpdatedAt} }
func (v *Sleep) head() summaryHead             { return summaryHead{v.ID, &v.Source, v.UpdatedAt} }
func (v *SleepCycle) head() summaryHead        { return summaryHead{v.ID, &v.Source, v.UpdatedAt} }
func (v *Workout) head() summaryHead           { return summaryHead{v.ID, &v.Source, v.UpdatedAt} }
func (v *Body) head() summaryHead              { return summaryHead{v.ID, &v.Source, v.UpdatedAt} }
func (v *Profile) head() summaryHead           { return summaryHead{v.ID, &v.Source, v.UpdatedAt} }
func (v *Meal) head() summaryHead              { return summaryHead{v.ID, &v.Source, v.UpdatedAt} }
func (v *MenstrualCycle) head() summaryHead    { return summaryHead{v.ID, &v.Source, v.UpdatedAt} }
func (v *Electrocardiogram) head() summaryHead { return summaryHead{v.ID, &v.Source, v.UpdatedAt} }
func (v *Summary) head() summaryHead           { return summaryHead{v.ID, &v.Source, v.UpdatedAt} }

// DecodeSummary decodes the JSON of a summary, as its MarshalJSON wrote it, into the payload type
// of its resource, such as "sleep": see [EventType.Resource]. It is for programs that store
// summaries themselves. It copies document. It returns an error if document is not JSON.
func DecodeSummary(resource string, document []byte) (Payload, error) {
	data, ok := payloadTypeOf(dailyPrefix + EventType(resource) + ".updated").new().(wearableSummary)
	if !ok {
		data = &Summary{}
	}
	if err := data.UnmarshalJSON(document); err != nil {
		return nil, err
	}
	return data, nil
}

// Activity is the summary of a user's activity on a day: the data of daily.data.activity.created
// and .updated. A number that is missing or null is nil. Printed or logged, it shows only its IDs.
type Activity struct {
	ID     uuid.UUID `json:"id"`               // the same in every version of the summary; zero if it cannot be read
	UserID uuid.UUID `json:"user_id,omitzero"` // the service's ID of the user
	Source Source    `json:"source,omitzero"`  // origin of the data
	// CalendarDate is the day in the user's local time.
	CalendarDate labhealth.Date `json:"calendar_date"`
	// Date is the day as a date-time.
	//
	// Deprecated: use CalendarDate. Source: public API reference only.
	Date           time.Time `json:"date,omitzero"`
	TimezoneOffset *int64    `json:"timezone_offset,omitzero"` // seconds east of UTC
	// TimeZone is the name of a time zone. Source: public API reference only.
	TimeZone *string `json:"time_zone,omitzero"`

	// Source of the units of the fields below: public API reference only.

	CaloriesActive *float64 `json:"calories_active,omitzero"` // kilocalories burned by movement
	CaloriesTotal  *float64 `json:"calories_total,omitzero"`  // total kilocalories
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
	WheelchairPush *int64             `json:"wheelchair_push,omitzero"` // count
	CreatedAt      time.Time          `json:"created_at,omitzero"`      // when the summary was created
	UpdatedAt      time.Time          `json:"updated_at,omitzero"`      // when it last changed

	labhealth.RawObject `json:"-"`
}

// ActivityHeartRate summarizes the heart rate over a day, in beats per minute. A number that was
// not measured is nil.
type ActivityHeartRate struct {
	AvgBPM        *float64 `json:"avg_bpm,omitzero"`         // mean
	MinBPM        *float64 `json:"min_bpm,omitzero"`         // lowest
	MaxBPM        *float64 `json:"max_bpm,omitzero"`         // highest
	RestingBPM    *float64 `json:"resting_bpm,omitzero"`     // at rest
	AvgWalkingBPM *float64 `json:"avg_walking_bpm,omitzero"` // mean while walking

	labhealth.RawObject `json:"-"`
}

// Summary is a summary of wearable data of a resource that this package has no type for: the data
// of daily.data.<resource>.created and .updated. The interface specification documents only ID,
// UserID and Source; [Summary.Decode] and [Summary.Fields] read the other fields. Printed or
// logged, it shows only its IDs.
type Summary struct {
	ID     uuid.UUID `json:"id"`               // the same in every version of the summary; zero if it cannot be read
	UserID uuid.UUID `json:"user_id,omitzero"` // the service's ID of the user
	Source Source    `json:"source,omitzero"`  // origin of the data

	// Source of the fields below: public API reference only.

	CalendarDate labhealth.Date `json:"calendar_date,omitzero"` // the day in the user's local time; zero if there is none
	CreatedAt    time.Time      `json:"created_at,omitzero"`    // when it was created
	UpdatedAt    time.Time      `json:"updated_at,omitzero"`    // when it last changed

	labhealth.RawObject `json:"-"`
}

// Decode decodes the received JSON of the summary into the value that v points to, as
// [json.Unmarshal] does.
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

// Sleep is the summary of one period of sleep: the data of daily.data.sleep.created and .updated. A
// value that was not measured is nil. Printed or logged, it shows only its IDs.
type Sleep struct {
	ID     uuid.UUID `json:"id"`      // the same in every version of the summary; zero if it cannot be read
	UserID uuid.UUID `json:"user_id"` // the service's ID of the user
	Source Source    `json:"source"`  // origin of the data
	// CalendarDate is the day in the user's local time, usually that on which the sleep ended.
	CalendarDate labhealth.Date `json:"calendar_date"`
	// Date is the day as a date-time.
	//
	// Deprecated: use CalendarDate.
	Date           time.Time `json:"date"`
	TimezoneOffset *int64    `json:"timezone_offset,omitzero"` // seconds east of UTC

	BedtimeStart time.Time `json:"bedtime_start"` // when the user went to bed
	BedtimeStop  time.Time `json:"bedtime_stop"`  // when the user got up
	Type         SleepType `json:"type"`          // such as a night or a nap
	// State says whether the summary may still change; nil if the provider does not report it.
	State *SleepState `json:"state,omitzero"`

	Duration int64  `json:"duration"`         // seconds from BedtimeStart to BedtimeStop
	Total    int64  `json:"total"`            // seconds asleep
	Awake    int64  `json:"awake"`            // seconds awake
	Light    int64  `json:"light"`            // seconds of light sleep
	REM      int64  `json:"rem"`              // seconds of REM sleep
	Deep     int64  `json:"deep"`             // seconds of deep sleep
	Latency  *int64 `json:"latency,omitzero"` // seconds until the user fell asleep

	Score                  *int64   `json:"score,omitzero"`                    // the provider's score
	RecoveryReadinessScore *int64   `json:"recovery_readiness_score,omitzero"` // the provider's score of recovery
	Efficiency             *float64 `json:"efficiency,omitzero"`               // percentage of Duration that the user slept
	HRLowest               *int64   `json:"hr_lowest,omitzero"`                // beats per minute
	HRAverage              *int64   `json:"hr_average,omitzero"`               // beats per minute
	HRResting              *int64   `json:"hr_resting,omitzero"`               // beats per minute
	HRDip                  *float64 `json:"hr_dip,omitzero"`                   // drop of the heart rate during sleep
	AverageHRV             *float64 `json:"average_hrv,omitzero"`              // mean heart rate variability
	RespiratoryRate        *float64 `json:"respiratory_rate,omitzero"`         // mean breaths per minute
	TemperatureDelta       *float64 `json:"temperature_delta,omitzero"`        // skin temperature above the user's mean, degrees Celsius
	SkinTemperature        *float64 `json:"skin_temperature,omitzero"`         // degrees Celsius
	// SleepStream has the series that were recorded during the sleep.
	//
	// Deprecated: no replacement is documented.
	SleepStream *labhealth.SleepStream `json:"sleep_stream,omitzero"`

	CreatedAt time.Time `json:"created_at"` // when the summary was created
	UpdatedAt time.Time `json:"updated_at"` // when it last changed

	labhealth.RawObject `json:"-"`
}

// SleepType is the kind of a period of sleep. Values other than the constants occur.
type SleepType string

// The documented types of sleep.
const (
	SleepTypeLongSleep       SleepType = "long_sleep"
	SleepTypeShortSleep      SleepType = "short_sleep"
	SleepTypeAcknowledgedNap SleepType = "acknowledged_nap"
	SleepTypeUnknown         SleepType = "unknown"
)

// SleepState says whether a summary of sleep is final. Values other than the constants occur.
type SleepState string

// The documented states of a summary of sleep.
const (
	SleepStateTentative SleepState = "tentative"
	SleepStateConfirmed SleepState = "confirmed"
)

// SleepCycle has the stages of one period of sleep: the data of daily.data.sleep_cycle.created and
// .updated. The three lists are parallel: elements with the same index belong to the same stage.
// Printed or logged, it shows only its IDs.
type SleepCycle struct {
	ID      uuid.UUID `json:"id"`       // the same in every version of the summary; zero if it cannot be read
	SleepID uuid.UUID `json:"sleep_id"` // ID of the Sleep
	UserID  uuid.UUID `json:"user_id"`  // the service's ID of the user
	Source  Source    `json:"source"`   // origin of the data

	SessionStart time.Time `json:"session_start"`      // start of the sleep; UTC if it was sent without an offset
	SessionEnd   time.Time `json:"session_end"`        // end of the sleep; UTC if it was sent without an offset
	TimeZone     *string   `json:"time_zone,omitzero"` // name of the user's time zone

	StageStartOffsetSecond []int64 `json:"stage_start_offset_second"` // seconds from SessionStart
	StageEndOffsetSecond   []int64 `json:"stage_end_offset_second"`   // seconds from SessionStart
	// StageType has the number of each stage: -1 or 1 to 5. The reference does not document the
	// meaning of the numbers.
	StageType []int64 `json:"stage_type"`

	SourceProvider string     `json:"source_provider"`           // slug of the provider
	SourceType     SourceType `json:"source_type"`               // kind of device or method
	SourceAppID    *string    `json:"source_app_id,omitzero"`    // ID of the app that recorded the data
	SourceDeviceID *uuid.UUID `json:"source_device_id,omitzero"` // ID of the device that recorded the data

	CreatedAt time.Time `json:"created_at"` // when the summary was created
	UpdatedAt time.Time `json:"updated_at"` // when it last changed

	labhealth.RawObject `json:"-"`
}

// Workout is the summary of a workout: the data of daily.data.workouts.created and .updated. A
// value that was not measured is nil. The data recorded during the workout can be read with
// Workouts.Stream of a [labhealth.Client]. Printed or logged, a Workout shows only its IDs.
type Workout struct {
	ID           uuid.UUID      `json:"id"`                   // the same in every version of the summary; zero if it cannot be read
	UserID       uuid.UUID      `json:"user_id"`              // the service's ID of the user
	Source       Source         `json:"source"`               // origin of the data
	ProviderID   string         `json:"provider_id"`          // the provider's ID of the workout
	Title        *string        `json:"title,omitzero"`       // the user's or the provider's name of the workout
	CalendarDate labhealth.Date `json:"calendar_date"`        // the day in the user's local time
	TimeStart    time.Time      `json:"time_start"`           // start of the workout
	TimeEnd      time.Time      `json:"time_end"`             // end of the workout
	MovingTime   *int64         `json:"moving_time,omitzero"` // seconds of activity
	// TimezoneOffset is the user's offset in seconds east of UTC.
	TimezoneOffset *int64 `json:"timezone_offset,omitzero"`
	Sport          Sport  `json:"sport" jsonread:"text"` // kind of workout; zero if it is missing or ""

	AverageHR *int64  `json:"average_hr,omitzero"` // beats per minute
	MaxHR     *int64  `json:"max_hr,omitzero"`     // beats per minute
	HRZones   []int64 `json:"hr_zones,omitzero"`   // seconds in each zone of the heart rate, from low to high

	Calories             *float64 `json:"calories,omitzero"`               // kilocalories
	Steps                *int64   `json:"steps,omitzero"`                  // count
	Distance             *float64 `json:"distance,omitzero"`               // meters
	TotalElevationGain   *float64 `json:"total_elevation_gain,omitzero"`   // meters
	ElevHigh             *float64 `json:"elev_high,omitzero"`              // highest point in meters
	ElevLow              *float64 `json:"elev_low,omitzero"`               // lowest point in meters
	AverageSpeed         *float64 `json:"average_speed,omitzero"`          // meters per second
	MaxSpeed             *float64 `json:"max_speed,omitzero"`              // meters per second
	AverageWatts         *float64 `json:"average_watts,omitzero"`          // watts
	DeviceWatts          *float64 `json:"device_watts,omitzero"`           // watts
	MaxWatts             *float64 `json:"max_watts,omitzero"`              // watts
	WeightedAverageWatts *float64 `json:"weighted_average_watts,omitzero"` // watts

	Map *WorkoutMap `json:"map,omitzero"` // where the user moved; nil if not recorded

	CreatedAt time.Time `json:"created_at"` // when the summary was created
	UpdatedAt time.Time `json:"updated_at"` // when it last changed

	labhealth.RawObject `json:"-"`
}

// WorkoutMap is the route of a workout.
type WorkoutMap struct {
	Polyline        *string `json:"polyline,omitzero"`         // the encoded route
	SummaryPolyline *string `json:"summary_polyline,omitzero"` // the encoded route with fewer points

	labhealth.RawObject `json:"-"`
}

// Body is a measurement of the body: the data of daily.data.body.created and .updated. A value that
// was not measured is nil. Printed or logged, it shows only its IDs.
type Body struct {
	ID           uuid.UUID      `json:"id"`            // the same in every version of the summary; zero if it cannot be read
	UserID       uuid.UUID      `json:"user_id"`       // the service's ID of the user
	Source       Source         `json:"source"`        // origin of the data
	CalendarDate labhealth.Date `json:"calendar_date"` // the day in the user's local time
	// Date is the day as a date-time.
	//
	// Deprecated: use CalendarDate.
	Date time.Time `json:"date"`

	Weight                       *float64 `json:"weight,omitzero"`                         // kilograms
	Fat                          *float64 `json:"fat,omitzero"`                            // percentage of body fat
	WaterPercentage              *float64 `json:"water_percentage,omitzero"`               // percentage of water
	MuscleMassPercentage         *float64 `json:"muscle_mass_percentage,omitzero"`         // percentage of muscle
	VisceralFatIndex             *float64 `json:"visceral_fat_index,omitzero"`             // index of visceral fat
	BoneMassPercentage           *float64 `json:"bone_mass_percentage,omitzero"`           // percentage of bone
	BodyMassIndex                *float64 `json:"body_mass_index,omitzero"`                // kilograms per square meter
	LeanBodyMassKilogram         *float64 `json:"lean_body_mass_kilogram,omitzero"`        // kilograms
	WaistCircumferenceCentimeter *float64 `json:"waist_circumference_centimeter,omitzero"` // centimeters

	CreatedAt time.Time `json:"created_at"` // when the summary was created
	UpdatedAt time.Time `json:"updated_at"` // when it last changed

	labhealth.RawObject `json:"-"`
}

// Profile is what a provider knows about the user: the data of daily.data.profile.created and
// .updated. A value that is not known is nil. Printed or logged, it shows only its IDs.
type Profile struct {
	ID     uuid.UUID `json:"id"`      // the same in every version of the summary; zero if it cannot be read
	UserID uuid.UUID `json:"user_id"` // the service's ID of the user
	Source Source    `json:"source"`  // origin of the data

	Height    *int64            `json:"height,omitzero"`     // centimeters
	BirthDate *labhealth.Date   `json:"birth_date,omitzero"` // the date of birth
	Gender    *labhealth.Gender `json:"gender,omitzero"`     // values other than its constants occur
	Sex       *Sex              `json:"sex,omitzero"`        // the biological sex
	// WheelchairUse is true if the user is known to use a wheelchair, and nil otherwise.
	WheelchairUse *bool `json:"wheelchair_use,omitzero"`

	CreatedAt time.Time `json:"created_at"` // when the summary was created
	UpdatedAt time.Time `json:"updated_at"` // when it last changed

	labhealth.RawObject `json:"-"`
}

// Sex is the sex in a [Profile]. Values other than the constants occur.
type Sex string

// The documented sexes.
const (
	SexFemale Sex = "female"
	SexMale   Sex = "male"
	SexOther  Sex = "other"
)

// Electrocardiogram is the summary of a recording of the heart's voltage: the data of
// daily.data.electrocardiogram.created and .updated. The voltages are sent as samples of
// electrocardiogram_voltage. A value that is not known is nil. Printed or logged, it shows only its
// IDs.
type Electrocardiogram struct {
	ID     uuid.UUID `json:"id"`      // the same in every version of the summary; zero if it cannot be read
	UserID uuid.UUID `json:"user_id"` // the service's ID of the user
	Source Source    `json:"source"`  // origin of the data

	SessionStart time.Time `json:"session_start"`      // start of the recording; UTC if it was sent without an offset
	SessionEnd   time.Time `json:"session_end"`        // end of the recording; UTC if it was sent without an offset
	TimeZone     *string   `json:"time_zone,omitzero"` // name of the user's time zone

	VoltageSampleCount  int64    `json:"voltage_sample_count"`           // count
	SamplingFrequencyHz *float64 `json:"sampling_frequency_hz,omitzero"` // samples in a second
	HeartRateMean       *int64   `json:"heart_rate_mean,omitzero"`       // beats per minute

	// Classification is the finding of the provider's algorithm.
	Classification *ElectrocardiogramClassification `json:"classification,omitzero"`
	// InconclusiveCause is why the algorithm has no finding.
	InconclusiveCause *ElectrocardiogramInconclusiveCause `json:"inconclusive_cause,omitzero"`
	AlgorithmVersion  *string                             `json:"algorithm_version,omitzero"` // version of the algorithm

	SourceProvider    string     `json:"source_provider"`              // slug of the provider
	SourceType        SourceType `json:"source_type"`                  // kind of device or method
	SourceAppID       *string    `json:"source_app_id,omitzero"`       // ID of the app that recorded the data
	SourceDeviceModel *string    `json:"source_device_model,omitzero"` // model of the device that recorded the data
	SourceDeviceID    *uuid.UUID `json:"source_device_id,omitzero"`    // ID of the device that recorded the data

	CreatedAt time.Time `json:"created_at"` // when the summary was created
	UpdatedAt time.Time `json:"updated_at"` // when it last changed

	labhealth.RawObject `json:"-"`
}

// ElectrocardiogramClassification is the finding of an [Electrocardiogram]. Values other than the
// constants occur.
type ElectrocardiogramClassification string

// The documented classifications.
const (
	ElectrocardiogramSinusRhythm        ElectrocardiogramClassification = "sinus_rhythm"
	ElectrocardiogramAtrialFibrillation ElectrocardiogramClassification = "atrial_fibrillation"
	ElectrocardiogramInconclusive       ElectrocardiogramClassification = "inconclusive"
)

// ElectrocardiogramInconclusiveCause is why an [Electrocardiogram] is inconclusive. Values other
// than the constants occur.
type ElectrocardiogramInconclusiveCause string

// The documented causes.
const (
	InconclusiveHighHeartRate ElectrocardiogramInconclusiveCause = "high_heart_rate"
	InconclusiveLowHeartRate  ElectrocardiogramInconclusiveCause = "low_heart_rate"
	InconclusivePoorReading   ElectrocardiogramInconclusiveCause = "poor_reading"
)
