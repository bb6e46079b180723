// The types of events, and the payload of each.

package webhooks

import (
	"slices"
	"strings"

	"github.com/labhealth/labhealth-go"
)

// EventType is the type of an event: the event_type of the envelope. Types other than the constants
// occur and must be expected: new ones appear without notice. The empty type means that it is
// missing.
//
// The interface specification names seven of them and the pattern daily.data.<resource>.created and
// .updated. Source of the others: public API reference only.
type EventType string

// Resource returns the part before the action: "glucose" of "daily.data.glucose.created", "order"
// of "labtest.order.updated", "connection" of "provider.connection.error". It is empty if the type
// has fewer than two parts.
func (t EventType) Resource() string {
	rest, _, ok := cutLast(string(t))
	if !ok {
		return ""
	}
	_, resource, _ := cutLast(rest)
	return resource
}

// Action returns the last part: "created", "updated", "error". It is empty if the type has fewer
// than two parts.
func (t EventType) Action() string {
	_, action, ok := cutLast(string(t))
	if !ok {
		return ""
	}
	return action
}

// EventTypes returns a new slice with the constants of EventType in their order: the types of the
// public API reference, and those that are no longer sent. Of a type of daily.data events,
// [EventType.Resource] is a resource of [ReadSamples] or, if a summary, of [ReadSummaries].
func EventTypes() []EventType { return slices.Clone(constants) }

// cutLast cuts s at its last dot. Without one, all of s is after it.
func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '.')
	return s[:max(i, 0)], s[i+1:], i >= 0
}

// dailyPrefix is the prefix of the types of wearable data.
const dailyPrefix = "daily.data."

// payloadType says what the data of an event is decoded into.
type payloadType struct {
	new     func() Payload
	isArray bool // the data is an array, not an object
	samples bool // the data may be a batch of samples instead
}

// payloadTypes has the payload of each type of event, and of groups of types by their common
// prefix, of which the longest counts.
var payloadTypes = map[EventType]*payloadType{
	dailyPrefix:                        {new: func() Payload { return &Summary{} }, samples: true},
	dailyPrefix + "activity.":          {new: func() Payload { return &Activity{} }},
	dailyPrefix + "sleep.":             {new: func() Payload { return &Sleep{} }},
	dailyPrefix + "sleep_cycle.":       {new: func() Payload { return &SleepCycle{} }},
	dailyPrefix + "workouts.":          {new: func() Payload { return &Workout{} }},
	dailyPrefix + "workout_stream.":    {new: func() Payload { return &WorkoutStreamNotice{} }},
	dailyPrefix + "body.":              {new: func() Payload { return &Body{} }},
	dailyPrefix + "profile.":           {new: func() Payload { return &Profile{} }},
	dailyPrefix + "meal.":              {new: func() Payload { return &Meal{} }},
	dailyPrefix + "menstrual_cycle.":   {new: func() Payload { return &MenstrualCycle{} }},
	dailyPrefix + "electrocardiogram.": {new: func() Payload { return &Electrocardiogram{} }},
	"historical.data.":                 {new: func() Payload { return &HistoricalPull{} }},
	ProviderConnectionCreated:          {new: func() Payload { return &ProviderConnection{} }},
	ProviderConnectionError:            {new: func() Payload { return &ConnectionError{} }},
	"provider.device.":                 {new: func() Payload { return &ProviderDevice{} }},
	"labtest.order.":                   {new: func() Payload { return &LabOrder{} }},
	"labtest.appointment.":             {new: func() Payload { return &LabAppointment{} }},
	LabTestResultCritical:              {new: func() Payload { return &CriticalResult{} }},
	"labtest.match_review.":            {new: func() Payload { return &MatchReview{} }},
	"lab_report.parsing_job.":          {new: func() Payload { return &ParsingJob{} }},
	ContinuousQueryResultTableChanged:  {new: func() Payload { return &ContinuousQueryChanges{} }, isArray: true},
}

