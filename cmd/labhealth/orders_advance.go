package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go"
)

func newOrdersAdvance(a *app) *cobra.Command {
	var params labhealth.SimulateParams
	cmd := a.aboutOrder(&cobra.Command{
		Use:   "advance ORDER",
		Short: "Simulate the progress of an order in a sandbox",
		Long: `Simulate the progress of an order, to its results or to the status of --to. It exists in sandboxes
only. The events of the new statuses are delivered.

An at-home order stops until it has an appointment, and a test kit until it is registered.
With --json, it prints the order as the service has it.`,
		Example: `  labhealth orders advance 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02 --sandbox
  labhealth orders advance 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02 --to received.walk_in_test.requisition_created`,
	}, func(ctx context.Context, client *labhealth.Client, id uuid.UUID) error {
		order, err := advance(ctx, client, id, params)
		return printResult(a, order, err, func(order *labhealth.Order) {
			status := clean(string(order.CurrentStatus()))
			fmt.Fprintf(a.out, "the order %s is %s\n", id, a.paintStatus(status, status))
		})
	})
	cmd.Flags().StringVar((*string)(&params.FinalStatus), "to", "", "status at which it stops, such as sample_with_lab.walk_in_test.partial_results")
	choiceFlag(cmd, &params.Flags.Interpretation, "interpretation", "of the results: normal, abnormal or critical", interpretations...)
	return cmd
}

// advance simulates an order until its status is final, is the wanted one, or stays the same: the
// first simulation of a new order takes one step only.
func advance(ctx context.Context, client *labhealth.Client, id uuid.UUID, params labhealth.SimulateParams) (*labhealth.Order, error) {
	order, err := client.Orders.Get(ctx, id)
	for err == nil {
		before := order.CurrentStatus()
		if err = client.Orders.Simulate(ctx, id, params); err != nil {
			break
		}
		order, err = client.Orders.Get(ctx, id)
		if err == nil && (order.CurrentStatus() == before || order.CurrentStatus() == params.FinalStatus || isFinal(order)) {
			return order, nil
		}
	}
	return nil, err
}
