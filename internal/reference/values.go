// The values in the generated documents.

package reference

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Values at the edges of what the types allow, as JSON.
var (
	anyValues = []string{
		`null`, `true`, `0`, `-1.50`, `1e3`, `123456789012345678901234567890`, `""`, `"text"`, `"\u00e9\n<&>"`, `{}`, `[]`,
		`{"id":"x","name":[1,2.0],"created_at":7}`, `[{"a":1},[],null]`, `{"a":{"b":{"c":[{}]}}}`,
	}
	edgeStrings = []string{
		`""`, `" "`, `"Größe 語 🩸"`, `"\ud83e\ude78 \u0041\/"`, `"\u0000\u001f\u2028\"\\"`, `"<b>&amp;</b>"`, `"null"`, `"0"`,
		`"` + strings.Repeat("long text ", 500) + `"`,
	}
	edgeIntegers = []string{"0", "-1", "1", "9223372036854775807", "-9223372036854775808", "9007199254740993"}
	edgeOffsets  = []string{"0", "-43200", "50400", "20700", "-1"} // of time zones, in seconds
	edgeNumbers  = []string{
		"0", "-0.0", "1", "-273.15", "5e-324", "1.7976931348623157e308", "1E-7", "0.10", "123456789012345678", "0.1000000000000000055511151231257827",
	}
	edgeDates = []string{"0001-01-02", "1899-12-31", "2024-02-29", "9999-12-31"}
	edgeTimes = []string{
		"2024-02-29T23:59:59Z", "2024-02-29T23:59:59+00:00", "2024-03-31T02:30:00.5+05:30", "2024-03-31T02:30:00.123456-11:00",
		"2024-03-31T02:30:00.123456789Z", "2024-03-31T02:30:00", "2024-03-31T02:30:00.123456", "2024-03-31", "1969-12-31T23:59:59Z",
	}
)

func (g *Generator) date(f Field) string {
	switch {
	case g.chance(8):
		return strconv.Quote(edgeDates[g.rand.IntN(len(edgeDates))])
	case g.chance(12):
		return strconv.Quote(edgeTimes[g.rand.IntN(len(edgeTimes))])
	case g.Plausible && strings.Contains(f.Name, "birth"), g.Plausible && f.Name == "dob":
		return `"1980-05-17"`
	}
	return g.timeOf(f).Format(`"2006-01-02"`)
}

func (g *Generator) dateTime(f Field) string {
	switch {
	case g.chance(4):
		return strconv.Quote(edgeTimes[g.rand.IntN(len(edgeTimes))])
	case g.Plausible && f.Name == "dob":
		return `"1980-05-17T00:00:00+00:00"`
	}
	return g.timeOf(f).Format(`"2006-01-02T15:04:05-07:00"`)
}

// timeOf returns the time of a field: a start lies eight hours before an end, and the elements of a
// list are five minutes apart.
func (g *Generator) timeOf(f Field) time.Time {
	t := g.Now.UTC().Add(5 * time.Minute * time.Duration(g.index))
	if !g.Plausible {
		return t.Add(-time.Duration(g.rand.IntN(1e6)) * time.Minute)
	}
	if strings.Contains(f.Name, "start") || strings.Contains(f.Name, "created") {
		t = t.Add(-8 * time.Hour)
	}
	return t
}

func (g *Generator) integer(f Field) string {
	if g.chance(4) {
		edges := edgeIntegers
		if f.Name == "timezone_offset" {
			edges = edgeOffsets
		}
		if f.Required && identifying.MatchString(f.Name) {
			edges = edges[1:]
		}
		return edges[g.rand.IntN(len(edges))]
	}
	low, high := plausibleRange(f)
	return strconv.FormatInt(int64(low)+g.rand.Int64N(int64(high-low)+1), 10)
}

func (g *Generator) number(f Field) string {
	if g.chance(3) {
		return edgeNumbers[g.rand.IntN(len(edgeNumbers))]
	}
	low, high := plausibleRange(f)
	return strconv.FormatFloat(math.Round(10*(low+g.rand.Float64()*(high-low)))/10, 'f', -1, 64)
}

// plausibleRanges are the ranges of numbers by the names of their fields and components. The first
// that matches counts.
var plausibleRanges = []struct {
	name      *regexp.Regexp // of "Component.field"
	low, high float64
}{
	{regexp.MustCompile(`timezone_offset$`), -28800, -28800},
	{regexp.MustCompile(`HRV.*value|average_hrv`), 30, 90},
	{regexp.MustCompile(`(HeartRate|Heartrate).*value|bpm|heartrate|hr_(average|lowest|resting)|average_hr|heart_rate_mean`), 50, 100},
	{regexp.MustCompile(`max_hr`), 120, 180},
	{regexp.MustCompile(`systolic`), 105, 135},
	{regexp.MustCompile(`diastolic`), 65, 85},
	{regexp.MustCompile(`Glucose.*value`), 4, 8},
	{regexp.MustCompile(`BloodOxygen.*value|efficiency`), 94, 99},
	{regexp.MustCompile(`espiratory.*(value|rate)`), 12, 18},
	{regexp.MustCompile(`(?i)temperature_?delta|skin_temperature`), -0.5, 0.5},
	{regexp.MustCompile(`(?i)temperature.*value`), 36.1, 37.2},
	{regexp.MustCompile(`(?i)body_?weight.*value|weight$|lean_body_mass|LeanBodyMass.*value`), 55, 85},
	{regexp.MustCompile(`height$`), 160, 190},
	{regexp.MustCompile(`(?i)fat$|BodyFat.*value|percentage|(?i)mass_?index`), 18, 25},
	{regexp.MustCompile(`(?i)steps`), 200, 900},
	{regexp.MustCompile(`calories_total`), 1800, 2600},
	{regexp.MustCompile(`(?i)calories`), 100, 700},
	{regexp.MustCompile(`(?i)distance|daily_movement`), 400, 6000},
	{regexp.MustCompile(`duration$|\.total$|moving_time`), 1800, 27000},
	{regexp.MustCompile(`\.(awake|light|rem|deep)$`), 1800, 7200},
	{regexp.MustCompile(`score|percent`), 60, 95},
	{regexp.MustCompile(`\.lat$`), 37.7, 37.8},
	{regexp.MustCompile(`\.lng$`), -122.5, -122.4},
	{regexp.MustCompile(`price|amount`), 20, 200},
	{regexp.MustCompile(`expires_in`), 3600, 3600},
	{regexp.MustCompile(`(_id|\.id)$`), 1, 9999},
	{regexp.MustCompile(``), 1, 50},
}

