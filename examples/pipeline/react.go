package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// notice is what -react-url receives. It says what has changed, and nothing of the data itself: the
// receiver reads the current state from the database.
type notice struct {
	ID        uuid.UUID             `json:"id"`
	Kind      sqlstore.ReactionKind `json:"kind"`
	UserID    uuid.UUID             `json:"user_id"`
	OrderID   uuid.UUID             `json:"order_id,omitzero"`   // of a transition and of results
	Status    string                `json:"status,omitempty"`    // of a transition
	At        time.Time             `json:"at,omitzero"`         // of a transition
	Resource  string                `json:"resource,omitempty"`  // of a summary and of samples
	SummaryID uuid.UUID             `json:"summary_id,omitzero"` // of a summary
	From      time.Time             `json:"from,omitzero"`       // of the first sample
	To        time.Time             `json:"to,omitzero"`         // of the last sample
}

func noticeOf(r sqlstore.Reaction) notice {
	n := notice{ID: r.ID, Kind: r.Kind, UserID: r.UserID, OrderID: r.OrderID, Status: string(r.Transition.Status), At: r.Transition.At, From: r.From, To: r.To}
	n.Resource, n.SummaryID = cmp.Or(r.Summary.Resource, r.Series.Resource), r.Summary.ID
	return n
}

// reactClient posts notices. A redirect is a failure: following it would turn the POST into a GET.
var reactClient = &http.Client{
	Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: reactParallel, IdleConnTimeout: time.Minute},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

const reactParallel = 4

// workReactions reacts to changes until ctx is done. It starts no call after that, and a call that
// it interrupts is repeated later, with the same ID.
func (p *pipeline) workReactions(ctx context.Context) {
	r := sqlstore.Reactor{Store: p.store, React: p.logReaction, Parallel: reactParallel, Attempts: p.reactAttempts, Timeout: p.reactTimeout,
		Observe: p.observeReactions}
	if p.reactURL != "" {
		r.React = p.postReaction
	}
	r.Run(ctx)
}

// logReaction is in place of what a program would do. It logs no user.
func (p *pipeline) logReaction(_ context.Context, r sqlstore.Reaction) error {
	args := []any{"kind", string(r.Kind), "id", r.ID}
	if r.OrderID != uuid.Nil {
		args = append(args, "order_id", r.OrderID)
	}
	if r.Kind == sqlstore.ReactTransition {
		args = append(args, "status", string(r.Transition.Status))
	}
	p.log.Info("reaction", args...)
	return nil
}

// postReaction posts a reaction to -react-url. The reaction is done if the response is a 2xx.
func (p *pipeline) postReaction(ctx context.Context, r sqlstore.Reaction) error {
	body, err := json.Marshal(noticeOf(r))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.reactURL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", r.ID.String()) // the same in every attempt
	status, err := statusOf(req)
	if err != nil {
		p.quiet.warn("a reaction failed", "-react-url does not respond", "id", r.ID, "attempt", r.Attempt)
		return err
	}
	if status < 200 || status > 299 {
		p.quiet.warn("a reaction failed", fmt.Sprint("status ", status), "id", r.ID, "attempt", r.Attempt)
		return fmt.Errorf("-react-url responded with %d", status)
	}
	return nil
}

// statusOf returns the status of the response, whose body it reads to use the connection again.
func statusOf(req *http.Request) (status int, err error) {
	resp, err := reactClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	io.CopyN(io.Discard, resp.Body, 64<<10)
	return resp.StatusCode, nil
}
