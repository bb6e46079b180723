// The resources of users: which data was read and sent.

package labhealth

// Source of this file: public API reference only.

import (
	"context"
	"iter"
	"time"

	"github.com/google/uuid"
)

// Resource is a kind of data, as in the names of events. Values other than the constants occur.
type Resource string

// Values of [Resource].
const (
	ResourceProfile                    Resource = "profile"
	ResourceActivity                   Resource = "activity"
	ResourceSleep                      Resource = "sleep"
	ResourceBody                       Resource = "body"
	ResourceWorkouts                   Resource = "workouts"
	ResourceWorkoutStream              Resource = "workout_stream"
	ResourceConnection                 Resource = "connection"
	ResourceOrder                      Resource = "order"
	ResourceResult                     Resource = "result"
	ResourceMatchReview                Resource = "match_review"
	ResourceAppointment                Resource = "appointment"
	ResourceResultTable                Resource = "result_table"
	ResourceGlucose                    Resource = "glucose"
	ResourceHeartRate                  Resource = "heartrate"
	ResourceHRV                        Resource = "hrv"
	ResourceIgE                        Resource = "ige"
	ResourceIgG                        Resource = "igg"
	ResourceBloodOxygen                Resource = "blood_oxygen"
	ResourceBloodPressure              Resource = "blood_pressure"
	ResourceCholesterol                Resource = "cholesterol"
	ResourceDevice                     Resource = "device"
	ResourceDeviceLegacy               Resource = "device_legacy"
	ResourceWeight                     Resource = "weight"
	ResourceFat                        Resource = "fat"
	ResourceBodyTemperature            Resource = "body_temperature"
	ResourceBodyTemperatureDelta       Resource = "body_temperature_delta"
	ResourceMeal                       Resource = "meal"
	ResourceWater                      Resource = "water"
	ResourceCaffeine                   Resource = "caffeine"
	ResourceMindfulnessMinutes         Resource = "mindfulness_minutes"
	ResourceSteps                      Resource = "steps"
	ResourceCaloriesActive             Resource = "calories_active"
	ResourceDistance                   Resource = "distance"
	ResourceFloorsClimbed              Resource = "floors_climbed"
	ResourceRespiratoryRate            Resource = "respiratory_rate"
	ResourceVO2Max                     Resource = "vo2_max"
	ResourceCaloriesBasal              Resource = "calories_basal"
	ResourceStressLevel                Resource = "stress_level"
	ResourceMenstrualCycle             Resource = "menstrual_cycle"
	ResourceSleepCycle                 Resource = "sleep_cycle"
	ResourceElectrocardiogram          Resource = "electrocardiogram"
	ResourceElectrocardiogramVoltage   Resource = "electrocardiogram_voltage"
	ResourceAFibBurden                 Resource = "afib_burden"
	ResourceHeartRateAlert             Resource = "heart_rate_alert"
	ResourceStandHour                  Resource = "stand_hour"
	ResourceStandDuration              Resource = "stand_duration"
	ResourceSleepApneaAlert            Resource = "sleep_apnea_alert"
	ResourceSleepBreathingDisturbance  Resource = "sleep_breathing_disturbance"
	ResourceWheelchairPush             Resource = "wheelchair_push"
	ResourceForcedExpiratoryVolume1    Resource = "forced_expiratory_volume_1"
	ResourceForcedVitalCapacity        Resource = "forced_vital_capacity"
	ResourcePeakExpiratoryFlowRate     Resource = "peak_expiratory_flow_rate"
	ResourceInhalerUsage               Resource = "inhaler_usage"
	ResourceFall                       Resource = "fall"
	ResourceUVExposure                 Resource = "uv_exposure"
	ResourceDaylightExposure           Resource = "daylight_exposure"
	ResourceHandwashing                Resource = "handwashing"
	ResourceBasalBodyTemperature       Resource = "basal_body_temperature"
	ResourceHeartRateRecoveryOneMinute Resource = "heart_rate_recovery_one_minute"
	ResourceBodyMassIndex              Resource = "body_mass_index"
	ResourceLeanBodyMass               Resource = "lean_body_mass"
	ResourceWaistCircumference         Resource = "waist_circumference"
	ResourceWorkoutDistance            Resource = "workout_distance"
	ResourceWorkoutSwimmingStroke      Resource = "workout_swimming_stroke"
	ResourceWorkoutDuration            Resource = "workout_duration"
	ResourceInsulinInjection           Resource = "insulin_injection"
	ResourceCarbohydrates              Resource = "carbohydrates"
	ResourceNote                       Resource = "note"
	ResourceSleepStream                Resource = "sleep_stream"
	ResourceHypnogram                  Resource = "hypnogram"
)

