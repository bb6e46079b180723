// The samples and laboratories of a lab report.

package labhealth

// Source of this file: public API reference only.

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// SampleData describes a sample and its handling.
type SampleData struct {
	SampleID      *string     `json:"sample_id,omitzero"`      // nil if not given
	ControlNumber *string     `json:"control_number,omitzero"` // nil if not given
	DateCollected *SampleTime `json:"date_collected,omitzero"` // when the sample was collected; nil if unknown
	DateReceived  *SampleTime `json:"date_received,omitzero"`  // when the lab received it; nil if unknown
	DateReported  *SampleTime `json:"date_reported,omitzero"`  // when the lab reported results; nil if unknown
	// PerformingLaboratories has the laboratories that analyzed the sample, by a code of the
	// report.
	PerformingLaboratories map[string]PerformingLaboratory `json:"performing_laboratories,omitzero"`
	ClinicalInformation    *ClinicalInformation            `json:"clinical_information,omitzero"` // nil if not given

	RawObject `json:"-"`
}

// PerformingLaboratory is a laboratory that analyzed a sample.
type PerformingLaboratory struct {
	Name            string   `json:"name"`                      // human-readable name
	PhoneNumber     *string  `json:"phone_number,omitzero"`     // nil if not given
	MedicalDirector *string  `json:"medical_director,omitzero"` // nil if not given
	Address         *Address `json:"address,omitzero"`          // nil if not given

	RawObject `json:"-"`
}

// ClinicalInformation is what the lab was told about the patient and the sample.
type ClinicalInformation struct {
	Fasting     bool    `json:"fasting" default:"false"` // whether the patient fasted; false by default
	Notes       *string `json:"notes,omitzero"`          // nil if there are none
	Information *string `json:"information,omitzero"`    // nil if there is none
	TotalVolume *string `json:"total_volume,omitzero"`   // volume of the sample; nil if not given

	RawObject `json:"-"`
}

// SampleTime is a time in [SampleData]. The service sends it as an object with a time and an
// offset, or as a string, which the lab may have written in any format.
type SampleTime struct {
	Redacted

	// Timestamp is the time. It is zero for a string that is not an ISO 8601 date or date-time.
	Timestamp time.Time
	// TimezoneOffset is the offset of the time zone at the place of the event, in seconds east of
	// UTC. The unit is an inference. It is 0 for a string.
	TimezoneOffset int64
	// Text is the string, empty for an object.
	Text string
}

// sampleTimeObject is the UTCTimestampWithTimezoneOffset of the public API reference.
type sampleTimeObject struct {
	Timestamp      time.Time `json:"timestamp"`
	TimezoneOffset int64     `json:"timezone_offset"`

	RawObject `json:"-"`
}

var errSampleTime = errors.New("labhealth: not a time: want a string, or an object with a timestamp")

func (o *sampleTimeObject) verify() error {
	if o.Timestamp.IsZero() {
		return errSampleTime
	}
	return nil
}

// UnmarshalJSON decodes an object or a string. Null leaves t unchanged.
func (t *SampleTime) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		return nil
	case len(b) > 0 && b[0] == '"':
		*t = SampleTime{}
		if err := json.Unmarshal(b, &t.Text); err != nil {
			return err
		}
		t.Timestamp, _ = jsonread.ParseTime([]byte(t.Text))
		return nil
	}
	var object sampleTimeObject
	if err := decodeValue(b, &object, func(b []byte) error { return jsonread.Unmarshal(b, &object) }); err != nil {
		return errSampleTime
	}
	*t = SampleTime{Timestamp: object.Timestamp, TimezoneOffset: object.TimezoneOffset}
	return nil
}

// MarshalJSON encodes the string if there is one, the object otherwise, and the zero SampleTime as
// null.
func (t SampleTime) MarshalJSON() ([]byte, error) {
	switch {
	case t.Text != "":
		return json.Marshal(t.Text)
	case t.Timestamp.IsZero():
		return []byte("null"), nil
	}
	return jsonread.Marshal(sampleTimeObject{Timestamp: t.Timestamp, TimezoneOffset: t.TimezoneOffset})
}
