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

// orderFilter are the flags that select orders.
type orderFilter struct {
	user, transaction, interpretation        string
	ids, status, method, activation          []string
	critical                                 bool
	since, until, updatedSince, updatedUntil string
	search, patient, recipient               string
	sort                                     string
	limit                                    int
}

var (
	lowLevelStatuses = []string{
		"ordered", "requisition_created", "requisition_bypassed", "transit_customer", "out_for_delivery", "with_customer", "transit_lab",
		"delivered_to_lab", "completed", "failure_to_deliver_to_lab", "failure_to_deliver_to_customer", "problem_in_transit_lab",
		"problem_in_transit_customer", "sample_error", "appointment_scheduled", "appointment_cancelled", "appointment_pending",
		"draw_completed", "cancelled", "lost", "do_not_process", "partial_results", "awaiting_registration", "registered",
		"redraw_available", "corrected", "lab_processing_blocked",
	}
	collectionMethods = []string{"testkit", "walk_in_test", "at_home_phlebotomy", "on_site_collection"}
	sortKeys          = []string{"created_at", "-created_at", "patient_name", "-patient_name", "last_status", "-last_status"}
	interpretations   = []string{"normal", "abnormal", "critical"}
	activations       = []string{"current", "scheduled"}
)

func newOrdersList(a *app) *cobra.Command {
	var f orderFilter
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
			params, err := f.params(cmd)
			if err != nil {
				return err
			}
			client, _, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			return a.listOrders(cmd.Context(), client, params, f.limit)
		},
	}
	f.add(cmd)
	return cmd
}

func (f *orderFilter) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.user, "user", "", "orders of the user with this ID")
	flags.StringSliceVar(&f.ids, "id", nil, "orders with these IDs")
	flags.StringVar(&f.transaction, "transaction", "", "orders of the transaction with this ID")
	flags.StringSliceVar(&f.status, "status", nil, "orders with one of these statuses, such as ordered or completed")
	flags.StringSliceVar(&f.method, "method", nil, "orders with one of these collection methods: "+strings.Join(collectionMethods, ", "))
	flags.StringSliceVar(&f.activation, "activation", nil, "orders that are current or scheduled")
	flags.StringVar(&f.interpretation, "interpretation", "", "orders with normal, abnormal or critical results")
	flags.BoolVar(&f.critical, "critical", false, "orders with critical results; --critical=false: without")
	flags.StringVar(&f.since, "since", "", "orders created since this time")
	flags.StringVar(&f.until, "until", "", "orders created until this time")
	flags.StringVar(&f.updatedSince, "updated-since", "", "orders updated since this time")
	flags.StringVar(&f.updatedUntil, "updated-until", "", "orders updated until this time")
	flags.StringVar(&f.search, "search", "", "free text")
	flags.StringVar(&f.patient, "patient-name", "", "orders of patients with this name, which other users of the machine can see in the process list")
	flags.StringVar(&f.recipient, "recipient", "", "orders sent to recipients with this name")
	flags.StringVar(&f.sort, "sort", "", "sort key, with - for descending: created_at, patient_name or last_status")
	flags.IntVar(&f.limit, "limit", 0, "print at most this many orders; 0 prints all")
	complete(cmd, "status", lowLevelStatuses...)
	complete(cmd, "method", collectionMethods...)
	complete(cmd, "activation", activations...)
	complete(cmd, "interpretation", interpretations...)
	complete(cmd, "sort", sortKeys...)
}

// params returns the filter for the client, or an error that names the flag.
func (f *orderFilter) params(cmd *cobra.Command) (p labhealth.ListOrdersParams, err error) {
	if err := f.choices(&p); err != nil {
		return p, err
	}
	if p.UserID, err = optionalID("--user", f.user); err != nil {
		return p, err
	}
	if p.OrderTransactionID, err = optionalID("--transaction", f.transaction); err != nil {
		return p, err
	}
	for _, value := range f.ids {
		id, err := parseID("--id", value)
		if err != nil {
			return p, err
		}
		p.OrderIDs = append(p.OrderIDs, id)
	}
	for _, t := range []struct {
		flag, value string
		to          *time.Time
	}{
		{"--since", f.since, &p.StartDate}, {"--until", f.until, &p.EndDate},
		{"--updated-since", f.updatedSince, &p.UpdatedStartDate}, {"--updated-until", f.updatedUntil, &p.UpdatedEndDate},
	} {
		if *t.to, err = parseTime(t.flag, t.value); err != nil {
			return p, err
		}
	}
	if cmd.Flags().Changed("critical") {
		p.IsCritical = &f.critical
	}
	p.SearchInput, p.PatientName, p.ShippingRecipientName = f.search, f.patient, f.recipient
	return p, f.page(&p)
}

