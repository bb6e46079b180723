// The summary of a menstrual cycle.

package webhooks

// Source of this file: public API reference only.

import (
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
)

// MenstrualCycle is the summary of a menstrual cycle: the data of
// daily.data.menstrual_cycle.created and .updated. Each list has the user's entries of one kind,
// and is nil if it is missing. Printed or logged, it shows only its IDs.
type MenstrualCycle struct {
	ID     uuid.UUID `json:"id"`      // the same in every version of the summary; zero if it cannot be read
	UserID uuid.UUID `json:"user_id"` // the service's ID of the user
	Source Source    `json:"source"`  // origin of the data

	PeriodStart labhealth.Date  `json:"period_start"`                 // first day of the period
	PeriodEnd   *labhealth.Date `json:"period_end,omitzero"`          // last day of the period; nil if not known
	CycleEnd    *labhealth.Date `json:"cycle_end,omitzero"`           // last day of the cycle; nil if not known
	IsPredicted bool            `json:"is_predicted" default:"false"` // the provider predicts the cycle

	MenstrualFlow          []MenstrualFlowEntry          `json:"menstrual_flow,omitzero"`          // flow
	CervicalMucus          []CervicalMucusEntry          `json:"cervical_mucus,omitzero"`          // cervical mucus
	IntermenstrualBleeding []IntermenstrualBleedingEntry `json:"intermenstrual_bleeding,omitzero"` // bleeding between periods
	Contraceptive          []ContraceptiveEntry          `json:"contraceptive,omitzero"`           // contraceptives
	DetectedDeviations     []DetectedDeviationEntry      `json:"detected_deviations,omitzero"`     // deviations that the provider found
	OvulationTest          []OvulationTestEntry          `json:"ovulation_test,omitzero"`          // tests of ovulation
	HomePregnancyTest      []HomePregnancyTestEntry      `json:"home_pregnancy_test,omitzero"`     // tests of pregnancy
	HomeProgesteroneTest   []HomeProgesteroneTestEntry   `json:"home_progesterone_test,omitzero"`  // tests of progesterone
	SexualActivity         []SexualActivityEntry         `json:"sexual_activity,omitzero"`         // sexual activity
	BasalBodyTemperature   []BasalBodyTemperatureEntry   `json:"basal_body_temperature,omitzero"`  // temperatures

	SourceProvider string     `json:"source_provider"`           // slug of the provider
	SourceType     SourceType `json:"source_type"`               // kind of device or method
	SourceAppID    *string    `json:"source_app_id,omitzero"`    // ID of the app that recorded the data
	SourceDeviceID *uuid.UUID `json:"source_device_id,omitzero"` // ID of the device that recorded the data

	CreatedAt time.Time `json:"created_at"` // when the summary was created
	UpdatedAt time.Time `json:"updated_at"` // when it last changed

	labhealth.RawObject `json:"-"`
}

// MenstrualFlowEntry is the menstrual flow of a day.
type MenstrualFlowEntry struct {
	Date labhealth.Date `json:"date"` // the day
	Flow MenstrualFlow  `json:"flow"` // amount

	labhealth.RawObject `json:"-"`
}

// CervicalMucusEntry is the cervical mucus of a day.
type CervicalMucusEntry struct {
	Date    labhealth.Date       `json:"date"`    // the day
	Quality CervicalMucusQuality `json:"quality"` // quality

	labhealth.RawObject `json:"-"`
}

// IntermenstrualBleedingEntry is a day with bleeding between periods.
type IntermenstrualBleedingEntry struct {
	Date labhealth.Date `json:"date"` // the day

	labhealth.RawObject `json:"-"`
}

// ContraceptiveEntry is a contraceptive that the user took or used on a day.
type ContraceptiveEntry struct {
	Date labhealth.Date    `json:"date"` // the day
	Type ContraceptiveType `json:"type"` // kind

	labhealth.RawObject `json:"-"`
}

// DetectedDeviationEntry is a deviation that the provider found on a day.
type DetectedDeviationEntry struct {
	Date      labhealth.Date     `json:"date"`      // the day
	Deviation MenstrualDeviation `json:"deviation"` // kind

	labhealth.RawObject `json:"-"`
}

