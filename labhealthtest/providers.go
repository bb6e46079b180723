// The catalog of providers.

package labhealthtest

// provider is an element of the catalog of providers.
type provider struct {
	id                                       int
	slug, sourceType, authType               string
	deviceManufacturer, deviceModel, devices string
	resources                                []string
}

// providers are the catalog. Other providers can be connected too.
var providers = []provider{
	{1, "oura", "provider", "oauth", "Oura", "Oura Ring Gen3", "ring", []string{"profile", "activity", "sleep", "workouts", "heartrate", "hrv"}},
	{2, "fitbit", "provider", "oauth", "Fitbit", "Charge 6", "watch", []string{"profile", "activity", "sleep", "workouts", "weight", "steps"}},
	{3, "garmin", "provider", "oauth", "Garmin", "Forerunner 265", "watch", []string{"activity", "sleep", "workouts", "heartrate"}},
	{4, "wahoo", "provider", "oauth", "Wahoo", "KICKR", "exercise_machine", []string{"workouts", "workout_stream"}},
	{5, "withings", "provider", "oauth", "Withings", "Body+", "scale", []string{"body", "weight", "fat", "blood_pressure"}},
	{6, "dexcom_v3", "device", "oauth", "Dexcom", "G7", "automatic", []string{"glucose"}},
	{7, "freestyle_libre", "device", "email", "Abbott", "FreeStyle Libre 3", "manual_scan", []string{"glucose"}},
	{8, "apple_health_kit", "app", "sdk", "Apple", "Apple Watch", "watch", []string{"activity", "sleep", "workouts", "heartrate"}},
	{9, "whoop", "provider", "password", "WHOOP", "WHOOP 4.0", "watch", []string{"sleep", "workouts", "hrv"}},
	{10, "omron_ble", "ble", "", "OMRON", "Evolv", "cuff", []string{"blood_pressure"}},
}

// providerOf returns the entry of the catalog, or an invented one if there is none.
func providerOf(slug string) provider {
	if p, ok := first(providers, func(p provider) bool { return p.slug == slug }); ok {
		return p
	}
	return provider{
		slug: slug, sourceType: "provider", authType: "oauth", deviceManufacturer: sourceName(slug), deviceModel: "Model 1",
		devices: "unknown", resources: pulledResources,
	}
}

func (p provider) description() string { return "Data of " + sourceName(p.slug) + "." }

func sourceOf(slug string) source {
	return source{Name: sourceName(slug), Slug: slug, Logo: "https://example.com/logos/" + slug + ".png"}
}

func (s *Server) listProviders(r *request) (any, error) {
	type detailed struct {
		source
		Description        string   `json:"description"`
		AuthType           string   `json:"auth_type"`
		SupportedResources []string `json:"supported_resources"`
	}
	sourceType, bySourceType := r.queryLast("source_type")
	list := []detailed{}
	for _, p := range providers {
		if !bySourceType || p.sourceType == sourceType {
			list = append(list, detailed{sourceOf(p.slug), p.description(), p.authType, p.resources})
		}
	}
	return list, nil
}