// payloadTypeOf returns nil for a type that is not in payloadTypes: its data is an [*Unknown].
func payloadTypeOf(t EventType) *payloadType {
	for t != "" {
		if p, ok := payloadTypes[t]; ok {
			return p
		}
		t = t[:strings.LastIndexByte(string(t[:len(t)-1]), '.')+1]
	}
	return nil
}

// knownType is a type of events with its payload.
type knownType struct {
	EventType
	payload *payloadType
}

// known has every constant, so that parsing one allocates no string.
var known = func() map[string]knownType {
	m := make(map[string]knownType, len(constants))
	for _, t := range constants {
		m[string(t)] = knownType{t, payloadTypeOf(t)}
	}
	return m
}()

// Summaries of wearable data. The payload is an [*Activity], [*Sleep], [*SleepCycle], [*Workout],
// [*Body], [*Profile], [*Meal], [*MenstrualCycle] or [*Electrocardiogram], and that of
// workout_stream a [*WorkoutStreamNotice].
const (
	DailyActivityCreated          EventType = "daily.data.activity.created"
	DailyActivityUpdated          EventType = "daily.data.activity.updated"
	DailySleepCreated             EventType = "daily.data.sleep.created"
	DailySleepUpdated             EventType = "daily.data.sleep.updated"
	DailySleepCycleCreated        EventType = "daily.data.sleep_cycle.created"
	DailySleepCycleUpdated        EventType = "daily.data.sleep_cycle.updated"
	DailyWorkoutsCreated          EventType = "daily.data.workouts.created"
	DailyWorkoutsUpdated          EventType = "daily.data.workouts.updated"
	DailyWorkoutStreamCreated     EventType = "daily.data.workout_stream.created"
	DailyWorkoutStreamUpdated     EventType = "daily.data.workout_stream.updated"
	DailyBodyCreated              EventType = "daily.data.body.created"
	DailyBodyUpdated              EventType = "daily.data.body.updated"
	DailyProfileCreated           EventType = "daily.data.profile.created"
	DailyProfileUpdated           EventType = "daily.data.profile.updated"
	DailyMealCreated              EventType = "daily.data.meal.created"
	DailyMealUpdated              EventType = "daily.data.meal.updated"
	DailyMenstrualCycleCreated    EventType = "daily.data.menstrual_cycle.created"
	DailyMenstrualCycleUpdated    EventType = "daily.data.menstrual_cycle.updated"
	DailyElectrocardiogramCreated EventType = "daily.data.electrocardiogram.created"
	DailyElectrocardiogramUpdated EventType = "daily.data.electrocardiogram.updated"
)

