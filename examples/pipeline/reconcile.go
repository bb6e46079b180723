package main

import (
	"context"
	"errors"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthprom"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// newReconciler returns what compares the database with the service. What it finds is applied as if
// it had been delivered, and reacted to.
func (p *pipeline) newReconciler() (*sqlstore.Reconciler, error) {
	client, err := labhealth.NewClient(p.apiKey, labhealth.WithBaseURL(p.baseURL), labhealth.WithRateLimit(p.rate, 10),
		labhealthprom.Client(p.metrics.registry))
	if err != nil {
		return nil, errors.New("LABHEALTH_API_KEY and LABHEALTH_BASE_URL: " + err.Error()) // err never quotes the key
	}
	measure, err := labhealthprom.Reconciler(p.metrics.registry)
	if err != nil {
		return nil, err
	}
	return &sqlstore.Reconciler{
		Store: p.store, Client: client, Owns: p.owns, Interval: p.interval, Walk: p.walk, Rate: p.rate / 2,
		Observe: func(ctx context.Context, found sqlstore.Reconciled, err error) {
			measure(ctx, found, err)
			p.logReconciled(found, err)
		},
	}, nil
}

// logReconciled logs what a step has found, without IDs of users.
func (p *pipeline) logReconciled(found sqlstore.Reconciled, err error) {
	switch n := found.Differences; {
	case err != nil:
		p.quiet.warn("the comparison with the service failed", err.Error(), "pass", found.Pass)
	case n.Total() > 0 || found.MissingOrders > 0 || found.MissingUsers > 0 || found.Failed > 0:
		p.log.Info("the comparison with the service found differences", "pass", found.Pass, "orders", n.Orders, "transitions", n.Transitions,
			"results", n.Results, "summaries", n.Summaries, "samples", n.Samples,
			"missing_orders", found.MissingOrders, "missing_users", found.MissingUsers, "failed", found.Failed)
	}
}