// choices sets the parameters that have fixed values.
func (f *orderFilter) choices(p *labhealth.ListOrdersParams) (err error) {
	if p.Status, err = manyOf[labhealth.OrderLowLevelStatus]("--status", f.status, lowLevelStatuses...); err != nil {
		return err
	}
	if p.OrderType, err = manyOf[labhealth.LabTestCollectionMethod]("--method", f.method, collectionMethods...); err != nil {
		return err
	}
	if p.OrderActivationTypes, err = manyOf[labhealth.OrderActivationType]("--activation", f.activation, activations...); err != nil {
		return err
	}
	if f.interpretation != "" {
		p.Interpretation = labhealth.Interpretation(f.interpretation)
		if err := oneOf("--interpretation", f.interpretation, interpretations...); err != nil {
			return err
		}
	}
	if f.sort != "" {
		if err := oneOf("--sort", f.sort, sortKeys...); err != nil {
			return err
		}
		key, descending := strings.CutPrefix(f.sort, "-")
		p.OrderKey, p.OrderDirection = key, "asc"
		if descending {
			p.OrderDirection = "desc"
		}
	}
	return nil
}

func (f *orderFilter) page(p *labhealth.ListOrdersParams) error {
	if f.limit < 0 {
		return usagef("--limit must be 0 or more")
	}
	p.Size = 100
	if f.limit > 0 {
		p.Size = min(f.limit, 100)
	}
	return nil
}

// parseTime parses a date, a date-time, or a duration before now. Empty is the zero time.
func parseTime(flag, value string) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, value); err == nil {
		return t, nil
	}
	if t, err := time.Parse(time.DateOnly, value); err == nil {
		return t, nil
	}
	if d, err := time.ParseDuration(value); err == nil && d >= 0 {
		return time.Now().Add(-d), nil
	}
	return time.Time{}, usagef("%s must be a date such as 2026-01-31, a time such as 2026-01-31T08:00:00Z, or a duration before now such as 24h, not %q", flag, value)
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
	return &cobra.Command{
		Use:   "get ORDER",
		Short: "Show an order and its timeline",
		Long:  "Show an order and its timeline. With --json, it prints the order as the service has it.",
		Example: `  labhealth orders get 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02
  labhealth orders get 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02 --json | jq .status`,
		Args:              exactArgs("the ID of an order"),
		ValidArgsFunction: a.completeOrder,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, client, err := a.orderArgument(cmd.Context(), args)
			if err != nil {
				return err
			}
			order, err := client.Orders.Get(cmd.Context(), id)
			if err != nil {
				return err
			}
			if a.json {
				return a.printReceived(order)
			}
			a.printOrder(order)
			return nil
		},
	}
}

// orderArgument returns the order ID of the arguments, and a client.
func (a *app) orderArgument(ctx context.Context, args []string) (uuid.UUID, *labhealth.Client, error) {
	return a.idArgument(ctx, "the ID of the order", args)
}

// idArgument returns the ID that is the argument, and a client.
func (a *app) idArgument(ctx context.Context, name string, args []string) (uuid.UUID, *labhealth.Client, error) {
	id, err := parseID(name, args[0])
	if err != nil {
		return uuid.Nil, nil, err
	}
	client, _, err := a.client(ctx)
	return id, client, err
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
	var yes bool
	cmd := &cobra.Command{
		Use:   "cancel ORDER",
		Short: "Cancel an order",
		Long: `Cancel an order, which cannot be undone. It asks first; without a terminal it needs --yes.

With --json, it prints the response (PostOrderResponse).`,
		Example: `  labhealth orders cancel 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02
  labhealth orders cancel 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02 --yes`,
		Args:              exactArgs("the ID of an order"),
		ValidArgsFunction: a.completeOrder,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, client, err := a.orderArgument(cmd.Context(), args)
			if err != nil {
				return err
			}
			if err := a.confirm(yes, fmt.Sprintf("Cancel the order %s? This cannot be undone.", id)); err != nil {
				return err
			}
			response, err := client.Orders.Cancel(cmd.Context(), id)
			if err != nil {
				return err
			}
			if a.json {
				return a.printReceived(response)
			}
			fmt.Fprintf(a.out, "canceled the order %s: %s\n", id, clean(string(response.Order.CurrentStatus())))
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// completeOrder completes the IDs of the latest orders.
func (a *app) completeOrder(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeIDs(cmd, args, func(ctx context.Context, client *labhealth.Client) (list []string) {
		page, err := client.Orders.List(ctx, labhealth.ListOrdersParams{Size: 20})
		if err != nil {
			return nil
		}
		for _, order := range page.Orders {
			list = append(list, cobra.CompletionWithDesc(order.ID.String(), clean(string(order.CurrentStatus()))))
		}
		return list
	})
}

// completeIDs completes the only argument of a command with what the service lists, in its order.
func (a *app) completeIDs(cmd *cobra.Command, args []string, list func(context.Context, *labhealth.Client) []string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	client, _, err := a.client(ctx)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return list(ctx, client), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