// Batches of samples of wearable data. The payload is a [*Samples].
const (
	DailyBloodOxygenCreated                EventType = "daily.data.blood_oxygen.created"
	DailyBloodOxygenUpdated                EventType = "daily.data.blood_oxygen.updated"
	DailyWeightCreated                     EventType = "daily.data.weight.created"
	DailyWeightUpdated                     EventType = "daily.data.weight.updated"
	DailyFatCreated                        EventType = "daily.data.fat.created"
	DailyFatUpdated                        EventType = "daily.data.fat.updated"
	DailyFloorsClimbedCreated              EventType = "daily.data.floors_climbed.created"
	DailyFloorsClimbedUpdated              EventType = "daily.data.floors_climbed.updated"
	DailyCaloriesBasalCreated              EventType = "daily.data.calories_basal.created"
	DailyCaloriesBasalUpdated              EventType = "daily.data.calories_basal.updated"
	DailyGlucoseCreated                    EventType = "daily.data.glucose.created"
	DailyGlucoseUpdated                    EventType = "daily.data.glucose.updated"
	DailyHeartrateCreated                  EventType = "daily.data.heartrate.created"
	DailyHeartrateUpdated                  EventType = "daily.data.heartrate.updated"
	DailyHRVCreated                        EventType = "daily.data.hrv.created"
	DailyHRVUpdated                        EventType = "daily.data.hrv.updated"
	DailyRespiratoryRateCreated            EventType = "daily.data.respiratory_rate.created"
	DailyRespiratoryRateUpdated            EventType = "daily.data.respiratory_rate.updated"
	DailyStressLevelCreated                EventType = "daily.data.stress_level.created"
	DailyStressLevelUpdated                EventType = "daily.data.stress_level.updated"
	DailyWaterCreated                      EventType = "daily.data.water.created"
	DailyWaterUpdated                      EventType = "daily.data.water.updated"
	DailyCholesterolCreated                EventType = "daily.data.cholesterol.created"
	DailyCholesterolUpdated                EventType = "daily.data.cholesterol.updated"
	DailyIgECreated                        EventType = "daily.data.ige.created"
	DailyIgEUpdated                        EventType = "daily.data.ige.updated"
	DailyIgGCreated                        EventType = "daily.data.igg.created"
	DailyIgGUpdated                        EventType = "daily.data.igg.updated"
	DailyElectrocardiogramVoltageCreated   EventType = "daily.data.electrocardiogram_voltage.created"
	DailyElectrocardiogramVoltageUpdated   EventType = "daily.data.electrocardiogram_voltage.updated"
	DailyBloodPressureCreated              EventType = "daily.data.blood_pressure.created"
	DailyBloodPressureUpdated              EventType = "daily.data.blood_pressure.updated"
	DailyCaloriesActiveCreated             EventType = "daily.data.calories_active.created"
	DailyCaloriesActiveUpdated             EventType = "daily.data.calories_active.updated"
	DailyStepsCreated                      EventType = "daily.data.steps.created"
	DailyStepsUpdated                      EventType = "daily.data.steps.updated"
	DailyDistanceCreated                   EventType = "daily.data.distance.created"
	DailyDistanceUpdated                   EventType = "daily.data.distance.updated"
	DailyCaffeineCreated                   EventType = "daily.data.caffeine.created"
	DailyCaffeineUpdated                   EventType = "daily.data.caffeine.updated"
	DailyCarbohydratesCreated              EventType = "daily.data.carbohydrates.created"
	DailyCarbohydratesUpdated              EventType = "daily.data.carbohydrates.updated"
	DailyMindfulnessMinutesCreated         EventType = "daily.data.mindfulness_minutes.created"
	DailyMindfulnessMinutesUpdated         EventType = "daily.data.mindfulness_minutes.updated"
	DailyVO2MaxCreated                     EventType = "daily.data.vo2_max.created"
	DailyVO2MaxUpdated                     EventType = "daily.data.vo2_max.updated"
	DailyAfibBurdenCreated                 EventType = "daily.data.afib_burden.created"
	DailyAfibBurdenUpdated                 EventType = "daily.data.afib_burden.updated"
	DailyStandDurationCreated              EventType = "daily.data.stand_duration.created"
	DailyStandDurationUpdated              EventType = "daily.data.stand_duration.updated"
	DailySleepApneaAlertCreated            EventType = "daily.data.sleep_apnea_alert.created"
	DailySleepApneaAlertUpdated            EventType = "daily.data.sleep_apnea_alert.updated"
	DailyWheelchairPushCreated             EventType = "daily.data.wheelchair_push.created"
	DailyWheelchairPushUpdated             EventType = "daily.data.wheelchair_push.updated"
	DailyForcedExpiratoryVolume1Created    EventType = "daily.data.forced_expiratory_volume_1.created"
	DailyForcedExpiratoryVolume1Updated    EventType = "daily.data.forced_expiratory_volume_1.updated"
	DailyForcedVitalCapacityCreated        EventType = "daily.data.forced_vital_capacity.created"
	DailyForcedVitalCapacityUpdated        EventType = "daily.data.forced_vital_capacity.updated"
	DailyPeakExpiratoryFlowRateCreated     EventType = "daily.data.peak_expiratory_flow_rate.created"
	DailyPeakExpiratoryFlowRateUpdated     EventType = "daily.data.peak_expiratory_flow_rate.updated"
	DailyInhalerUsageCreated               EventType = "daily.data.inhaler_usage.created"
	DailyInhalerUsageUpdated               EventType = "daily.data.inhaler_usage.updated"
	DailyFallCreated                       EventType = "daily.data.fall.created"
	DailyFallUpdated                       EventType = "daily.data.fall.updated"
	DailyUVExposureCreated                 EventType = "daily.data.uv_exposure.created"
	DailyUVExposureUpdated                 EventType = "daily.data.uv_exposure.updated"
	DailyDaylightExposureCreated           EventType = "daily.data.daylight_exposure.created"
	DailyDaylightExposureUpdated           EventType = "daily.data.daylight_exposure.updated"
	DailyHandwashingCreated                EventType = "daily.data.handwashing.created"
	DailyHandwashingUpdated                EventType = "daily.data.handwashing.updated"
	DailyBasalBodyTemperatureCreated       EventType = "daily.data.basal_body_temperature.created"
	DailyBasalBodyTemperatureUpdated       EventType = "daily.data.basal_body_temperature.updated"
	DailyBodyMassIndexCreated              EventType = "daily.data.body_mass_index.created"
	DailyBodyMassIndexUpdated              EventType = "daily.data.body_mass_index.updated"
	DailyLeanBodyMassCreated               EventType = "daily.data.lean_body_mass.created"
	DailyLeanBodyMassUpdated               EventType = "daily.data.lean_body_mass.updated"
	DailyWaistCircumferenceCreated         EventType = "daily.data.waist_circumference.created"
	DailyWaistCircumferenceUpdated         EventType = "daily.data.waist_circumference.updated"
	DailyHeartRateRecoveryOneMinuteCreated EventType = "daily.data.heart_rate_recovery_one_minute.created"
	DailyHeartRateRecoveryOneMinuteUpdated EventType = "daily.data.heart_rate_recovery_one_minute.updated"
	DailyWorkoutDistanceCreated            EventType = "daily.data.workout_distance.created"
	DailyWorkoutDistanceUpdated            EventType = "daily.data.workout_distance.updated"
	DailyWorkoutSwimmingStrokeCreated      EventType = "daily.data.workout_swimming_stroke.created"
	DailyWorkoutSwimmingStrokeUpdated      EventType = "daily.data.workout_swimming_stroke.updated"
	DailyBodyTemperatureCreated            EventType = "daily.data.body_temperature.created"
	DailyBodyTemperatureUpdated            EventType = "daily.data.body_temperature.updated"
	DailyBodyTemperatureDeltaCreated       EventType = "daily.data.body_temperature_delta.created"
	DailyBodyTemperatureDeltaUpdated       EventType = "daily.data.body_temperature_delta.updated"
	DailyWorkoutDurationCreated            EventType = "daily.data.workout_duration.created"
	DailyWorkoutDurationUpdated            EventType = "daily.data.workout_duration.updated"
	DailyInsulinInjectionCreated           EventType = "daily.data.insulin_injection.created"
	DailyInsulinInjectionUpdated           EventType = "daily.data.insulin_injection.updated"
	DailyHeartRateAlertCreated             EventType = "daily.data.heart_rate_alert.created"
	DailyHeartRateAlertUpdated             EventType = "daily.data.heart_rate_alert.updated"
	DailyStandHourCreated                  EventType = "daily.data.stand_hour.created"
	DailyStandHourUpdated                  EventType = "daily.data.stand_hour.updated"
	DailySleepBreathingDisturbanceCreated  EventType = "daily.data.sleep_breathing_disturbance.created"
	DailySleepBreathingDisturbanceUpdated  EventType = "daily.data.sleep_breathing_disturbance.updated"
	DailyNoteCreated                       EventType = "daily.data.note.created"
	DailyNoteUpdated                       EventType = "daily.data.note.updated"
)

