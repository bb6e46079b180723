// Invented summaries of each resource, and the streams of sleeps.

package labhealthtest

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// inventedSummary is what the summary of a day depends on.
type inventedSummary struct {
	id        uuid.UUID
	day       time.Time // midnight UTC
	date      string
	change    int // differs between versions
	options   *dataOptions
	server    *Server
	wearables *wearables
}

// at returns a time of the day.
func (v *inventedSummary) at(hour, minute int) timestamp {
	return timestamp(v.day.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute))
}

// number returns a number from lowest that differs between versions.
func (v *inventedSummary) number(lowest int) int { return lowest + 7*v.change%90 }

// vary returns a number from 0 to n-1 that differs between days and persons.
func (v *inventedSummary) vary(n int) int {
	return int(noise(v.wearables.person, v.day.Unix(), "summary") * float64(n))
}

// withDay adds the day, which several resources have.
func (v *inventedSummary) withDay(fields map[string]any) map[string]any {
	fields["date"], fields["calendar_date"] = v.at(0, 0), v.date
	return fields
}

// withOrigin adds the origin of summaries that repeat it beside the source.
func (v *inventedSummary) withOrigin(fields map[string]any) map[string]any {
	fields["source_provider"], fields["source_type"] = v.options.provider, v.options.sourceType
	fields["source_app_id"], fields["source_device_id"] = nil, nil
	return fields
}

// inventedSummaries have the fields of each resource, without those that all share.
var inventedSummaries = map[string]func(*inventedSummary) map[string]any{
	"activity":          inventActivity,
	"body":              inventBody,
	"electrocardiogram": inventElectrocardiogram,
	"meal":              inventMeal,
	"menstrual_cycle":   inventMenstrualCycle,
	"profile":           inventProfile,
	"sleep":             inventSleep,
	"sleep_cycle":       inventSleepCycle,
	"workouts":          inventWorkout,
}

func inventActivity(v *inventedSummary) map[string]any {
	steps := v.number(4200) + v.vary(8000)
	return v.withDay(map[string]any{
		"calories_total": 2100 + float64(steps)/50, "calories_active": float64(steps) / 20, "steps": steps,
		"daily_movement": float64(steps) * 0.7, "distance": float64(steps) * 0.7, "low": 140.5 + float64(v.vary(90)), "medium": 22.0 + float64(v.vary(50)), "high": 2.5 + float64(v.vary(30)),
		"floors_climbed": 3 + v.vary(14), "time_zone": "Europe/Lisbon", "timezone_offset": 3600, "wheelchair_use": nil, "wheelchair_push": nil,
		"heart_rate": map[string]any{"avg_bpm": 71.5, "min_bpm": 49.0, "max_bpm": 148.0, "resting_bpm": 54.0, "avg_walking_bpm": 92.0},
	})
}

func inventBody(v *inventedSummary) map[string]any {
	return v.withDay(map[string]any{
		"weight": 72 + float64(v.number(0))/10, "fat": 21.4, "water_percentage": 56.1, "muscle_mass_percentage": 41.2, "visceral_fat_index": 6.0,
		"bone_mass_percentage": 4.1, "body_mass_index": 23.9, "lean_body_mass_kilogram": 57.2, "waist_circumference_centimeter": 82.0,
	})
}

func inventElectrocardiogram(v *inventedSummary) map[string]any {
	return v.withOrigin(map[string]any{
		"session_start": v.at(9, 30), "session_end": v.at(9, 31), "voltage_sample_count": 15360, "heart_rate_mean": v.number(58),
		"sampling_frequency_hz": 512.0, "classification": "sinus_rhythm", "inconclusive_cause": nil, "algorithm_version": "2",
		"time_zone": "Europe/Lisbon", "source_device_model": "Example Watch",
	})
}

func inventMeal(v *inventedSummary) map[string]any {
	energy := map[string]any{"unit": "kcal", "value": v.number(420)}
	macros := map[string]any{
		"carbs": 52.0, "protein": 14.5, "alcohol": nil, "water": 180.0, "fibre": 7.5, "sugar": 12.0, "cholesterol": nil,
		"fats": map[string]any{"saturated": 2.5, "monounsaturated": 3.0, "polyunsaturated": 1.5, "omega3": nil, "omega6": nil, "total": 7.0},
	}
	micros := map[string]any{
		"minerals": map[string]float64{"calcium": 210, "iron": 4.5}, "trace_elements": nil, "vitamins": map[string]float64{"vitamin_c": 12.5},
	}
	return map[string]any{
		"priority_id": 1, "source_id": 16, "provider_id": "meal-" + v.date, "timestamp": v.at(8, 15), "calendar_date": v.date, "name": "Breakfast",
		"energy": energy, "macros": macros, "micros": micros, "source_app_id": nil, "source_device_id": nil,
		"data": map[string]any{"Porridge with berries": map[string]any{"energy": energy, "macros": macros, "micros": micros}},
	}
}

