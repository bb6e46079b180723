// The fields that only the samples of some resources have.

package webhooks

// Source of this file: public API reference only.

import (
	"encoding/json"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// SampleDetails has the fields that only the samples of some resources have. A field that is
// missing or null is nil.
type SampleDetails struct {
	// ID is the service's number of the sample. It does not identify the sample: see [SampleKey].
	ID *int64 `json:"id,omitzero"`
	// SensorLocation is where body_temperature and body_temperature_delta were measured.
	SensorLocation *SensorLocation `json:"sensor_location,omitzero"`
	// Intensity is that of a workout_duration.
	Intensity *WorkoutIntensity `json:"intensity,omitzero"`
	// DeliveryMode is how an insulin_injection was delivered.
	DeliveryMode *InsulinDeliveryMode `json:"delivery_mode,omitzero"`
	// DeliveryForm is the form of the bolus of an insulin_injection.
	DeliveryForm *InsulinDeliveryForm `json:"delivery_form,omitzero"`
	// BolusPurpose is why the bolus of an insulin_injection was given.
	BolusPurpose *InsulinBolusPurpose `json:"bolus_purpose,omitzero"`
	// Tags say what a note is about.
	Tags []NoteTag `json:"tags,omitzero"`
	// Grouping has up to four JSON values by which measurements of blood_pressure are grouped. The
	// reference does not document their meaning.
	Grouping []json.RawMessage `json:"grouping,omitzero"`

	labhealth.RawObject `json:"-"`
}

// Details decodes the further fields of the received JSON of the sample. They are zero for a sample
// that the program created. Each call decodes them again, and the program's changes of the sample
// have no effect on them.
func (r RawSample) Details() SampleDetails {
	var d SampleDetails
	if raw := r.RawJSON(); raw != nil {
		_ = jsonread.Unmarshal(raw, &d) // it is valid
	}
	return d
}

// The documented types of samples of resources that require one of a few: [Sample].Type has them.
const (
	SampleTypeLowHeartRate    = "low_heart_rate"   // of heart_rate_alert
	SampleTypeHighHeartRate   = "high_heart_rate"  // of heart_rate_alert
	SampleTypeIrregularRhythm = "irregular_rhythm" // of heart_rate_alert
	SampleTypeRapidActing     = "rapid_acting"     // of insulin_injection
	SampleTypeLongActing      = "long_acting"      // of insulin_injection
	SampleTypeStood           = "stood"            // of stand_hour
	SampleTypeIdle            = "idle"             // of stand_hour
	SampleTypeElevated        = "elevated"         // of sleep_breathing_disturbance
	SampleTypeNotElevated     = "not_elevated"     // of sleep_breathing_disturbance
)

// SensorLocation is where a temperature was measured. Values other than the constants occur.
type SensorLocation string

// The documented locations.
const (
	SensorArmpit           SensorLocation = "armpit"
	SensorBody             SensorLocation = "body"
	SensorEar              SensorLocation = "ear"
	SensorFinger           SensorLocation = "finger"
	SensorGastrointestinal SensorLocation = "gastrointestinal"
	SensorMouth            SensorLocation = "mouth"
	SensorRectum           SensorLocation = "rectum"
	SensorToe              SensorLocation = "toe"
	SensorEardrum          SensorLocation = "eardrum"
	SensorTemporalArtery   SensorLocation = "temporal_artery"
	SensorForehead         SensorLocation = "forehead"
	SensorWrist            SensorLocation = "wrist"
)

// WorkoutIntensity is the intensity of a workout_duration. Values other than the constants occur.
type WorkoutIntensity string

// The documented intensities.
const (
	WorkoutIntensityLow    WorkoutIntensity = "low"
	WorkoutIntensityMedium WorkoutIntensity = "medium"
	WorkoutIntensityHigh   WorkoutIntensity = "high"
)

// InsulinDeliveryMode is how insulin was delivered. Values other than the constants occur.
type InsulinDeliveryMode string

// The documented modes.
const (
	InsulinDeliveryBasal InsulinDeliveryMode = "basal"
	InsulinDeliveryBolus InsulinDeliveryMode = "bolus"
)

// InsulinDeliveryForm is the form of a bolus. Values other than the constants occur.
type InsulinDeliveryForm string

// The documented forms.
const (
	InsulinDeliveryStandard InsulinDeliveryForm = "standard"
	InsulinDeliveryExtended InsulinDeliveryForm = "extended"
)

// InsulinBolusPurpose is why a bolus was given. Values other than the constants occur.
type InsulinBolusPurpose string

// The documented purposes.
const (
	InsulinBolusMeal       InsulinBolusPurpose = "meal"
	InsulinBolusCorrection InsulinBolusPurpose = "correction"
	InsulinBolusMixed      InsulinBolusPurpose = "mixed"
	InsulinBolusUnknown    InsulinBolusPurpose = "unknown"
)

// NoteTag is what a note is about. Values other than the constants occur.
type NoteTag string

// The documented tags.
const (
	NoteTagFood             NoteTag = "food"
	NoteTagExercise         NoteTag = "exercise"
	NoteTagInsulinInjection NoteTag = "insulin_injection"
	NoteTagUnspecified      NoteTag = "unspecified"
)
