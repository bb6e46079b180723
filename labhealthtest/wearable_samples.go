// Invented samples of each resource.

package labhealthtest

import (
	"math"
	"time"
)

// sampleInterval is the time between two invented samples, and the length of an interval.
const sampleInterval = 5 * time.Minute

// sampleKind describes the samples of a resource.
type sampleKind struct {
	unit            string
	lowest, highest float64
	decimals        int
	interval        bool                // the samples have start and end
	types           []string            // in turn; the type of the source if there are none
	more            map[string][]string // further fields: values in turn, "" for null
	listsMore       bool                // further fields are lists
	bloodPressure   bool
	text            []string // values in turn, in place of numbers

	// rhythm returns the share between lowest and highest at a time; nil for a wave.
	rhythm func(sampleContext) float64
}

// sampleKinds are the kinds of all resources with samples, as events name them.
var sampleKinds = map[string]sampleKind{
	"afib_burden":                    {unit: "%", highest: 5, decimals: 1, interval: true},
	"basal_body_temperature":         {unit: "°C", lowest: 36, highest: 37, decimals: 2, interval: true},
	"blood_oxygen":                   {unit: "%", lowest: 93, highest: 99},
	"blood_pressure":                 {unit: "mmHg", lowest: 105, highest: 138, bloodPressure: true},
	"body_mass_index":                {unit: "index", lowest: 20, highest: 27, decimals: 1, interval: true},
	"body_temperature":               {unit: "°C", lowest: 36.1, highest: 37.6, decimals: 2, interval: true, more: sensorLocation},
	"body_temperature_delta":         {unit: "°C", lowest: -0.8, highest: 0.8, decimals: 2, interval: true, more: sensorLocation},
	"caffeine":                       {unit: "g", lowest: 0.03, highest: 0.2, decimals: 3, interval: true},
	"calories_active":                {unit: "kcal", highest: 45, decimals: 1, interval: true, rhythm: walkingRhythm},
	"calories_basal":                 {unit: "kcal", lowest: 5, highest: 7, decimals: 2},
	"carbohydrates":                  {unit: "g", lowest: 5, highest: 90, decimals: 1, interval: true},
	"cholesterol":                    {unit: "mmol/L", lowest: 2, highest: 6, decimals: 2, types: []string{"ldl", "total", "hdl", "triglycerides"}},
	"daylight_exposure":              {unit: "min", highest: 5, decimals: 1, interval: true},
	"distance":                       {unit: "m", highest: 420, decimals: 1, interval: true, rhythm: walkingRhythm},
	"electrocardiogram_voltage":      {unit: "mV", lowest: -0.4, highest: 1.2, decimals: 3, types: []string{"lead_1"}},
	"fall":                           {unit: "count", lowest: 1, highest: 2, interval: true},
	"fat":                            {unit: "%", lowest: 18, highest: 28, decimals: 1},
	"floors_climbed":                 {unit: "count", highest: 6},
	"forced_expiratory_volume_1":     {unit: "L", lowest: 2.5, highest: 4.2, decimals: 2, interval: true},
	"forced_vital_capacity":          {unit: "L", lowest: 3, highest: 5, decimals: 2, interval: true},
	"glucose":                        {unit: "mmol/L", lowest: 4.2, highest: 8.9, decimals: 1, rhythm: glucoseRhythm},
	"handwashing":                    {unit: "count", lowest: 1, highest: 3, interval: true},
	"heart_rate_alert":               {unit: "count", lowest: 1, highest: 1, interval: true, types: []string{"high_heart_rate", "low_heart_rate", "irregular_rhythm"}},
	"heart_rate_recovery_one_minute": {unit: "count", lowest: 15, highest: 40, interval: true},
	"heartrate":                      {unit: "bpm", lowest: 52, highest: 128, rhythm: heartRhythm},
	"hrv":                            {unit: "rmssd", lowest: 22, highest: 95, decimals: 1},
	"ige":                            {unit: "kU/L", lowest: 0.1, highest: 3, decimals: 2, types: []string{"birch", "cat", "milk"}},
	"igg":                            {unit: "ug/mL", lowest: 1, highest: 20, decimals: 1, types: []string{"egg_white", "wheat", "soy"}},
	"inhaler_usage":                  {unit: "count", lowest: 1, highest: 2, interval: true},
	"insulin_injection": {unit: "unit", lowest: 1, highest: 12, decimals: 1, interval: true, types: []string{"rapid_acting", "long_acting"},
		more: map[string][]string{"delivery_mode": {"bolus", "basal"}, "delivery_form": {"standard", ""}, "bolus_purpose": {"meal", ""}}},
	"lean_body_mass":            {unit: "kg", lowest: 45, highest: 62, decimals: 1, interval: true},
	"mindfulness_minutes":       {unit: "min", lowest: 1, highest: 5, interval: true},
	"note":                      {unit: "", interval: true, text: []string{"Breakfast", "A run", "Felt tired"}, more: map[string][]string{"tags": {"food", "exercise", "unspecified"}}, listsMore: true},
	"peak_expiratory_flow_rate": {unit: "L/min", lowest: 350, highest: 600, interval: true},
	"respiratory_rate":          {unit: "bpm", lowest: 12, highest: 18, decimals: 1},
	"sleep_apnea_alert":         {unit: "count", lowest: 1, highest: 1, interval: true},
	"sleep_breathing_disturbance": {unit: "count", highest: 12, decimals: 1, interval: true,
		types: []string{"not_elevated", "elevated"}},
	"stand_duration":          {unit: "min", highest: 5, decimals: 1, interval: true},
	"stand_hour":              {unit: "count", lowest: 1, highest: 1, interval: true, types: []string{"stood", "idle"}},
	"steps":                   {unit: "count", highest: 520, interval: true, rhythm: walkingRhythm},
	"stress_level":            {unit: "%", lowest: 10, highest: 80},
	"uv_exposure":             {unit: "index", highest: 9, interval: true},
	"vo2_max":                 {unit: "mL/kg/min", lowest: 34, highest: 48, decimals: 1, interval: true},
	"waist_circumference":     {unit: "cm", lowest: 70, highest: 95, decimals: 1, interval: true},
	"water":                   {unit: "ml", lowest: 100, highest: 500},
	"weight":                  {unit: "kg", lowest: 61, highest: 84, decimals: 1},
	"wheelchair_push":         {unit: "count", highest: 60, interval: true},
	"workout_distance":        {unit: "m", highest: 900, decimals: 1, interval: true},
	"workout_duration":        {unit: "min", lowest: 1, highest: 5, interval: true, more: map[string][]string{"intensity": {"low", "medium", "high", ""}}},
	"workout_swimming_stroke": {unit: "count", lowest: 60, highest: 130, interval: true},
}

