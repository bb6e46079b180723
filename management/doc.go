// Package management is a client for the management API: the organisation, its teams, and their
// webhooks, keys, lab accounts, custom credentials, data pull preferences and ETL pipelines. It is
// separate from [labhealth.Client] because each API has its own keys, and a key must never reach
// the other API. Options, errors, outcomes, retries and redaction are those of package labhealth.
//
//	client, err := management.NewClient(orgID, key, labhealth.WithBaseURL("https://…"))
//
// Ask the service for its base URL, one for all environments.
//
// The interface specification lists what can be managed, how requests are authenticated and what
// the two kinds of keys ([NewClient]) permit. Everything else in the methods and their types is
// from the public API reference only. A deployment may differ: see [labhealth.WithPath],
// [labhealth.WithQuery] and [Client.Do]. Keys, signing secrets, tokens and connection strings are
// of type [labhealth.Secret].
//
// Arguments are in the same order everywhere: the ID of the team, its environment and region, the
// ID of the resource, and the body.
//
// # Operations
//
//	GET    /v1/org/{org_id}                                                              Client.Organisation.Get
//	PATCH  /v1/org/{org_id}                                                              Client.Organisation.Update
//	GET    /v1/org/{org_id}/team                                                         Client.Teams.List, All
//	POST   /v1/org/{org_id}/team                                                         Client.Teams.Create
//	GET    /v1/org/{org_id}/team/{team_id}                                               Client.Teams.Get
//	PATCH  /v1/org/{org_id}/team/{team_id}                                               Client.Teams.Update, UpdateBrandInformation
//	DELETE /v1/org/{org_id}/team/{team_id}                                               Client.Teams.Delete
//	POST   /v1/org/{org_id}/resolve_team                                                 Client.Teams.Resolve
//	POST   /v1/org/{org_id}/team/{team_id}/create_api_access_token                       Client.Teams.CreateAccessToken, Credentials
//	GET    /v1/org/{org_id}/team/{team_id}/scope_requirements                            Client.Teams.ScopeRequirements
//	POST   /v1/org/{org_id}/team/{team_id}/scope_requirements                            Client.Teams.UpsertScopeRequirements
//	GET    /v1/org/{org_id}/management_key                                               Client.Keys.List, All
//	POST   /v1/org/{org_id}/management_key                                               Client.Keys.Create
//	PATCH  /v1/org/{org_id}/management_key/{key_id}                                      Client.Keys.Update
//	DELETE /v1/org/{org_id}/management_key/{key_id}                                      Client.Keys.Delete
//	GET    /v1/org/{org_id}/team/{team_id}/{environment}/webhook                         Client.Webhooks.List, All
//	POST   /v1/org/{org_id}/team/{team_id}/{environment}/webhook                         Client.Webhooks.Create
//	GET    /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}            Client.Webhooks.Get
//	PATCH  /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}            Client.Webhooks.Update
//	DELETE /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}            Client.Webhooks.Delete
//	GET    /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/headers    Client.Webhooks.Headers
//	PUT    /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/headers    Client.Webhooks.ReplaceHeaders
//	GET    /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/secret     Client.Webhooks.Secret
//	POST   /v1/org/{org_id}/team/{team_id}/{environment}/webhook/{webhook_id}/secret/rotate   Client.Webhooks.RotateSecret
//	GET    /v1/org/{org_id}/team/{team_id}/{environment}/event_delivery_metric           Client.Webhooks.EventDeliveryMetric
//	GET    /v1/org/{org_id}/lab_account/{env}/{region}                                   Client.LabAccounts.List
//	PATCH  /v1/org/{org_id}/lab_account/{env}/{region}/{account_id}                      Client.LabAccounts.UpdateTeamIDAllowlist
//	GET    /v1/org/{org_id}/team_api_keys/{env}/{region}                                 Client.TeamAPIKeys.List, All
//	POST   /v1/org/{org_id}/team_api_keys/{env}/{region}                                 Client.TeamAPIKeys.Create
//	DELETE /v1/org/{org_id}/team_api_keys/{env}/{region}                                 Client.TeamAPIKeys.Delete
//	GET    /v1/org/{org_id}/team_custom_credentials/{env}/{region}                       Client.CustomCredentials.List, All
//	POST   /v1/org/{org_id}/team_custom_credentials/{env}/{region}                       Client.CustomCredentials.Upsert
//	DELETE /v1/org/{org_id}/team_custom_credentials/{env}/{region}                       Client.CustomCredentials.Delete
//	POST   /v1/org/{org_id}/prepare_team_custom_credentials/{env}/{region}               Client.CustomCredentials.Prepare
//	GET    /v1/org/{org_id}/team_etl_pipelines/{env}/{region}                            Client.Pipelines.List, All
//	POST   /v1/org/{org_id}/team_etl_pipelines/{env}/{region}                            Client.Pipelines.Upsert
//	DELETE /v1/org/{org_id}/team_etl_pipelines/{env}/{region}                            Client.Pipelines.Delete
//	GET    /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}                    Client.DataPullPreferences.List, All
//	POST   /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}                    Client.DataPullPreferences.Upsert
//	DELETE /v1/org/{org_id}/team_data_pull_preferences/{env}/{region}                    Client.DataPullPreferences.Delete
//	any other                                                                            Client.Do
package management

//go:generate go run ../scripts/generate