func inventMenstrualCycle(v *inventedSummary) map[string]any {
	after := func(days int) string { return v.day.AddDate(0, 0, days).Format(time.DateOnly) }
	flows := []string{"light", "heavy", "medium", "none"}
	return v.withOrigin(map[string]any{
		"period_start": v.date, "period_end": after(4), "cycle_end": after(27), "is_predicted": false,
		"menstrual_flow":          []any{map[string]any{"date": v.date, "flow": flows[v.change%4]}, map[string]any{"date": after(1), "flow": "heavy"}},
		"cervical_mucus":          []any{map[string]any{"date": after(12), "quality": "egg_white"}},
		"intermenstrual_bleeding": []any{map[string]any{"date": after(15)}},
		"contraceptive":           []any{map[string]any{"date": after(9), "type": "unspecified"}},
		"detected_deviations":     []any{},
		"ovulation_test":          []any{map[string]any{"date": after(13), "test_result": "luteinizing_hormone_surge"}},
		"home_pregnancy_test":     []any{map[string]any{"date": after(26), "test_result": "negative"}},
		"home_progesterone_test":  []any{},
		"sexual_activity":         []any{map[string]any{"date": after(10), "protection_used": true}},
		"basal_body_temperature":  []any{map[string]any{"date": after(2), "value": 36.41}},
	})
}

func inventProfile(v *inventedSummary) map[string]any {
	return map[string]any{"height": v.number(160), "birth_date": "1990-01-31", "wheelchair_use": nil, "gender": "female", "sex": "female"}
}

func inventSleep(v *inventedSummary) map[string]any {
	asleep := v.number(22000) + v.vary(5000)
	v.server.sleeps[v.id] = encode(v.sleepStream())
	return v.withDay(map[string]any{
		"bedtime_start": timestamp(v.bedtime()), "bedtime_stop": v.at(6, 40), "type": "long_sleep", "timezone_offset": 3600, "duration": 28200,
		"total": asleep, "awake": 28200 - asleep, "light": asleep - 10400 - v.vary(2400), "rem": 5600 + v.vary(2400), "deep": 4800, "score": 62 + v.vary(32), "recovery_readiness_score": 58 + v.vary(36),
		"hr_lowest": 48, "hr_average": 55, "hr_resting": 51, "efficiency": 89.0, "latency": 540, "temperature_delta": -0.1, "skin_temperature": 34.6,
		"hr_dip": 12.5, "state": "confirmed", "average_hrv": 61.5, "respiratory_rate": 14.2, "sleep_stream": nil,
	})
}

func (v *inventedSummary) bedtime() time.Time { return v.day.Add(-70 * time.Minute) }

// sleepStream returns the samples of a sleep, one for every half hour.
func (v *inventedSummary) sleepStream() map[string]any {
	const step = 30 * time.Minute
	stream := map[string]any{}
	stages := []int{3, 2, 1, 2, 3, 2, 1, 4} // the service numbers deep, light, REM and awake so
	hypnogram := []any{}
	for i := range 16 {
		at := v.bedtime().Add(time.Duration(i) * step)
		hypnogram = append(hypnogram, map[string]any{
			"id": nil, "timestamp": timestamp(at), "timezone_offset": 3600, "type": nil, "unit": "stage",
			"start": timestamp(at), "end": timestamp(at.Add(step)), "value": stages[i%len(stages)],
		})
	}
	stream["hypnogram"] = hypnogram
	for _, resource := range []string{"hrv", "heartrate", "respiratory_rate"} {
		kind, samples := sampleKinds[resource], []any{}
		for i := range 16 {
			samples = append(samples, kind.invent(sampleContext{v.bedtime().Add(time.Duration(i) * step), i, v.change, v.wearables.person}, v.options.sourceType))
		}
		stream[resource] = samples
	}
	return stream
}

// inventSleepCycle refers to the sleep of the same day and source, if there is one.
func inventSleepCycle(v *inventedSummary) map[string]any {
	sleepID := v.id
	sleeps := v.wearables.summaries["sleep"]
	if i := slices.IndexFunc(sleeps, func(s *storedSummary) bool { return s.date == v.date && s.provider == v.options.provider }); i >= 0 {
		sleepID = sleeps[i].id
	}
	last := v.number(27000)
	return v.withOrigin(map[string]any{
		"sleep_id": sleepID, "session_start": timestamp(v.bedtime()), "session_end": v.at(6, 40), "time_zone": "Europe/Lisbon",
		"stage_start_offset_second": []int{0, 1800, 9000, 14400}, "stage_end_offset_second": []int{1800, 9000, 14400, last},
		"stage_type": []int{2, 3, 4, 1},
	})
}

func inventWorkout(v *inventedSummary) map[string]any {
	v.server.workouts[v.id] = newWorkoutStream(time.Time(v.at(7, 0)), 45*60)
	return map[string]any{
		"title": "Morning ride", "timezone_offset": 3600, "average_hr": 138, "max_hr": 171, "distance": float64(v.number(14000)), "calendar_date": v.date,
		"time_start": v.at(7, 0), "time_end": v.at(7, 45), "calories": 410.5, "hr_zones": []int{120, 480, 900, 900, 240, 60}, "moving_time": 2580,
		"total_elevation_gain": 84.0, "elev_high": 141.5, "elev_low": 97.0, "average_speed": 5.4, "max_speed": 11.2, "average_watts": 176.0,
		"device_watts": 1.0, "max_watts": 492.0, "weighted_average_watts": 190.0, "steps": nil, "provider_id": "ride-" + v.date,
		"map":   map[string]any{"polyline": nil, "summary_polyline": nil},
		"sport": map[string]any{"id": 64, "name": "Cycling", "slug": "cycling"},
	}
}
