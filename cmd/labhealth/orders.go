package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go"
)

func newOrders(a *app) *cobra.Command {
	return group("orders", "Import, list, watch, advance and cancel orders, and read results",
		newOrdersImport(a), newOrdersAdvance(a), newOrdersList(a), newOrdersGet(a), newOrdersWatch(a), newOrdersCancel(a), newOrdersResults(a), newOrdersPDF(a))
}

var (
	lowLevelStatuses = []labhealth.OrderLowLevelStatus{
		"ordered", "requisition_created", "requisition_bypassed", "transit_customer", "out_for_delivery", "with_customer", "transit_lab",
		"delivered_to_lab", "completed", "failure_to_deliver_to_lab", "failure_to_deliver_to_customer", "problem_in_transit_lab",
		"problem_in_transit_customer", "sample_error", "appointment_scheduled", "appointment_cancelled", "appointment_pending",
		"draw_completed", "cancelled", "lost", "do_not_process", "partial_results", "awaiting_registration", "registered",
		"redraw_available", "corrected", "lab_processing_blocked",
	}
	collectionMethods = []labhealth.LabTestCollectionMethod{"testkit", "walk_in_test", "at_home_phlebotomy", "on_site_collection"}
	interpretations   = []labhealth.Interpretation{"normal", "abnormal", "critical"}
)

func newOrdersList(a *app) *cobra.Command {
	var p labhealth.ListOrdersParams
	var critical bool
	var sort string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List orders, latest first",
		Long: `List orders, latest first. All pages are read, and orders are printed as they arrive.

Times are dates, such as 2026-01-31, date-times with an offset, or durations before now, such as 24h.
A deployment that does not support a filter returns all orders.

With --json, each line is an order as the service has it (ClientFacingOrder), with hidden patient
data.`,
		Example: `  labhealth orders list --status completed --updated-since 24h
  labhealth orders list --json | jq -r .id`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("critical") {
				p.IsCritical = &critical
			}
			if sort != "" {
				p.OrderKey, p.OrderDirection = sort, "asc"
				if key, descending := strings.CutPrefix(sort, "-"); descending {
					p.OrderKey, p.OrderDirection = key, "desc"
				}
			}
			size, err := pageSize(limit, 100)
			if err != nil {
				return err
			}
			p.Size = size
			client, _, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			return a.listOrders(cmd.Context(), client, p, limit)
		},
	}
	flags := cmd.Flags()
	idFlag(flags, &p.UserID, "user", "orders of the user with this ID")
	idFlag(flags, &p.OrderTransactionID, "transaction", "orders of the transaction with this ID")
	choicesFlag(cmd, &p.Status, "status", "orders with one of these statuses, such as ordered or completed", lowLevelStatuses...)
	choicesFlag(cmd, &p.OrderType, "method", "orders with one of these collection methods: "+strings.Join(texts(collectionMethods), ", "), collectionMethods...)
	choicesFlag(cmd, &p.OrderActivationTypes, "activation", "orders that are current or scheduled", "current", "scheduled")
	choiceFlag(cmd, &p.Interpretation, "interpretation", "orders with normal, abnormal or critical results", interpretations...)
	flags.BoolVar(&critical, "critical", false, "orders with critical results; --critical=false: without")
	timeFlag(flags, &p.StartDate, "since", "orders created since this time")
	timeFlag(flags, &p.EndDate, "until", "orders created until this time")
	timeFlag(flags, &p.UpdatedStartDate, "updated-since", "orders updated since this time")
	timeFlag(flags, &p.UpdatedEndDate, "updated-until", "orders updated until this time")
	flags.StringVar(&p.SearchInput, "search", "", "free text")
	flags.StringVar(&p.PatientName, "patient-name", "", "orders of patients with this name, which other users of the machine can see in the process list")
	flags.StringVar(&p.ShippingRecipientName, "recipient", "", "orders sent to recipients with this name")
	choiceFlag(cmd, &sort, "sort", "sort key, with - for descending: created_at, patient_name or last_status",
		"created_at", "-created_at", "patient_name", "-patient_name", "last_status", "-last_status")
	flags.IntVar(&limit, "limit", 0, "print at most this many orders; 0 prints all")
	return cmd
}

// pageSize returns the size of the pages of a list that prints at most limit values.
func pageSize(limit, most int) (int, error) {
	switch {
	case limit < 0:
		return 0, usagef("--limit must be 0 or more")
	case limit == 0:
		return most, nil
	}
	return min(limit, most), nil
}

const orderRow = "%s  %s  %s  %-8s  %s\n"

func (a *app) listOrders(ctx context.Context, client *labhealth.Client, params labhealth.ListOrdersParams, limit int) error {
	header := fmt.Sprintf(orderRow, pad("ORDER", 36), pad("STATUS", 52), pad("UPDATED", 20), "RESULTS", a.patientHeader("LAB TEST"))
	return printList(a, client.Orders.All(ctx, params), limit, header, "no orders match", a.printOrderRow)
}

func (a *app) patientHeader(last string) string {
	if a.showPatient {
		return pad(last, 30) + "  PATIENT"
	}
	return last
}