var sensorLocation = map[string][]string{"sensor_location": {"wrist", "finger", ""}}

// sampleContext is what an invented sample depends on.
type sampleContext struct {
	at     time.Time
	index  int // of the sample in its event
	change int // differs between events
	person uint64
}

// invent returns a sample. Those of consecutive changes differ.
func (k *sampleKind) invent(c sampleContext, sourceType string) map[string]any {
	at, i := c.at, c.index
	value := k.value(c)
	sample := map[string]any{
		"id": nil, "timestamp": timestamp(at), "timezone_offset": 3600, "type": sourceType, "unit": k.unit, "value": value,
	}
	if k.types != nil {
		sample["type"] = k.types[i%len(k.types)]
	}
	if k.text != nil {
		sample["value"] = k.text[(i+c.change)%len(k.text)]
	}
	if k.bloodPressure {
		delete(sample, "value")
		sample["systolic"], sample["diastolic"] = value, value-42
	}
	if k.interval {
		sample["start"], sample["end"] = timestamp(at), timestamp(at.Add(sampleInterval))
	}
	for name, values := range k.more {
		switch value := values[i%len(values)]; {
		case value == "":
			sample[name] = nil
		case k.listsMore:
			sample[name] = []string{value}
		default:
			sample[name] = value
		}
	}
	return sample
}

// versions is how many versions of a sample differ by their rhythm.
const versions = 5

// value returns a number within the limits of k: by the time of the day, or on a wave.
func (k *sampleKind) value(c sampleContext) float64 {
	scale := math.Pow10(k.decimals)
	if k.rhythm == nil {
		share := (1 + math.Sin(float64(c.index)/9+2.4*float64(c.change))) / 2
		return math.Round((k.lowest+share*(k.highest-k.lowest))*scale) / scale
	}
	units := math.Round((k.lowest + min(1, max(0, k.rhythm(c)))*(k.highest-k.lowest)) * scale)
	version := float64(c.change % versions)
	if units+version > k.highest*scale {
		version = -version
	}
	return (units + version) / scale
}
