package main

import "strings"

// commandWords replaces what error messages of the library say about its API by what the command
// line has. The longer of two phrases comes first.
var commandWords = strings.NewReplacer(
	// Values and keys.
	"use a constant of its type", "the service does not know the value",
	", for example with strings.TrimSpace", "",
	"such as whsec_…, and no API key", "such as whsec_…, and not an API key",
	"http.Client.Timeout", "--timeout",

	// Responses.
	"see WithRateLimit", "orders import has --rate",
	"APIError.Message has the service's text", "--show-patient prints the service's text",
	"see APIError.Body", "the response has no message",
	", which must not repeat a version such as /v3, and WithPath", ", which must not repeat a version such as /v3",
	`try WithPath("GET /orders", "/v3/orders"), or check the base URL`, "check the base URL",
	`try WithPath("GET /v2/user/", "/v2/user"), or check the base URL`, "check the base URL",
	"check the base URL and WithPath", "check the base URL",
	"check the base URL, WithPath, the IDs", "check the base URL, the IDs",
	"raise it with WithBodyLimit", "ask for less at once, for example with --limit",
	"raise the limit of WithRateLimit, or the deadline", "try again later",
	"http is for loopback addresses, and for the host of WithInsecureHTTP", "http is for loopback addresses only",
	"see TransportError.Cause", "check the network",

	// Users and orders.
	"use Users.GetOrCreate", "labhealth users create --if-missing prints it",
	"Users.UndoDelete can undo it", "labhealth users undo restores it",
	"find it with Orders.All", "labhealth orders list --search SAMPLE-ID finds it",
	"choose one of LabTests.AllMarkers", "check its ID",
	"choose one of LabTests.All", "check its ID",
	"see Order.HasResults", "labhealth orders get shows the status",
	"see Order.CurrentStatus", "labhealth orders get shows it",
	": see Order.HasABN", "",
	": see LabTest.HasCollectionInstructions", "",
	"LabTestIDs or an AddOn", "lab_test_ids or an add_on",
	"set CollectionMethod", "set collection_method, or --collection",
	"set Physician", "set physician",
	"MedicalProxy is required", "patient_details.medical_proxy is required",
	"MarkerIDs or ProviderIDs", "marker_ids or provider_ids",
	"MarkerIDs and ProviderIDs", "marker_ids and provider_ids",
	": see LabTests.AllMarkersOfOrderSet", "",
	": see Lab.CollectionMethods", "",

	// Imports.
	"the source cannot be read: bulk: ", "the file cannot be read: ",
	"the source cannot be read", "the file cannot be read",
	"with names of CSVColumns or of CSVOptions.Rename", "with the names of fields or of --rename, and --separator must be right; labhealth orders import --help lists the fields",
	`map them in CSVOptions.Rename to one of CSVColumns, or to "-"`, "use --rename COLUMN=FIELD, or --rename COLUMN=- to ignore one; labhealth orders import --help lists the fields",
	"is not one of CSVColumns", "is not a field",
	"name the column in CSVOptions.Rename, or set the field with CSVOptions.Compose or CSVOptions.Defaults",
	"name the column with --rename, or set the field with --compose, --billing, --collection or --country",
	"CSVOptions.Rename:", "--rename:",
	"CSVOptions.Values:", "--value:",
	"CSVOptions.Compose:", "--compose:",
	"set CSVOptions.Comma to", "use --separator",
	"CSVOptions.Comma", "--separator",
	"is not a layout of package time with", "does not show how the file would write 2006-01-02, such as 01/02/2006, with",
	"CSVOptions.DateLayouts:", "--date-layout:",
	"Options.Reconcile reads the list of orders that Options.TrustJournal skips", "--reconcile and --trust-journal cannot be combined",
	"start the run again with the same journal and Options.Reconcile", "repeat the command with --reconcile",
	"start the next run with a new journal and Options.Reconcile", "repeat the command with --reconcile",
	"see Options.RejectionLimit", "see --rejection-limit",
	"(Options.TrustJournal)", "(--trust-journal skips this)",
	" (Options.List)", "",
	"Options.RejectionLimit", "--rejection-limit",
	"Options.Reconcile", "--reconcile",
	"Options.RetryRejected", "--retry-rejected",
	"Options.TrustJournal", "--trust-journal",
	"Options.ListByUser", "--list-by-user",
	"Options.Settle", "--settle",
)