// rangeOf caches plausibleRange by "Component.field".
var rangeOf sync.Map

func plausibleRange(f Field) (low, high float64) {
	name := f.Component + "." + f.Name
	if r, ok := rangeOf.Load(name); ok {
		return r.([2]float64)[0], r.([2]float64)[1]
	}
	for _, r := range plausibleRanges {
		if r.name.MatchString(name) {
			rangeOf.Store(name, [2]float64{r.low, r.high})
			return r.low, r.high
		}
	}
	return 0, 0
}

// plausibleStrings are the values of strings by the names of their fields.
var plausibleStrings = map[string]string{
	"first_name": "Ada", "last_name": "Example", "patient": "Ada Example", "receiver_name": "Ada Example", "patient_first_name": "Ada",
	"patient_last_name": "Example", "name": "Example", "dob": "1980-05-17", "age": "45", "gender": "female",
	"phone_number": "+14155550123", "fax_number": "+14155550124", "email": "ada@example.com", "support_email": "help@example.com",
	"critical_result_notification_email": "alerts@example.com", "service_account_email": "robot@example.com",
	"first_line": "1 Example Street", "first_line_address": "1 Example Street", "second_line": "", "city": "San Francisco", "state": "CA",
	"zip": "94105", "zip_code": "94105", "zipcode": "94105", "country": "US", "npi": "1234567890", "company_name": "Example Health",
	"time_zone": "America/Los_Angeles", "timezone": "America/Los_Angeles", "iana_timezone": "America/Los_Angeles",
	"fallback_time_zone": "America/Los_Angeles", "slug": "oura", "provider": "oura", "source_slug": "oura", "external_user_id": "external-1",
	"client_user_id": "user-1", "sample_id": "SAMPLE-0001", "status": "success", "message": "done", "unit": "unit", "type": "automatic",
	"release": "1.0.0", "version": "1.0", "sport": "running", "description": "An example.", "interpretation": "normal",
	"loinc": "2085-9", "loinc_slug": "hdl-cholesterol", "price": "25.00", "radius": "25", "next": "", "next_cursor": "",
	"device_manufacturer": "Example", "device_model": "Example 1", "device_version": "1.0", "app_id": "com.example.app",
}

// units are the units of samples, by their components.
var units = []struct{ component, unit string }{
	{"HRV", "rmssd"}, {"HeartRate", "bpm"}, {"Glucose", "mmol/L"}, {"BloodPressure", "mmHg"}, {"BloodOxygen", "%"}, {"Steps", "count"},
	{"Calories", "kcal"}, {"Distance", "m"}, {"Weight", "kg"}, {"Fat", "%"}, {"Temperature", "°C"}, {"Respiratory", "bpm"},
	{"Water", "ml"}, {"Caffeine", "g"}, {"Mindfulness", "min"}, {"FloorsClimbed", "count"}, {"Vo2", "mL/kg/min"}, {"VO2", "mL/kg/min"},
}

// identifying matches the fields without which a response is of no use. They are never empty or 0.
var identifying = regexp.MustCompile(`^(id|slug|detail|value)$|_(id|key|token|secret|url)$`)

func (g *Generator) string(b *bytes.Buffer, kind string, f Field) {
	if !strings.Contains(f.Limits, "pattern=") && g.chance(4) {
		edges := edgeStrings
		if f.Required && identifying.MatchString(f.Name) {
			edges = edges[1:]
		}
		b.WriteString(edges[g.rand.IntN(len(edges))])
		return
	}
	value, ok := plausibleStrings[f.Name]
	switch {
	case f.Name == "unit":
		for _, u := range units {
			if strings.Contains(f.Component, u.component) {
				value = u.unit
				break
			}
		}
	case ok:
	case kind == "email":
		value = "ada@example.com"
	case kind == "uri" || strings.Contains(f.Name, "url") || f.Name == "logo" || f.Name == "link_web_url":
		value = "https://example.com/" + f.Name
	case kind == "binary":
		value = "bm90IGEgcGljdHVyZQ=="
	default:
		value = fmt.Sprintf("%s-%d", f.Name, 1+g.index)
	}
	writeJSON(b, value)
}
