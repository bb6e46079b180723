// WearablesService: summaries and samples as raw JSON, and the stream of a sleep.

package labhealth

// Source of this file: public API reference only.

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// WearablesService reads the wearable data of the team's users: what the service sends as
// daily.data events. Its methods return raw JSON. For typed data, use the functions of package
// webhooks, which has the types: ReadSummaries and ReadSamples read one resource of a user, ReadAll
// reads everything, DecodeSummary decodes an element of a [SummaryPage], and a Samples has the JSON
// of a group of a [SamplePage]. Source of its operations: public API reference only.
type WearablesService struct{ core *core }

const (
	opSummaries   = "GET /v2/summary/{resource}/{user_id}"
	opSamples     = "GET /v2/timeseries/{user_id}/{resource}/grouped"
	opSleepStream = "GET /v2/timeseries/sleep/{sleep_id}/stream"
)

// maxWearableBody is the body limit of responses with wearable data, which can be large.
const maxWearableBody = 64 << 20

// SummaryResource is a resource whose data is summaries, such as one for each day or workout.
// Values other than the constants occur.
type SummaryResource string

// Values of [SummaryResource].
const (
	SummaryActivity          SummaryResource = "activity"
	SummaryBody              SummaryResource = "body"
	SummaryElectrocardiogram SummaryResource = "electrocardiogram"
	SummaryMeal              SummaryResource = "meal"
	SummaryMenstrualCycle    SummaryResource = "menstrual_cycle"
	SummaryProfile           SummaryResource = "profile" // one for each provider; it has no dates
	SummarySleep             SummaryResource = "sleep"
	SummarySleepCycle        SummaryResource = "sleep_cycle"
	SummaryWorkouts          SummaryResource = "workouts"
)

// SampleResource is a resource whose data is samples. Two names differ from those of events:
// body_weight is weight in events, and body_fat is fat. Values other than the constants occur.
type SampleResource string

// Values of [SampleResource].
const (
	SampleAFibBurden                 SampleResource = "afib_burden"
	SampleBasalBodyTemperature       SampleResource = "basal_body_temperature"
	SampleBloodOxygen                SampleResource = "blood_oxygen"
	SampleBloodPressure              SampleResource = "blood_pressure"
	SampleBodyFat                    SampleResource = "body_fat" // fat in events
	SampleBodyMassIndex              SampleResource = "body_mass_index"
	SampleBodyTemperature            SampleResource = "body_temperature"
	SampleBodyTemperatureDelta       SampleResource = "body_temperature_delta"
	SampleBodyWeight                 SampleResource = "body_weight" // weight in events
	SampleCaffeine                   SampleResource = "caffeine"
	SampleCaloriesActive             SampleResource = "calories_active"
	SampleCaloriesBasal              SampleResource = "calories_basal"
	SampleCarbohydrates              SampleResource = "carbohydrates"
	SampleCholesterol                SampleResource = "cholesterol"
	SampleDaylightExposure           SampleResource = "daylight_exposure"
	SampleDistance                   SampleResource = "distance"
	SampleElectrocardiogramVoltage   SampleResource = "electrocardiogram_voltage"
	SampleFall                       SampleResource = "fall"
	SampleFloorsClimbed              SampleResource = "floors_climbed"
	SampleForcedExpiratoryVolume1    SampleResource = "forced_expiratory_volume_1"
	SampleForcedVitalCapacity        SampleResource = "forced_vital_capacity"
	SampleGlucose                    SampleResource = "glucose"
	SampleHandwashing                SampleResource = "handwashing"
	SampleHeartRateAlert             SampleResource = "heart_rate_alert"
	SampleHeartRateRecoveryOneMinute SampleResource = "heart_rate_recovery_one_minute"
	SampleHeartRate                  SampleResource = "heartrate"
	SampleHRV                        SampleResource = "hrv"
	SampleIgE                        SampleResource = "ige"
	SampleIgG                        SampleResource = "igg"
	SampleInhalerUsage               SampleResource = "inhaler_usage"
	SampleInsulinInjection           SampleResource = "insulin_injection"
	SampleLeanBodyMass               SampleResource = "lean_body_mass"
	SampleMindfulnessMinutes         SampleResource = "mindfulness_minutes"
	SampleNote                       SampleResource = "note"
	SamplePeakExpiratoryFlowRate     SampleResource = "peak_expiratory_flow_rate"
	SampleRespiratoryRate            SampleResource = "respiratory_rate"
	SampleSleepApneaAlert            SampleResource = "sleep_apnea_alert"
	SampleSleepBreathingDisturbance  SampleResource = "sleep_breathing_disturbance"
	SampleStandDuration              SampleResource = "stand_duration"
	SampleStandHour                  SampleResource = "stand_hour"
	SampleSteps                      SampleResource = "steps"
	SampleStressLevel                SampleResource = "stress_level"
	SampleUVExposure                 SampleResource = "uv_exposure"
	SampleVO2Max                     SampleResource = "vo2_max"
	SampleWaistCircumference         SampleResource = "waist_circumference"
	SampleWater                      SampleResource = "water"
	SampleWheelchairPush             SampleResource = "wheelchair_push"
	SampleWorkoutDistance            SampleResource = "workout_distance"
	SampleWorkoutDuration            SampleResource = "workout_duration"
	SampleWorkoutSwimmingStroke      SampleResource = "workout_swimming_stroke"
)