// Historical pulls: the data of a resource from before the connection was read. One event is sent
// per resource and connection. The payload is a [*HistoricalPull].
const (
	HistoricalActivityCreated                   EventType = "historical.data.activity.created"
	HistoricalSleepCreated                      EventType = "historical.data.sleep.created"
	HistoricalSleepCycleCreated                 EventType = "historical.data.sleep_cycle.created"
	HistoricalWorkoutsCreated                   EventType = "historical.data.workouts.created"
	HistoricalWorkoutStreamCreated              EventType = "historical.data.workout_stream.created"
	HistoricalBodyCreated                       EventType = "historical.data.body.created"
	HistoricalProfileCreated                    EventType = "historical.data.profile.created"
	HistoricalMealCreated                       EventType = "historical.data.meal.created"
	HistoricalMenstrualCycleCreated             EventType = "historical.data.menstrual_cycle.created"
	HistoricalElectrocardiogramCreated          EventType = "historical.data.electrocardiogram.created"
	HistoricalBloodOxygenCreated                EventType = "historical.data.blood_oxygen.created"
	HistoricalWeightCreated                     EventType = "historical.data.weight.created"
	HistoricalFatCreated                        EventType = "historical.data.fat.created"
	HistoricalFloorsClimbedCreated              EventType = "historical.data.floors_climbed.created"
	HistoricalCaloriesBasalCreated              EventType = "historical.data.calories_basal.created"
	HistoricalGlucoseCreated                    EventType = "historical.data.glucose.created"
	HistoricalHeartrateCreated                  EventType = "historical.data.heartrate.created"
	HistoricalHRVCreated                        EventType = "historical.data.hrv.created"
	HistoricalRespiratoryRateCreated            EventType = "historical.data.respiratory_rate.created"
	HistoricalStressLevelCreated                EventType = "historical.data.stress_level.created"
	HistoricalWaterCreated                      EventType = "historical.data.water.created"
	HistoricalCholesterolCreated                EventType = "historical.data.cholesterol.created"
	HistoricalIgECreated                        EventType = "historical.data.ige.created"
	HistoricalIgGCreated                        EventType = "historical.data.igg.created"
	HistoricalElectrocardiogramVoltageCreated   EventType = "historical.data.electrocardiogram_voltage.created"
	HistoricalBloodPressureCreated              EventType = "historical.data.blood_pressure.created"
	HistoricalCaloriesActiveCreated             EventType = "historical.data.calories_active.created"
	HistoricalStepsCreated                      EventType = "historical.data.steps.created"
	HistoricalDistanceCreated                   EventType = "historical.data.distance.created"
	HistoricalCaffeineCreated                   EventType = "historical.data.caffeine.created"
	HistoricalCarbohydratesCreated              EventType = "historical.data.carbohydrates.created"
	HistoricalMindfulnessMinutesCreated         EventType = "historical.data.mindfulness_minutes.created"
	HistoricalVO2MaxCreated                     EventType = "historical.data.vo2_max.created"
	HistoricalAfibBurdenCreated                 EventType = "historical.data.afib_burden.created"
	HistoricalStandDurationCreated              EventType = "historical.data.stand_duration.created"
	HistoricalSleepApneaAlertCreated            EventType = "historical.data.sleep_apnea_alert.created"
	HistoricalWheelchairPushCreated             EventType = "historical.data.wheelchair_push.created"
	HistoricalForcedExpiratoryVolume1Created    EventType = "historical.data.forced_expiratory_volume_1.created"
	HistoricalForcedVitalCapacityCreated        EventType = "historical.data.forced_vital_capacity.created"
	HistoricalPeakExpiratoryFlowRateCreated     EventType = "historical.data.peak_expiratory_flow_rate.created"
	HistoricalInhalerUsageCreated               EventType = "historical.data.inhaler_usage.created"
	HistoricalFallCreated                       EventType = "historical.data.fall.created"
	HistoricalUVExposureCreated                 EventType = "historical.data.uv_exposure.created"
	HistoricalDaylightExposureCreated           EventType = "historical.data.daylight_exposure.created"
	HistoricalHandwashingCreated                EventType = "historical.data.handwashing.created"
	HistoricalBasalBodyTemperatureCreated       EventType = "historical.data.basal_body_temperature.created"
	HistoricalBodyMassIndexCreated              EventType = "historical.data.body_mass_index.created"
	HistoricalLeanBodyMassCreated               EventType = "historical.data.lean_body_mass.created"
	HistoricalWaistCircumferenceCreated         EventType = "historical.data.waist_circumference.created"
	HistoricalHeartRateRecoveryOneMinuteCreated EventType = "historical.data.heart_rate_recovery_one_minute.created"
	HistoricalWorkoutDistanceCreated            EventType = "historical.data.workout_distance.created"
	HistoricalWorkoutSwimmingStrokeCreated      EventType = "historical.data.workout_swimming_stroke.created"
	HistoricalBodyTemperatureCreated            EventType = "historical.data.body_temperature.created"
	HistoricalBodyTemperatureDeltaCreated       EventType = "historical.data.body_temperature_delta.created"
	HistoricalWorkoutDurationCreated            EventType = "historical.data.workout_duration.created"
	HistoricalInsulinInjectionCreated           EventType = "historical.data.insulin_injection.created"
	HistoricalHeartRateAlertCreated             EventType = "historical.data.heart_rate_alert.created"
	HistoricalStandHourCreated                  EventType = "historical.data.stand_hour.created"
	HistoricalSleepBreathingDisturbanceCreated  EventType = "historical.data.sleep_breathing_disturbance.created"
	HistoricalNoteCreated                       EventType = "historical.data.note.created"
)

