package labhealth

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/labhealth/labhealth-go/internal/transport"
)

// Version is the version of this module. It is part of the default user agent.
const Version = "0.1.0"

// Client calls the team API. It is immutable and safe for concurrent use. Create one with
// [NewClient] and reuse it: it holds the connections and the retry budget.
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
	// Providers lists the providers that users can connect.
	Providers *ProvidersService
	// Wearables reads the wearable data of users.
	Wearables *WearablesService
	// Workouts returns the data of workouts.
	Workouts *WorkoutsService
	// Team returns the team of the key, and searches its users.
	Team *TeamService

	core *core
}

// NewClient returns a client for the team API. apiKey is the team API key, which is sent as
// x-service-api-key with every request, to the base URL only. One of [WithBaseURL] and
// [WithEnvironment] is required.
func NewClient(apiKey string, opts ...Option) (*Client, error) {
	c, err := newCore("x-service-api-key", apiKey, teamOperations, opts)
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
		Providers:         &ProvidersService{c},
		Wearables:         &WearablesService{c},
		Workouts:          &WorkoutsService{c},
		Team:              &TeamService{c},
		core:              c,
	}, nil
}

// newCore returns the core of a client that authenticates with key in the given header.
func newCore(header, key string, operations []string, opts []Option) (*core, error) {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("labhealth: the API key must not be empty and may hold printable ASCII only")
	}
	cfg := config{operations: operations, core: core{
		// The key is in a closure, because %#v prints all fields.
		auth:      func(h http.Header) { h.Set(header, key) },
		userAgent: "labhealth-go/" + Version,
		policy:    defaultRetry,
		maxBody:   8 << 20,
		paths:     map[string]string{},
	}}
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt(&cfg); err != nil {
			return nil, fmt.Errorf("labhealth: %w", err)
		}
	}
	switch len(cfg.chosenBy) {
	case 1:
	case 0:
		return nil, errors.New("labhealth: no base URL: pass WithBaseURL(\"https://…\") or WithEnvironment(environment, urls)")
	default:
		return nil, fmt.Errorf("labhealth: more than one base URL: %s", strings.Join(cfg.chosenBy, " and "))
	}
	base, err := parseBaseURL(cfg.baseURL)
	if err != nil {
		return nil, fmt.Errorf("labhealth: %w", err)
	}
	c := &cfg.core
	c.base, c.http = base, transport.NewClient(cfg.httpClient)
	return c, nil
}

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