// ListSummariesParams selects the summaries of a resource.
type ListSummariesParams struct {
	StartDate Date   // first day; required, except for a profile
	EndDate   Date   // last day; zero for today
	Provider  string // slug of one provider; empty for all
}

// summariesQuery has the resource, because a profile needs no dates.
type summariesQuery struct {
	resource SummaryResource
	ListSummariesParams
}

func (q summariesQuery) validate(v *validator) {
	if q.resource != SummaryProfile || !q.StartDate.IsZero() {
		v.date("start_date", q.StartDate)
	}
	if !q.EndDate.IsZero() {
		v.date("end_date", q.EndDate)
	}
}

func (q summariesQuery) query() queryValues {
	values := newQuery()
	values.setDate("start_date", q.StartDate)
	values.setDate("end_date", q.EndDate)
	values.setString("provider", q.Provider)
	return values
}

// SummaryPage is the response of [WearablesService.Summaries].
type SummaryPage struct {
	// Data has the summaries as received. Changes to it have no effect on the JSON encoding of a
	// received page.
	Data []json.RawMessage `json:"-"`

	RawObject `json:"-"`
}

// Summaries returns the summaries of a resource of a user: GET /v2/summary/{resource}/{user_id}.
// The one page has all of them; that of [SummaryProfile] has one profile: of the Provider in params
// or, if it is empty, of any one of the user's providers. The error for an unknown user or
// resource, and for a provider without a profile, matches [ErrNotFound]. The response may have up
// to 64 MiB; webhooks.ReadSummaries splits long periods into several requests.
func (s *WearablesService) Summaries(ctx context.Context, userID uuid.UUID, resource SummaryResource, params ListSummariesParams, opts ...CallOption) (*SummaryPage, error) {
	r := request{
		op: opSummaries, ids: []string{string(resource), userID.String()}, query: summariesQuery{resource, params}, maxBody: maxWearableBody,
	}
	return call(ctx, coreOf(s), new(SummaryPage), r, opts)
}

// summaryLists are the names that the list of a page can have: a resource or its plural.
var summaryLists = []string{
	"activity", "body", "electrocardiogram", "meal", "meals", "menstrual_cycle", "profile", "sleep", "sleep_cycle", "workouts",
}

// verify sets Data. A page without such a list is itself the summary, as that of a profile, or has
// a list of another resource.
func (p *SummaryPage) verify() error {
	var named, first []byte
	hasName, isSummary := false, false
	raw := p.RawJSON()
	for name, value := range jsonread.Fields(raw) {
		isList := value[0] == '['
		switch {
		case string(name) == "id":
			isSummary = true
		case slices.Contains(summaryLists, string(name)):
			hasName = true
			if isList {
				named = value
			}
		case isList && first == nil:
			first = value
		}
	}
	switch {
	case named == nil && isSummary:
		p.Data = []json.RawMessage{raw}
		return nil
	case named == nil && !hasName:
		named = first
	}
	if named == nil {
		return errNoList
	}
	p.Data = []json.RawMessage{}
	for element := range jsonread.Elements(named) {
		p.Data = append(p.Data, slices.Clip(element))
	}
	return nil
}