// Providers. The payload is a [*ProviderConnection], [*ConnectionError] or [*ProviderDevice].
const (
	ProviderConnectionCreated EventType = "provider.connection.created"
	ProviderConnectionError   EventType = "provider.connection.error"
	ProviderDeviceCreated     EventType = "provider.device.created"
	ProviderDeviceUpdated     EventType = "provider.device.updated"
)

// Lab tests. The payload is a [*LabOrder], [*LabAppointment], [*CriticalResult], [*MatchReview] or
// [*ParsingJob].
const (
	LabTestOrderCreated        EventType = "labtest.order.created"
	LabTestOrderUpdated        EventType = "labtest.order.updated"
	LabTestAppointmentCreated  EventType = "labtest.appointment.created"
	LabTestAppointmentUpdated  EventType = "labtest.appointment.updated"
	LabTestResultCritical      EventType = "labtest.result.critical"
	LabTestMatchReviewCreated  EventType = "labtest.match_review.created"
	LabTestMatchReviewUpdated  EventType = "labtest.match_review.updated"
	LabReportParsingJobCreated EventType = "lab_report.parsing_job.created"
	LabReportParsingJobUpdated EventType = "lab_report.parsing_job.updated"
)

// Continuous queries. The payload is a [*ContinuousQueryChanges].
const (
	ContinuousQueryResultTableChanged EventType = "continuous_query.result_table.changed"
)

