// Providers: their slugs and kinds, and ProvidersService with the catalog.

package labhealth

// Source of this file: public API reference only.

import "context"

// Provider is the slug of a data source that a user can connect. Values other than the constants
// occur.
//
// A link with OAuth ([LinkService.OAuth]) is documented for oura, fitbit, garmin, strava, wahoo,
// ihealth, withings, google_fit, dexcom_v3, polar, cronometer, omron, whoop_v2, my_fitness_pal_v2,
// ultrahuman, runkeeper and google_health. A demo connection ([LinkService.ConnectDemo]) is
// documented for apple_health_kit, fitbit, freestyle_libre and oura. A link with a password
// ([LinkService.ConnectPassword]) is documented for whoop, renpho, peloton, zwift, eight_sleep,
// beurer_api, dexcom, hammerhead, my_fitness_pal, kardia, abbott_libreview and tandem_source, and
// one with an email address ([LinkService.ConnectEmail]) for freestyle_libre.
type Provider string

// Values of [Provider].
const (
	ProviderOura              Provider = "oura"
	ProviderFitbit            Provider = "fitbit"
	ProviderGarmin            Provider = "garmin"
	ProviderWhoop             Provider = "whoop"
	ProviderStrava            Provider = "strava"
	ProviderRenpho            Provider = "renpho"
	ProviderPeloton           Provider = "peloton"
	ProviderWahoo             Provider = "wahoo"
	ProviderZwift             Provider = "zwift"
	ProviderFreeStyleLibre    Provider = "freestyle_libre"
	ProviderAbbottLibreView   Provider = "abbott_libreview"
	ProviderTandemSource      Provider = "tandem_source"
	ProviderFreeStyleLibreBLE Provider = "freestyle_libre_ble"
	ProviderEightSleep        Provider = "eight_sleep"
	ProviderWithings          Provider = "withings"
	ProviderAppleHealthKit    Provider = "apple_health_kit"
	ProviderManual            Provider = "manual"
	ProviderIHealth           Provider = "ihealth"
	ProviderGoogleFit         Provider = "google_fit"
	ProviderBeurerAPI         Provider = "beurer_api"
	ProviderBeurerBLE         Provider = "beurer_ble"
	ProviderOmron             Provider = "omron"
	ProviderOmronBLE          Provider = "omron_ble"
	ProviderOneTouchBLE       Provider = "onetouch_ble"
	ProviderAccuChekBLE       Provider = "accuchek_ble"
	ProviderContourBLE        Provider = "contour_ble"
	ProviderDexcom            Provider = "dexcom"
	ProviderDexcomV3          Provider = "dexcom_v3"
	ProviderHammerhead        Provider = "hammerhead"
	ProviderMyFitnessPal      Provider = "my_fitness_pal"
	ProviderHealthConnect     Provider = "health_connect"
	ProviderSamsungHealth     Provider = "samsung_health"
	ProviderPolar             Provider = "polar"
	ProviderCronometer        Provider = "cronometer"
	ProviderKardia            Provider = "kardia"
	ProviderWhoopV2           Provider = "whoop_v2"
	ProviderUltrahuman        Provider = "ultrahuman"
	ProviderMyFitnessPalV2    Provider = "my_fitness_pal_v2"
	ProviderMapMyFitness      Provider = "map_my_fitness"
	ProviderRunkeeper         Provider = "runkeeper"
	ProviderGoogleHealth      Provider = "google_health"
)

// SourceAuthType is how a user signs in to a provider. Values other than the constants occur.
type SourceAuthType string

// Values of [SourceAuthType].
const (
	SourceAuthTypeOAuth     SourceAuthType = "oauth"
	SourceAuthTypeTeamOAuth SourceAuthType = "team_oauth"
	SourceAuthTypeSDK       SourceAuthType = "sdk"
	SourceAuthTypePassword  SourceAuthType = "password"
	SourceAuthTypeEmail     SourceAuthType = "email"
	SourceAuthTypeApp       SourceAuthType = "app"
	SourceAuthTypeNone      SourceAuthType = ""
)

// SourceType is the kind of a provider. Values other than the constants occur.
type SourceType string

// Values of [SourceType].
const (
	SourceTypeApp      SourceType = "app"
	SourceTypeBLE      SourceType = "ble"
	SourceTypeDevice   SourceType = "device"
	SourceTypeLab      SourceType = "lab"
	SourceTypeProvider SourceType = "provider"
)

// ProvidersService provides access to the catalog of providers. See [Client.Providers]. Source of
// its operations: public API reference only.
type ProvidersService struct{ core *core }

const opListProviders = "GET /v2/providers"

// ListProvidersParams selects providers. Zero fields are not sent.
type ListProvidersParams struct {
	SourceType SourceType // providers of one kind
}

func (p ListProvidersParams) query() queryValues {
	q := newQuery()
	q.setString("source_type", string(p.SourceType))
	return q
}

// ProviderDetails describes a provider.
type ProviderDetails struct {
	Name        string  `json:"name"`        // display name
	Slug        string  `json:"slug"`        // stable identifier; see [Provider]
	Description string  `json:"description"` // one sentence
	Logo        *string `json:"logo"`        // URL of an icon, nil if there is none
	// AuthType is how a user signs in, nil if unknown.
	AuthType *SourceAuthType `json:"auth_type,omitzero"`
	// SupportedResources are the resources that the provider has, empty if there are none.
	SupportedResources []Resource `json:"supported_resources,omitzero"`

	RawObject `json:"-"`
}

// List returns all providers that users can connect: GET /v2/providers.
func (s *ProvidersService) List(ctx context.Context, params ListProvidersParams, opts ...CallOption) ([]ProviderDetails, error) {
	return callList[ProviderDetails](ctx, coreOf(s), request{op: opListProviders, query: params}, opts)
}