func (*SummaryPage) fromList(document []byte, _ []json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"data":%s}`, document)
}

// UnmarshalJSON implements [encoding/json.Unmarshaler]. See [RawObject].
func (p *SummaryPage) UnmarshalJSON(b []byte) error {
	*p = SummaryPage{}
	if err := jsonread.Unmarshal(b, p); err != nil {
		return err
	}
	_ = p.verify() // a page without a list has no data
	return nil
}

// MarshalJSON returns the received JSON, or a page with Data if it was not received.
func (p SummaryPage) MarshalJSON() ([]byte, error) {
	if raw := p.RawJSON(); raw != nil {
		return raw, nil
	}
	return json.Marshal(map[string][]json.RawMessage{"data": p.Data})
}

// ListSamplesParams selects the samples of a resource.
type ListSamplesParams struct {
	// StartDate is the start of the period and required. Some sources label local time as UTC: a
	// start some hours earlier includes their samples.
	StartDate time.Time
	EndDate   time.Time // end of the period; zero for now
	Provider  string    // slug of one provider; empty for all
	// NextCursor is where the page starts: NextCursor of the previous page, or empty for the first.
	NextCursor string
}

func (p ListSamplesParams) validate(v *validator) {
	if p.StartDate.IsZero() {
		v.add("start_date", "missing", "is required: a time")
	}
	v.time("start_date", p.StartDate)
	v.time("end_date", p.EndDate)
}

func (p ListSamplesParams) query() queryValues {
	q := newQuery()
	q.setTime("start_date", p.StartDate)
	q.setTime("end_date", p.EndDate)
	q.setString("provider", p.Provider)
	q.setString("next_cursor", p.NextCursor)
	return q
}

// SamplePage is one page of samples: the response of [WearablesService.Samples].
type SamplePage struct {
	// Groups has the samples by slug of the provider. Each group is an object with the samples of
	// one source, in the fields source and data.
	Groups map[string][]json.RawMessage `json:"groups"`
	// Next is an older name of NextCursor.
	//
	// Deprecated: use NextCursor.
	Next *string `json:"next,omitzero"`
	// NextCursor is where the next page starts, nil on the last page.
	NextCursor *string `json:"next_cursor,omitzero"`

	RawObject `json:"-"`
}

func (p *SamplePage) verify() error {
	if p.Groups == nil {
		return errNoList
	}
	return nil
}

// elements returns the page itself as the only element.
func (p *SamplePage) elements() (pages any, next *string) {
	next = p.NextCursor
	if jsonread.Lookup(p.received(), "next_cursor") == nil {
		next = p.Next
	}
	return []SamplePage{*p}, next
}

// id returns an ID that is the same for pages with the same samples. That of a page without samples
// depends on its cursor, because such pages can follow each other.
func (p *SamplePage) id() uuid.UUID {
	content, isEmpty := sha256.New(), true
	for _, provider := range slices.Sorted(maps.Keys(p.Groups)) {
		for _, group := range p.Groups[provider] {
			if hasSamples(group) {
				content.Write(group)
				isEmpty = isEmpty && len(group) == 0 // as of null
			}
		}
	}
	if isEmpty {
		return contentID(p.received())
	}
	return uuid.UUID(content.Sum(nil)[:16])
}

func (p *SamplePage) isEmpty() bool {
	for _, groups := range p.Groups {
		if slices.ContainsFunc(groups, func(group json.RawMessage) bool { return hasSamples(group) }) {
			return false
		}
	}
	return true
}

// hasSamples reports whether a group has samples, or is not known to have none.
func hasSamples(group []byte) bool {
	list := jsonread.Lookup(group, "data")
	if len(list) == 0 || list[0] != '[' {
		return string(list) != "null"
	}
	for range jsonread.Elements(list) {
		return true
	}
	return false
}

// Samples returns one page of the samples of a resource of a user: GET
// /v2/timeseries/{user_id}/{resource}/grouped. The response may have up to 64 MiB. The error for an
// unknown user or resource matches [ErrNotFound].
func (s *WearablesService) Samples(ctx context.Context, userID uuid.UUID, resource SampleResource, params ListSamplesParams, opts ...CallOption) (*SamplePage, error) {
	r := request{op: opSamples, ids: []string{userID.String(), string(resource)}, query: params, maxBody: maxWearableBody}
	return call(ctx, coreOf(s), new(SamplePage), r, opts)
}

// maxSamplePages is the number of pages of samples after which a list counts as endless.
const maxSamplePages = 10_000

// SamplePages returns an iterator over the pages of samples. It behaves like [LabTestsService.All].
// After 100 pages in a row without samples, and after 10,000 pages, it returns a *DecodeError: read
// a shorter period.
func (s *WearablesService) SamplePages(ctx context.Context, userID uuid.UUID, resource SampleResource, params ListSamplesParams, opts ...CallOption) iter.Seq2[*SamplePage, error] {
	pages := cursorPages(ctx, opts, opSamples, params.NextCursor, (*SamplePage).id, func(ctx context.Context, cursor string, opts []CallOption) (cursorPage, error) {
		params := params
		params.NextCursor = cursor
		return s.Samples(ctx, userID, resource, params, opts...)
	})
	return func(yield func(*SamplePage, error) bool) {
		var progress sampleProgress
		for page, err := range pages {
			if err == nil {
				if err = progress.check(page); err != nil {
					page = nil
				}
			}
			if !yield(page, err) || err != nil {
				return
			}
		}
	}
}

// sampleProgress finds a list that does not end. To cursorPages, which finds other such lists, a
// page is an element, so that none is empty.
type sampleProgress struct {
	pages, empty int       // pages, and those without samples since the last one with any
	last         uuid.UUID // the ID of that one
}

func (s *sampleProgress) check(page *SamplePage) error {
	s.pages++
	s.empty++
	reason := ""
	if !page.isEmpty() {
		id := page.id()
		if id == s.last {
			reason = "it repeats an earlier page"
		}
		s.last, s.empty = id, 0
	}
	_, next := page.elements()
	isLast := next == nil || *next == ""
	switch {
	case s.empty == maxEmptyPages && !isLast:
		reason = fmt.Sprintf("it is the %dth empty page in a row although more is to come", maxEmptyPages)
	case s.pages > maxSamplePages:
		reason = fmt.Sprintf("the list has more than %d pages", maxSamplePages)
	}
	if reason == "" {
		return nil
	}
	return pageError(opSamples, &unreadable{reason: reason})
}

// SleepStream returns the data that was recorded during a sleep: GET
// /v2/timeseries/sleep/{sleep_id}/stream. The ID is that of a sleep summary. The response may have
// up to 64 MiB. The error for an unknown ID matches [ErrNotFound].
func (s *WearablesService) SleepStream(ctx context.Context, sleepID uuid.UUID, opts ...CallOption) (*SleepStream, error) {
	r := request{op: opSleepStream, ids: []string{sleepID.String()}, maxBody: maxWearableBody}
	return call(ctx, coreOf(s), new(SleepStream), r, opts)
}

// SleepStream is the response of [WearablesService.SleepStream]. A list that was not recorded is
// nil or empty.
type SleepStream struct {
	HRV       []SleepStreamSample `json:"hrv,omitzero"`       // heart rate variability
	Heartrate []SleepStreamSample `json:"heartrate,omitzero"` // heart rate
	// Hypnogram has the stages of the sleep. The value of each is the number of the stage. The
	// reference does not document the meaning of the numbers.
	Hypnogram       []SleepStreamSample `json:"hypnogram,omitzero"`
	RespiratoryRate []SleepStreamSample `json:"respiratory_rate,omitzero"` // breaths

	RawObject `json:"-"`
}

// SleepStreamSample is one sample of a [SleepStream].
type SleepStreamSample struct {
	Timestamp      time.Time  `json:"timestamp"`                // when it was measured
	TimezoneOffset *int64     `json:"timezone_offset,omitzero"` // seconds east of UTC
	Start          *time.Time `json:"start,omitzero"`           // of a stage in the hypnogram, else nil
	End            *time.Time `json:"end,omitzero"`             // of a stage in the hypnogram, else nil
	Type           *string    `json:"type,omitzero"`            // how it was measured
	Unit           string     `json:"unit"`                     // the unit of Value, such as "bpm"
	Value          float64    `json:"value"`                    // the number, or the number of the stage
	ID             *int64     `json:"id,omitzero"`              // the service's number of the sample

	RawObject `json:"-"`
}
