// The OAuth scopes that a team asks its users for.

package management

import (
	"context"
	"net/url"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

const (
	opGetScopeRequirements    = "GET /v1/org/{org_id}/team/{team_id}/scope_requirements"
	opUpsertScopeRequirements = "POST /v1/org/{org_id}/team/{team_id}/scope_requirements"
)

// OAuthScope is a permission that a user grants to a team at a provider. Its constants are named
// after the providers: another provider's scope can have the same value. Values other than the
// constants occur. Source: public API reference only.
type OAuthScope string

// Scopes of fitbit.
const (
	FitbitScopeHeartRate        OAuthScope = "heartrate"
	FitbitScopeOxygenSaturation OAuthScope = "oxygen_saturation"
	FitbitScopeCardioFitness    OAuthScope = "cardio_fitness"
	FitbitScopeRespiratoryRate  OAuthScope = "respiratory_rate"
	FitbitScopeActivity         OAuthScope = "activity"
	FitbitScopeLocation         OAuthScope = "location"
	FitbitScopeNutrition        OAuthScope = "nutrition"
	FitbitScopeProfile          OAuthScope = "profile"
	FitbitScopeSettings         OAuthScope = "settings"
	FitbitScopeSleep            OAuthScope = "sleep"
	FitbitScopeSocial           OAuthScope = "social"
	FitbitScopeWeight           OAuthScope = "weight"
	FitbitScopeTemperature      OAuthScope = "temperature"
)

// Scopes of google_fit.
const (
	GoogleFitScopeOpenID        OAuthScope = "openid"
	GoogleFitScopeEmail         OAuthScope = "email"
	GoogleFitScopeActivity      OAuthScope = "https://www.googleapis.com/auth/fitness.activity.read"
	GoogleFitScopeBody          OAuthScope = "https://www.googleapis.com/auth/fitness.body.read"
	GoogleFitScopeSleep         OAuthScope = "https://www.googleapis.com/auth/fitness.sleep.read"
	GoogleFitScopeBloodGlucose  OAuthScope = "https://www.googleapis.com/auth/fitness.blood_glucose.read"
	GoogleFitScopeBloodPressure OAuthScope = "https://www.googleapis.com/auth/fitness.blood_pressure.read"
	GoogleFitScopeHeartRate     OAuthScope = "https://www.googleapis.com/auth/fitness.heart_rate.read"
	GoogleFitScopeNutrition     OAuthScope = "https://www.googleapis.com/auth/fitness.nutrition.read"
	GoogleFitScopeLocation      OAuthScope = "https://www.googleapis.com/auth/fitness.location.read"
)

// Scopes of google_health.
const (
	GoogleHealthScopeOpenID             OAuthScope = "openid"
	GoogleHealthScopeEmail              OAuthScope = "email"
	GoogleHealthScopeActivityAndFitness OAuthScope = "https://www.googleapis.com/auth/googlehealth.activity_and_fitness.readonly"
	GoogleHealthScopeSleep              OAuthScope = "https://www.googleapis.com/auth/googlehealth.sleep.readonly"
	// GoogleHealthScopeMetrics is the scope of health metrics and measurements.
	GoogleHealthScopeMetrics   OAuthScope = "https://www.googleapis.com/auth/googlehealth.health_metrics_and_measurements.readonly"
	GoogleHealthScopeNutrition OAuthScope = "https://www.googleapis.com/auth/googlehealth.nutrition.readonly"
	GoogleHealthScopeECG       OAuthScope = "https://www.googleapis.com/auth/googlehealth.ecg.readonly"
	GoogleHealthScopeIRN       OAuthScope = "https://www.googleapis.com/auth/googlehealth.irn.readonly"
	GoogleHealthScopeLocation  OAuthScope = "https://www.googleapis.com/auth/googlehealth.location.readonly"
	GoogleHealthScopeProfile   OAuthScope = "https://www.googleapis.com/auth/googlehealth.profile.readonly"
	GoogleHealthScopeSettings  OAuthScope = "https://www.googleapis.com/auth/googlehealth.settings.readonly"
)

// Scopes of my_fitness_pal_v2.
const (
	MyFitnessPalScopeDiary            OAuthScope = "diary"
	MyFitnessPalScopeMeasurements     OAuthScope = "measurements"
	MyFitnessPalScopePrivateExercises OAuthScope = "private-exercises"
	MyFitnessPalScopeSubscriptions    OAuthScope = "subscriptions"
)

// Scopes of oura.
const (
	OuraScopeEmail     OAuthScope = "email"
	OuraScopePersonal  OAuthScope = "personal"
	OuraScopeDaily     OAuthScope = "daily"
	OuraScopeHeartRate OAuthScope = "heartrate"
	OuraScopeWorkout   OAuthScope = "workout"
	OuraScopeTag       OAuthScope = "tag"
	OuraScopeSession   OAuthScope = "session"
)

// Scopes of strava.
const (
	StravaScopeActivityReadAll OAuthScope = "activity:read_all"
	StravaScopeActivityWrite   OAuthScope = "activity:write"
	StravaScopeProfileWrite    OAuthScope = "profile:write"
	StravaScopeProfileReadAll  OAuthScope = "profile:read_all"
)

// Scopes of wahoo.
const (
	WahooScopeEmail        OAuthScope = "email"
	WahooScopeUserRead     OAuthScope = "user_read"
	WahooScopeWorkoutsRead OAuthScope = "workouts_read"
	WahooScopeOfflineData  OAuthScope = "offline_data"
)

// Scopes of whoop_v2.
const (
	WhoopScopeRecovery        OAuthScope = "read:recovery"
	WhoopScopeCycles          OAuthScope = "read:cycles"
	WhoopScopeWorkout         OAuthScope = "read:workout"
	WhoopScopeSleep           OAuthScope = "read:sleep"
	WhoopScopeProfile         OAuthScope = "read:profile"
	WhoopScopeBodyMeasurement OAuthScope = "read:body_measurement"
	WhoopScopeOffline         OAuthScope = "offline"
)

// Scopes of withings.
const (
	WithingsScopeActivity    OAuthScope = "user.activity"
	WithingsScopeMetrics     OAuthScope = "user.metrics"
	WithingsScopeSleepEvents OAuthScope = "user.sleepevents"
)

// ProviderScopeRequirements are the scopes of a provider that a team asks its users for.
type ProviderScopeRequirements struct {
	// UserMustGrant lists the scopes without which a user cannot connect the provider.
	UserMustGrant []OAuthScope `json:"user_must_grant"`
	// UserMayGrant lists the scopes that a user can refuse.
	UserMayGrant []OAuthScope `json:"user_may_grant"`
}

// UpsertScopeRequirementsBody is the request of [TeamsService.UpsertScopeRequirements]. Each field
// takes the scopes of its provider, such as FitbitScopeSleep. Nil leaves the requirements of a
// provider unchanged.
type UpsertScopeRequirementsBody struct {
	Fitbit         *ProviderScopeRequirements `json:"fitbit,omitzero"`            // scopes of fitbit
	GoogleFit      *ProviderScopeRequirements `json:"google_fit,omitzero"`        // scopes of google_fit
	GoogleHealth   *ProviderScopeRequirements `json:"google_health,omitzero"`     // scopes of google_health
	Oura           *ProviderScopeRequirements `json:"oura,omitzero"`              // scopes of oura
	Strava         *ProviderScopeRequirements `json:"strava,omitzero"`            // scopes of strava
	Withings       *ProviderScopeRequirements `json:"withings,omitzero"`          // scopes of withings
	Wahoo          *ProviderScopeRequirements `json:"wahoo,omitzero"`             // scopes of wahoo
	WhoopV2        *ProviderScopeRequirements `json:"whoop_v2,omitzero"`          // scopes of whoop_v2
	MyFitnessPalV2 *ProviderScopeRequirements `json:"my_fitness_pal_v2,omitzero"` // scopes of my_fitness_pal_v2
}

// TeamScopeRequirements are the scopes of a provider that a team asks its users for: see
// [ProviderScopeRequirements].
type TeamScopeRequirements struct {
	// UserMustGrant lists the scopes without which a user cannot connect the provider.
	UserMustGrant []OAuthScope `json:"user_must_grant"`
	// UserMayGrant lists the scopes that a user can refuse.
	UserMayGrant []OAuthScope       `json:"user_may_grant"`
	TeamID       uuid.UUID          `json:"team_id"`  // ID of the team
	Provider     labhealth.Provider `json:"provider"` // the provider

	labhealth.RawObject `json:"-"`
}

// teamScopeRequirementsList is the response of [TeamsService.ScopeRequirements].
type teamScopeRequirementsList struct {
	Requirements []TeamScopeRequirements `json:"requirements" jsonread:"own"`

	labhealth.RawObject `json:"-"`
}

func (l *teamScopeRequirementsList) verify() error { return requireList(l.Requirements) }

// ScopeRequirementsParams selects the requirements that [TeamsService.ScopeRequirements] returns.
type ScopeRequirementsParams struct {
	Provider labhealth.Provider // one provider; empty for all
}

func (p ScopeRequirementsParams) query() url.Values {
	return url.Values{"provider": optional(p.Provider)}
}

// ScopeRequirements returns the scopes that a team asks its users for, one element for each
// provider: GET /v1/org/{org_id}/team/{team_id}/scope_requirements.
func (s *TeamsService) ScopeRequirements(ctx context.Context, teamID uuid.UUID, params ScopeRequirementsParams, opts ...labhealth.CallOption) ([]TeamScopeRequirements, error) {
	r := request{Op: opGetScopeRequirements, IDs: []string{teamID.String()}, Params: params}
	list, err := call(ctx, coreOf(s), new(teamScopeRequirementsList), r, opts)
	if err != nil {
		return nil, err
	}
	return list.Requirements, nil
}

// UpsertScopeRequirements sets the scopes that a team asks its users for: POST
// /v1/org/{org_id}/team/{team_id}/scope_requirements. The scopes of a given provider are replaced.
// The response is not documented and not decoded: use [labhealth.WithResponse] to read it.
func (s *TeamsService) UpsertScopeRequirements(ctx context.Context, teamID uuid.UUID, body UpsertScopeRequirementsBody, opts ...labhealth.CallOption) error {
	return callEmpty(ctx, coreOf(s), request{Op: opUpsertScopeRequirements, IDs: []string{teamID.String()}, Body: &body}, opts)
}