// Types that are no longer sent, but may occur in stored or replayed events.
const (
	DailyHypnogramCreated         EventType = "daily.data.hypnogram.created"
	DailyHypnogramUpdated         EventType = "daily.data.hypnogram.updated"
	DailyWorkoutStreamUnavailable EventType = "daily.data.workout_stream.unavailable"
	HistoricalHypnogramCreated    EventType = "historical.data.hypnogram.created"
	HistoricalDeviceCreated       EventType = "historical.data.device.created"
	LabTestAppointmentUpdate      EventType = "labtest.appointment.update"
)

// wearable are the resources of wearable data that are sent.
var wearable = []labhealth.Resource{
	labhealth.ResourceActivity,
	labhealth.ResourceSleep,
	labhealth.ResourceSleepCycle,
	labhealth.ResourceWorkouts,
	labhealth.ResourceWorkoutStream,
	labhealth.ResourceBody,
	labhealth.ResourceProfile,
	labhealth.ResourceMeal,
	labhealth.ResourceMenstrualCycle,
	labhealth.ResourceElectrocardiogram,
	labhealth.ResourceBloodOxygen,
	labhealth.ResourceWeight,
	labhealth.ResourceFat,
	labhealth.ResourceFloorsClimbed,
	labhealth.ResourceCaloriesBasal,
	labhealth.ResourceGlucose,
	labhealth.ResourceHeartRate,
	labhealth.ResourceHRV,
	labhealth.ResourceRespiratoryRate,
	labhealth.ResourceStressLevel,
	labhealth.ResourceWater,
	labhealth.ResourceCholesterol,
	labhealth.ResourceIgE,
	labhealth.ResourceIgG,
	labhealth.ResourceElectrocardiogramVoltage,
	labhealth.ResourceBloodPressure,
	labhealth.ResourceCaloriesActive,
	labhealth.ResourceSteps,
	labhealth.ResourceDistance,
	labhealth.ResourceCaffeine,
	labhealth.ResourceCarbohydrates,
	labhealth.ResourceMindfulnessMinutes,
	labhealth.ResourceVO2Max,
	labhealth.ResourceAFibBurden,
	labhealth.ResourceStandDuration,
	labhealth.ResourceSleepApneaAlert,
	labhealth.ResourceWheelchairPush,
	labhealth.ResourceForcedExpiratoryVolume1,
	labhealth.ResourceForcedVitalCapacity,
	labhealth.ResourcePeakExpiratoryFlowRate,
	labhealth.ResourceInhalerUsage,
	labhealth.ResourceFall,
	labhealth.ResourceUVExposure,
	labhealth.ResourceDaylightExposure,
	labhealth.ResourceHandwashing,
	labhealth.ResourceBasalBodyTemperature,
	labhealth.ResourceBodyMassIndex,
	labhealth.ResourceLeanBodyMass,
	labhealth.ResourceWaistCircumference,
	labhealth.ResourceHeartRateRecoveryOneMinute,
	labhealth.ResourceWorkoutDistance,
	labhealth.ResourceWorkoutSwimmingStroke,
	labhealth.ResourceBodyTemperature,
	labhealth.ResourceBodyTemperatureDelta,
	labhealth.ResourceWorkoutDuration,
	labhealth.ResourceInsulinInjection,
	labhealth.ResourceHeartRateAlert,
	labhealth.ResourceStandHour,
	labhealth.ResourceSleepBreathingDisturbance,
	labhealth.ResourceNote,
}

// constants has all constants, in their order.
var constants = func() (all []EventType) {
	for _, resource := range wearable {
		all = append(all, EventType(dailyPrefix+resource+".created"), EventType(dailyPrefix+resource+".updated"))
	}
	for _, resource := range wearable {
		all = append(all, EventType("historical.data."+resource+".created"))
	}
	return append(all,
		ProviderConnectionCreated,
		ProviderConnectionError,
		ProviderDeviceCreated,
		ProviderDeviceUpdated,
		LabTestOrderCreated,
		LabTestOrderUpdated,
		LabTestAppointmentCreated,
		LabTestAppointmentUpdated,
		LabTestResultCritical,
		LabTestMatchReviewCreated,
		LabTestMatchReviewUpdated,
		LabReportParsingJobCreated,
		LabReportParsingJobUpdated,
		ContinuousQueryResultTableChanged,
		DailyHypnogramCreated,
		DailyHypnogramUpdated,
		DailyWorkoutStreamUnavailable,
		HistoricalHypnogramCreated,
		HistoricalDeviceCreated,
		LabTestAppointmentUpdate,
	)
}()
