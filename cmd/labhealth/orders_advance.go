package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go"
)

func newOrdersAdvance(a *app) *cobra.Command {
	var to, interpretation string
	cmd := &cobra.Command{
		Use:   "advance ORDER",
		Short: "Simulate the progress of an order in a sandbox",
		Long: `Simulate the progress of an order, to its results or to the status of --to. It exists in sandboxes
only. The events of the new statuses are delivered.

An at-home order stops until it has an appointment, and a test kit until it is registered.
With --json, it prints the order as the service has it.`,
		Example: `  labhealth orders advance 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02 --sandbox
  labhealth orders advance 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02 --to received.walk_in_test.requisition_created`,
		Args:              exactArgs("the ID of an order"),
		ValidArgsFunction: a.completeOrder,
		RunE: func(cmd *cobra.Command, args []string) error {
			params := labhealth.SimulateParams{FinalStatus: labhealth.OrderStatus(to)}
			if interpretation != "" {
				if err := oneOf("--interpretation", interpretation, interpretations...); err != nil {
					return err
				}
				params.Flags.Interpretation = labhealth.Interpretation(interpretation)
			}
			id, client, err := a.orderArgument(cmd.Context(), args)
			if err != nil {
				return err
			}
			order, err := advance(cmd.Context(), client, id, params)
			if err != nil {
				return err
			}
			if a.json {
				return a.printReceived(order)
			}
			status := clean(string(order.CurrentStatus()))
			fmt.Fprintf(a.out, "the order %s is %s\n", id, a.paintStatus(status, status))
			return nil
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "status at which it stops, such as sample_with_lab.walk_in_test.partial_results")
	cmd.Flags().StringVar(&interpretation, "interpretation", "", "of the results: normal, abnormal or critical")
	complete(cmd, "interpretation", interpretations...)
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
