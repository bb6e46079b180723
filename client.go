// Client and its settings.

package labhealth

import (
	"errors"
	"net/http"

	"github.com/labhealth/labhealth-go/internal/transport"
)

// Version is the version of this module. It is part of the default user agent.
const Version = "0.1.0"

// Client calls the team API. It is immutable and safe for concurrent use. Create one with
// [NewClient] and reuse it: it holds the connections and the retry budget ([RetryPolicy]).
type Client struct {
	// Orders imports, creates, lists, updates and cancels lab orders, and returns their results.
	Orders *OrdersService
	// OrderTransactions returns orders together with their redraws and recreations.
	OrderTransactions *OrderTransactionsService
	// LabTests lists, creates and changes the lab tests that can be ordered, and lists markers,
	// labs and lab accounts.
	LabTests *LabTestsService
	// Appointments books the appointments at which samples are collected.
	Appointments *AppointmentsService
	// Users lists, creates, updates and deletes users.
	Users *UsersService
	// Link connects users to providers.
	Link *LinkService
	// Insurance looks up payors and diagnosis codes.
	Insurance *InsuranceService
	// UnmatchedResults decides about results that a lab sent without a matching order.
	UnmatchedResults *UnmatchedResultsService
	// LabReports reads lab reports, such as PDFs, into results.
	LabReports *LabReportsService
	// Providers lists the providers that users can connect.
	Providers *ProvidersService
	// Wearables reads the wearable data of users as raw JSON. ReadAll, ReadSummaries and
	// ReadSamples of package webhooks read it into types.
	Wearables *WearablesService
	// Workouts returns the data of workouts.
	Workouts *WorkoutsService
	// Team returns the team of the key, and searches its users.
	Team *TeamService

	core *core
}

// NewClient returns a client for the team API. It sends apiKey, the team API key, as
// x-service-api-key with every request, to the base URL only. [WithEnvironment] or [WithBaseURL] is
// required. With [WithCredentials], apiKey must be empty.
func NewClient(apiKey string, opts ...Option) (*Client, error) {
	c, err := newCore(teamKeyHeader, apiKey, operations, opts)
	if err != nil {
		return nil, err
	}
	return &Client{
		Orders:            &OrdersService{c},
		OrderTransactions: &OrderTransactionsService{c},
		LabTests:          &LabTestsService{c},
		Appointments:      &AppointmentsService{c},
		Users:             &UsersService{c},
		Link:              &LinkService{c},
		Insurance:         &InsuranceService{c},
		UnmatchedResults:  &UnmatchedResultsService{c},
		LabReports:        &LabReportsService{c},
		Providers:         &ProvidersService{c},
		Wearables:         &WearablesService{c},
		Workouts:          &WorkoutsService{c},
		Team:              &TeamService{c},
		core:              c,
	}, nil
}

// The headers of the keys.
const (
	teamKeyHeader       = "x-service-api-key"
	managementKeyHeader = "X-Management-Key"
	orgKeyHeader        = "X-Service-Org-Key" // deprecated and never sent
)

// newCore returns the core of a client that sends its key in the given header.
func newCore(header, key string, operations []string, opts []Option) (*core, error) {
	cfg := config{operations: operations, core: core{
		userAgent: []string{"labhealth-go/" + Version},
		policy:    defaultRetry,
		paths:     map[string]string{},

		operations: operations,
	}}
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt(&cfg); err != nil {
			return nil, &setupError{err}
		}
	}
	if len(cfg.chosenBy) == 0 {
		return nil, &setupError{errNoBaseURL}
	}
	if err := cfg.checkScheme(); err != nil {
		return nil, &setupError{err}
	}
	c := &cfg.core
	switch {
	case cfg.source != nil && key != "":
		return nil, &setupError{errors.New("the API key must be empty with WithCredentials")}
	case cfg.source != nil:
		c.authorize = cfg.source(header)
	case !isSecret(key):
		return nil, &setupError{errors.New("the API key " + whyNoSecret(key))}
	default:
		// The key is in a closure, because %#v prints all fields.
		name, values := http.CanonicalHeaderKey(header), []string{key}
		c.authorize = func(q *transport.Request) *authorization {
			q.Header[name] = values
			return nil
		}
	}
	c.http = transport.NewClient(cfg.httpClient)
	c.host = hostOf(c.base)
	if cfg.limit != nil {
		cfg.limit(c.http)
	}
	return c, nil
}

// setupError reports an invalid argument of NewClient: nothing was sent.
type setupError struct{ cause error }

func (e *setupError) Error() string         { return "labhealth: " + e.cause.Error() }
func (e *setupError) Unwrap() error         { return e.cause }
func (*setupError) requestOutcome() Outcome { return OutcomeNotSent }

var errNoBaseURL = errors.New("no base URL: pass WithEnvironment(labhealth.SandboxUS, \"https://…\") or WithBaseURL")

// CloseIdleConnections closes the idle connections of the client's own transport, or of its copy of
// the transport passed to [WithHTTPClient]. The passed transport itself is not affected.
func (c *Client) CloseIdleConnections() { c.shared().closeIdleConnections() }

// shared returns the core of a client, nil if the client is nil or was not made by NewClient.
func (c *Client) shared() *core {
	if c == nil {
		return nil
	}
	return c.core
}