func (a *app) printOrderRow(order *labhealth.Order) {
	status := clean(string(order.CurrentStatus()))
	last := clean(order.LabTest.Name)
	if a.showPatient {
		last = pad(last, 30) + "  " + patientName(order)
	}
	results := "-"
	if order.Interpretation != nil {
		results = clean(string(*order.Interpretation))
	}
	fmt.Fprintf(a.out, orderRow, order.ID, a.paintStatus(status, pad(status, 52)), stamp(order.UpdatedAt), results, last)
}

func patientName(order *labhealth.Order) string {
	p := order.PatientDetails
	if p == nil {
		return "-"
	}
	return strings.TrimSpace(optional(p.FirstName) + " " + optional(p.LastName))
}

func newOrdersGet(a *app) *cobra.Command {
	return a.aboutOrder(&cobra.Command{
		Use:   "get ORDER",
		Short: "Show an order and its timeline",
		Long:  "Show an order and its timeline. With --json, it prints the order as the service has it.",
		Example: `  labhealth orders get 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02
  labhealth orders get 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02 --json | jq .status`,
	}, func(ctx context.Context, client *labhealth.Client, id uuid.UUID) error {
		order, err := client.Orders.Get(ctx, id)
		return printResult(a, order, err, a.printOrder)
	})
}

// aboutOrder completes a command whose argument is the ID of an order.
func (a *app) aboutOrder(cmd *cobra.Command, do func(context.Context, *labhealth.Client, uuid.UUID) error) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = exactArgs("the ID of an order"), a.completeOrder
	return a.aboutID(cmd, "the ID of the order", do)
}

// aboutID completes a command whose argument is an ID.
func (a *app) aboutID(cmd *cobra.Command, name string, do func(context.Context, *labhealth.Client, uuid.UUID) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := parseID(name, args[0])
		if err != nil {
			return err
		}
		client, _, err := a.client(cmd.Context())
		if err != nil {
			return err
		}
		return do(cmd.Context(), client, id)
	}
	return cmd
}

func (a *app) printOrder(order *labhealth.Order) {
	status := clean(string(order.CurrentStatus()))
	lines := [][2]string{
		{"order", order.ID.String()},
		{"status", a.paintStatus(status, status)},
		{"user", order.UserID.String()},
		{"lab test", clean(order.LabTest.Name)},
		{"created", stamp(order.CreatedAt)},
		{"updated", stamp(order.UpdatedAt)},
	}
	if order.Interpretation != nil {
		lines = append(lines, [2]string{"results", clean(string(*order.Interpretation))})
	}
	if order.ActivateBy != nil {
		lines = append(lines, [2]string{"activate by", order.ActivateBy.String()})
	}
	a.fields(append(lines, a.patientLines(order)...)...)
	if len(order.Events) == 0 {
		return
	}
	fmt.Fprintf(a.out, "\n%s\n", a.paint(bold, "timeline"))
	for _, event := range order.Events {
		a.printEvent(event)
	}
}

func (a *app) printEvent(event labhealth.OrderEvent) {
	status := clean(string(event.Status))
	detail := ""
	if event.StatusDetail != nil {
		detail = " (" + clean(string(*event.StatusDetail)) + ")"
	}
	fmt.Fprintf(a.out, "  %s  %s%s\n", stamp(event.CreatedAt), a.paintStatus(status, status), detail)
}

// patientLines returns the fields of the patient, if they are to be shown.
func (a *app) patientLines(order *labhealth.Order) [][2]string {
	if !a.showPatient {
		return [][2]string{{"patient", "hidden: see --show-patient"}}
	}
	lines := [][2]string{{"patient", patientName(order)}}
	text := func(name string, value *string) {
		if value != nil && *value != "" {
			lines = append(lines, [2]string{name, clean(*value)})
		}
	}
	if p := order.PatientDetails; p != nil {
		lines = append(lines, [2]string{"born", p.DOB.String()})
		text("phone", p.PhoneNumber)
		text("email", p.Email)
	}
	if p := order.PatientAddress; p != nil {
		address := clean(strings.Join([]string{p.FirstLine, p.City, p.State + " " + p.Zip, p.Country}, ", "))
		text("address", &address)
	}
	text("sample ID", order.SampleID)
	text("notes", order.Notes)
	return lines
}

func newOrdersCancel(a *app) *cobra.Command {
	return a.confirmed(a.aboutOrder(&cobra.Command{
		Use:   "cancel ORDER",
		Short: "Cancel an order",
		Long: `Cancel an order, which cannot be undone. It asks first; without a terminal it needs --yes.

With --json, it prints the response (PostOrderResponse).`,
		Example: `  labhealth orders cancel 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02
  labhealth orders cancel 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02 --yes`,
	}, func(ctx context.Context, client *labhealth.Client, id uuid.UUID) error {
		if err := a.confirm(fmt.Sprintf("Cancel the order %s? This cannot be undone.", id)); err != nil {
			return err
		}
		response, err := client.Orders.Cancel(ctx, id)
		return printResult(a, response, err, func(response *labhealth.PostOrderResponse) {
			fmt.Fprintf(a.out, "canceled the order %s: %s\n", id, clean(string(response.Order.CurrentStatus())))
		})
	}))
}

// completeOrder completes the IDs of the latest orders.
func (a *app) completeOrder(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	client, _, err := a.client(ctx)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	page, err := client.Orders.List(ctx, labhealth.ListOrdersParams{Size: 20})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, order := range page.Orders {
		ids = append(ids, cobra.CompletionWithDesc(order.ID.String(), clean(string(order.CurrentStatus()))))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
