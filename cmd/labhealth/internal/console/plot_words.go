package console

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/labhealth/labhealth-go/webhooks"
)

// round rounds to so many decimals.
func round(v float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(v*scale) / scale
}

var resourceNames = map[string]string{
	"heartrate": "Heart rate", "hrv": "Heart rate variability", "vo2_max": "VO₂ max", "ige": "IgE", "igg": "IgG", "uv_exposure": "UV exposure",
	"workouts": "Workout", "electrocardiogram": "ECG", "electrocardiogram_voltage": "ECG voltage",
}

// resourceName returns "Blood oxygen" for "blood_oxygen".
func resourceName(resource string) string {
	if name := resourceNames[resource]; name != "" {
		return name
	}
	name := strings.ReplaceAll(firstChars(resource, 60), "_", " ")
	if name == "" {
		return "No resource"
	}
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(first)) + name[size:]
}

// sourceText names the source of a series.
func sourceText(of webhooks.Series) string {
	provider, kind := firstChars(of.Provider, 40), firstChars(of.SourceType, 40)
	if kind == "unknown" || kind == provider {
		kind = ""
	}
	return cmp.Or(strings.Trim(provider+", "+kind, ", "), "unknown source")
}

// unitText returns the unit of a plot.
func unitText(resource, unit string) string {
	switch {
	case resource == "steps" && (unit == "count" || unit == ""):
		return "steps"
	case resource == "hrv" && unit == "rmssd":
		return "ms (rmssd)"
	case unit == "index":
		return ""
	}
	return firstChars(unit, 20)
}

// summed are the resources whose samples are amounts, which are added and shown as bars.
var summed = set("steps", "calories_active", "calories_basal", "distance", "floors_climbed", "water", "caffeine", "carbohydrates", "daylight_exposure", "fall",
	"handwashing", "heart_rate_alert", "inhaler_usage", "insulin_injection", "mindfulness_minutes", "sleep_apnea_alert", "stand_duration", "stand_hour",
	"wheelchair_push", "workout_distance", "workout_duration", "workout_swimming_stroke")

// targetOf returns the usual range of a resource in a unit; zeros if there is none.
func targetOf(resource, unit string) [2]float64 {
	switch {
	case resource == "glucose" && strings.EqualFold(unit, "mg/dL"):
		return [2]float64{70, 140}
	case resource == "glucose" && strings.EqualFold(unit, "mmol/L"):
		return [2]float64{3.9, 7.8}
	}
	return [2]float64{}
}

func shortDay(t time.Time) string { return t.Format("Mon 2") }

func longDay(t time.Time) string { return t.Format("Monday 2 January 2006") }

// title names a span: Friday 20 November 2026, or 14 November to 20 November 2026.
func (s span) title() string {
	if !s.week {
		return longDay(s.day)
	}
	return s.start().Format("2 January") + " to " + s.day.Format("2 January 2006")
}

// decimalsOf returns how many decimals tell the values of an axis with so many intervals apart.
func decimalsOf(low, high float64, intervals int) int {
	length, size := high/2-low/2, max(math.Abs(low), math.Abs(high))
	if length < size*1e-9 {
		length = size / 20
	}
	step := length / float64(intervals) * 2
	if step >= 5 || step < 1e-290 {
		return 0
	}
	exponent := int(math.Floor(math.Log10(step)))
	if step > 5*math.Pow10(exponent) { // axes have round steps
		exponent++
	}
	return max(0, 1-exponent)
}

// decimal formats a number with at most so many decimals, and very large and small ones with an
// exponent.
func decimal(v float64, decimals int) string {
	if a := math.Abs(v); a >= 1e9 || a != 0 && a < 1e-4 {
		return strings.Replace(strconv.FormatFloat(v, 'g', 4, 64), "e+", "e", 1)
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		return "0"
	}
	return text
}

// readable writes -14918.5 as −14,918.5.
func readable(text string) string {
	sign := ""
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		sign, text = "−", rest
	}
	whole, rest := text, ""
	if i := strings.IndexAny(text, ".e"); i >= 0 {
		whole, rest = text[:i], text[i:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + whole + strings.Replace(rest, "e-", "e−", 1)
}
