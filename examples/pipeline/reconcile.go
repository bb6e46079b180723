package main

import (
	"errors"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthprom"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// newReconciler returns what compares the database with the service. What it finds is applied as if
// it had been delivered, and reacted to.
func (p *pipeline) newReconciler() (*sqlstore.Reconciler, error) {
	client, err := labhealth.NewClient(p.apiKey, labhealth.WithBaseURL(p.baseURL), labhealthprom.Client(p.metrics.registry))
	if err != nil {
		return nil, errors.New("LABHEALTH_API_KEY and LABHEALTH_BASE_URL: " + err.Error()) // err never quotes the key
	}
	r := &sqlstore.Reconciler{Store: p.store, Client: client}
	return r, nil
}
