package labhealth

// Provider is the slug of a data source that a user can connect. Values other than the constants
// occur. Source: public API reference only.
//
// A link with OAuth is documented for oura, fitbit, garmin, strava, wahoo,
// ihealth, withings, google_fit, dexcom_v3, polar, cronometer, omron, whoop_v2, my_fitness_pal_v2,
// ultrahuman, runkeeper and google_health. A demo connection is
// documented for apple_health_kit, fitbit, freestyle_libre and oura.
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
