package labhealth

var teamReference = referenceArea{
	components: map[string]any{
		"ClientFacingTeam":              TeamDetails{},
		"ClientFacingApiKey":            APIKey{},
		"TeamConfig":                    TeamConfig{},
		"EventDestinationPreferences":   EventDestinationPreferences{},
		"LibreConfig":                   LibreConfig{},
		"LinkTokenExchange":             CreateLinkTokenBody{},
		"LinkTokenExchangeResponse":     LinkToken{},
		"Source":                        LinkSource{},
		"SourceLink":                    LinkProvider{},
		"DemoConnectionCreationPayload": ConnectDemoBody{},
		"DemoConnectionStatus":          DemoConnection{},
		"ClientFacingProviderDetailed":  ProviderDetails{},
	},
	enums: map[string]any{
		"Providers":                             Provider(""),
		"SourceAuthType":                        SourceAuthType(""),
		"SourceType":                            SourceType(""),
		"PriorityResource":                      PriorityResource(""),
		"EventDestinationPreferences.preferred": EventDestination(""),
		"EventDestinationPreferences.enabled":   EventDestination(""),
		"DelegatedFlowType":                     DelegatedFlowType(""),
	},
	operations: map[string]string{
		"GET /v2/team/{team_id}":                       "Team.Get",
		"GET /v2/team/users/search":                    "Team.SearchUsers",
		"GET /v2/team/source/priorities":               "Team.SourcePriorities",
		"PATCH /v2/team/source/priorities":             "Team.UpdateSourcePriorities",
		"GET /v2/team/{team_id}/physicians":            "Team.Physicians",
		"POST /v2/link/token":                          "Link.CreateToken",
		"GET /v2/link/provider/oauth/{oauth_provider}": "Link.OAuth",
		"GET /v2/link/providers":                       "Link.Providers",
		"POST /v2/link/connect/demo":                   "Link.ConnectDemo",
		"GET /v2/providers":                            "Providers.List",
	},
	exceptions: map[string]string{
		"OAuthProviders":                        "a part of Provider, whose documentation lists it",
		"DemoProviders":                         "a part of Provider, whose documentation lists it",
		"PATCH /v2/team/source/priorities.body": "the request needs a body that the reference does not have",
	},
}
