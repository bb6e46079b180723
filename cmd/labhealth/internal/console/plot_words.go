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

// dayNames returns the days of a span for the script, such as Sat,Sun.
func (s span) dayNames() string {
	if !s.week {
		return ""
	}
	var names []string
	for i := range s.days() {
		names = append(names, s.start().AddDate(0, 0, i).Format("Mon"))
	}
	return strings.Join(names, ",")
}

// axisLabel is a label of the x axis. Phones leave out Rest.
type axisLabel struct{ Text, Rest string }

// axis returns the labels of the x axis.
func (s span) axis() (labels []axisLabel) {
	if s.week {
		for i := range s.days() {
			day := s.start().AddDate(0, 0, i)
			labels = append(labels, axisLabel{day.Format("Mon"), day.Format(" 2")})
		}
		return labels
	}
	for hour := 0; hour < 24; hour += 3 {
		labels = append(labels, axisLabel{Text: fmt.Sprintf("%02d:00", hour)})
	}
	return labels
}
