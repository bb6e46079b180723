package console

import (
	"fmt"
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

// coordinate formats a number in a picture.
func coordinate(v float64) string { return strconv.FormatFloat(round(v, 2)+0, 'f', -1, 64) }

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
	switch {
	case provider == "" && kind == "":
		return "unknown source"
	case kind == "" || kind == "unknown" || kind == provider:
		return provider
	case provider == "":
		return kind
	}
	return provider + ", " + kind
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

var summed = map[string]bool{
	"steps": true, "calories_active": true, "calories_basal": true, "distance": true, "floors_climbed": true, "water": true, "caffeine": true,
	"carbohydrates": true, "daylight_exposure": true, "fall": true, "handwashing": true, "heart_rate_alert": true, "inhaler_usage": true,
	"insulin_injection": true, "mindfulness_minutes": true, "sleep_apnea_alert": true, "stand_duration": true, "stand_hour": true,
	"wheelchair_push": true, "workout_distance": true, "workout_duration": true, "workout_swimming_stroke": true,
}

// sums reports whether the samples of a resource are amounts, which are added and shown as bars.
func sums(resource string) bool { return summed[resource] }

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

// lengthText formats a length of time as 1 h 55 min, or from 10 hours as 13 h.
func lengthText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Round(time.Second).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	case d >= 10*time.Hour:
		return fmt.Sprintf("%d h", int(d.Round(time.Hour).Hours()))
	}
	hours, minutes := int(d.Hours()), int(d.Minutes())%60
	if minutes == 0 {
		return fmt.Sprintf("%d h", hours)
	}
	return fmt.Sprintf("%d h %d min", hours, minutes)
}

func shortDay(t time.Time) string { return t.Format("Mon 2") }

func longDay(t time.Time) string { return t.Format("Monday 2 January 2006") }

// title names a span: Friday 20 November 2026, or 14 to 20 November 2026.
func (s span) title() string {
	from := s.start()
	switch {
	case !s.week:
		return longDay(s.day)
	case from.Year() != s.day.Year():
		return from.Format("2 January 2006") + " to " + s.day.Format("2 January 2006")
	case from.Month() != s.day.Month():
		return from.Format("2 January") + " to " + s.day.Format("2 January 2006")
	}
	return from.Format("2") + " to " + s.day.Format("2 January 2006")
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