// AttemptStatus is the result of an attempt to read a resource from a provider. Values other than
// the constants occur.
type AttemptStatus string

// Values of [AttemptStatus].
const (
	AttemptStatusSuccess AttemptStatus = "success"
	AttemptStatusFailure AttemptStatus = "failure"
)

const opUserResources = "GET /v2/introspect/resources"

// ListUserResourcesParams selects resources of users. Zero fields are not sent.
type ListUserResourcesParams struct {
	UserID    uuid.UUID // resources of one user
	Provider  Provider  // resources of one provider
	UserLimit int       // users per page; the service's default is 50
	// NextCursor is where the page starts: NextCursor of the previous page, or empty for the first.
	NextCursor string
}

func (p ListUserResourcesParams) validate(v *validator) { v.atLeast("user_limit", p.UserLimit, 0) }

func (p ListUserResourcesParams) query() queryValues {
	q := newQuery()
	q.setID("user_id", p.UserID)
	q.setString("provider", string(p.Provider))
	q.setInt("user_limit", p.UserLimit)
	q.setString("next_cursor", p.NextCursor)
	return q
}

// UserResourcesPage is one page of the resources of users: the response of
// [UsersService.Resources].
type UserResourcesPage struct {
	Data []UserResources `json:"data" jsonread:"own"` // the users of the page
	// Next is the former name of NextCursor.
	//
	// Deprecated: use NextCursor.
	Next *string `json:"next"`
	// NextCursor is where the next page starts, nil on the last page.
	NextCursor *string `json:"next_cursor"`

	RawObject `json:"-"`
}

func (p *UserResourcesPage) verify() error { return requireList(p.Data) }

func (p *UserResourcesPage) elements() (any, *string) { return p.Data, p.NextCursor }

// UserResources tells which data of one user the service has read and sent.
type UserResources struct {
	UserID uuid.UUID `json:"user_id"` // the service's ID of the user
	// Provider has the resources by slug of the provider, and then by name: see [Provider] and
	// [Resource].
	Provider map[string]map[string]ResourceStatistics `json:"provider"`

	RawObject `json:"-"`
}

// ResourceStatistics tells what the service has read and sent of one resource.
type ResourceStatistics struct {
	LastAttempt *LastAttempt `json:"last_attempt,omitzero"` // latest attempt to read it, nil if there is none
	OldestData  *time.Time   `json:"oldest_data,omitzero"`  // time of the oldest data, nil if there is none
	NewestData  *time.Time   `json:"newest_data,omitzero"`  // time of the newest data, nil if there is none
	SentCount   *int64       `json:"sent_count,omitzero"`   // number of events sent, nil if not counted

	RawObject `json:"-"`
}

// LastAttempt is the latest attempt to read a resource.
type LastAttempt struct {
	Timestamp time.Time     `json:"timestamp"` // when it was made
	Status    AttemptStatus `json:"status"`    // its result

	RawObject `json:"-"`
}

// Resources returns one page of the resources of users: GET /v2/introspect/resources. It tells why
// expected data is missing: whether it was read, and when, and whether it was sent.
func (s *UsersService) Resources(ctx context.Context, params ListUserResourcesParams, opts ...CallOption) (*UserResourcesPage, error) {
	return call(ctx, coreOf(s), new(UserResourcesPage), request{op: opUserResources, query: params}, opts)
}

// AllResources returns an iterator over the resources of users, page by page. It behaves like
// [LabTestsService.All].
func (s *UsersService) AllResources(ctx context.Context, params ListUserResourcesParams, opts ...CallOption) iter.Seq2[*UserResources, error] {
	id := func(u *UserResources) uuid.UUID { return u.UserID }
	return cursorPages(ctx, opts, opUserResources, params.NextCursor, id, func(ctx context.Context, cursor string, opts []CallOption) (cursorPage, error) {
		params := params
		params.NextCursor = cursor
		return s.Resources(ctx, params, opts...)
	})
}