// OvulationTestEntry is the result of an ovulation test.
type OvulationTestEntry struct {
	Date       labhealth.Date    `json:"date"`        // the day
	TestResult HormoneTestResult `json:"test_result"` // result

	labhealth.RawObject `json:"-"`
}

// HomePregnancyTestEntry is the result of a pregnancy test.
type HomePregnancyTestEntry struct {
	Date       labhealth.Date    `json:"date"`        // the day
	TestResult HormoneTestResult `json:"test_result"` // result

	labhealth.RawObject `json:"-"`
}

// HomeProgesteroneTestEntry is the result of a progesterone test.
type HomeProgesteroneTestEntry struct {
	Date       labhealth.Date    `json:"date"`        // the day
	TestResult HormoneTestResult `json:"test_result"` // result

	labhealth.RawObject `json:"-"`
}

// SexualActivityEntry is sexual activity on a day.
type SexualActivityEntry struct {
	Date           labhealth.Date `json:"date"`                     // the day
	ProtectionUsed *bool          `json:"protection_used,omitzero"` // nil if not known

	labhealth.RawObject `json:"-"`
}

// BasalBodyTemperatureEntry is the temperature of the body at rest on a day.
type BasalBodyTemperatureEntry struct {
	Date  labhealth.Date `json:"date"`  // the day
	Value float64        `json:"value"` // temperature; the reference does not give the unit

	labhealth.RawObject `json:"-"`
}

// MenstrualFlow is the amount of the menstrual flow. Values other than the constants occur.
type MenstrualFlow string

// The documented amounts.
const (
	MenstrualFlowUnspecified MenstrualFlow = "unspecified"
	MenstrualFlowNone        MenstrualFlow = "none"
	MenstrualFlowLight       MenstrualFlow = "light"
	MenstrualFlowMedium      MenstrualFlow = "medium"
	MenstrualFlowHeavy       MenstrualFlow = "heavy"
)

// CervicalMucusQuality is the quality of the cervical mucus. Values other than the constants occur.
type CervicalMucusQuality string

// The documented qualities.
const (
	CervicalMucusDry      CervicalMucusQuality = "dry"
	CervicalMucusSticky   CervicalMucusQuality = "sticky"
	CervicalMucusCreamy   CervicalMucusQuality = "creamy"
	CervicalMucusWatery   CervicalMucusQuality = "watery"
	CervicalMucusEggWhite CervicalMucusQuality = "egg_white"
)

// ContraceptiveType is the kind of a contraceptive. Values other than the constants occur.
type ContraceptiveType string

// The documented kinds of contraceptives.
const (
	ContraceptiveUnspecified      ContraceptiveType = "unspecified"
	ContraceptiveImplant          ContraceptiveType = "implant"
	ContraceptiveInjection        ContraceptiveType = "injection"
	ContraceptiveIUD              ContraceptiveType = "iud"
	ContraceptiveIntravaginalRing ContraceptiveType = "intravaginal_ring"
	ContraceptiveOral             ContraceptiveType = "oral"
	ContraceptivePatch            ContraceptiveType = "patch"
)

// MenstrualDeviation is the kind of a deviation. Values other than the constants occur.
type MenstrualDeviation string

// The documented deviations.
const (
	DeviationPersistentIntermenstrualBleeding MenstrualDeviation = "persistent_intermenstrual_bleeding"
	DeviationProlongedMenstrualPeriods        MenstrualDeviation = "prolonged_menstrual_periods"
	DeviationIrregularMenstrualCycles         MenstrualDeviation = "irregular_menstrual_cycles"
	DeviationInfrequentMenstrualCycles        MenstrualDeviation = "infrequent_menstrual_cycles"
)

// HormoneTestResult is the result of a test in a [MenstrualCycle]. The surges are results of
// ovulation tests. Values other than the constants occur.
type HormoneTestResult string

// The documented results.
const (
	TestResultNegative                HormoneTestResult = "negative"
	TestResultPositive                HormoneTestResult = "positive"
	TestResultLuteinizingHormoneSurge HormoneTestResult = "luteinizing_hormone_surge"
	TestResultEstrogenSurge           HormoneTestResult = "estrogen_surge"
	TestResultIndeterminate           HormoneTestResult = "indeterminate"
)
