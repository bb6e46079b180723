package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
)

// maxTimeline is the number of events of an order that its page shows.
const maxTimeline = 100

// orderView is the data of the template "order".
type orderView struct {
	*labhealth.Order
	Short      string
	Test       string
	Words      string // the status and the method
	Vial       vial
	Sandbox    bool
	Client     string   // the application's own ID of the user, or the start of the service's
	Next       string   // the next status in words
	Final      bool     // completed or canceled
	Canceled   bool     // has no documents and no redraw
	Testkit    bool     // has no partial results, and can be lost
	Failures   []string // details
	Losses     []string // statuses
	Timeline   []timelineEntry
	Earlier    int // events that are not shown
	StepText   string
	RedrawOf   uuid.UUID
	RedrawnBy  uuid.UUID
	HasPatient bool
	Reveal     bool
	Results    *resultsView
	Kept       string // how many fields are malformed or unknown
	JSON       jsonView
}

// timelineEntry is an event of an order.
type timelineEntry struct {
	labhealth.OrderEvent
	Delivery int64  // its number, 0 if there is none
	State    string // of the delivery
	Here     bool
}

// orderPage shows an order, and after a POST the data of the patient once.
func (c *Console) orderPage(w http.ResponseWriter, r *http.Request) {
	id, ok := c.orderOfPath(w, r)
	if !ok {
		return
	}
	v, err := c.newOrder(r.Context(), id, r.Method == http.MethodPost)
	switch {
	case err != nil:
		c.fail(w, r, err)
	case v == nil:
		c.noPage(w, r, "No delivery brought an order "+id.String()+".")
	default:
		c.render(w, r, "order", page{Title: v.Test + " " + v.Short, Current: "orders", Live: "orders deliveries", Self: orderPath(id), Data: v})
	}
}

// newOrder returns the page of an order, or nil if there is none.
func (c *Console) newOrder(ctx context.Context, id uuid.UUID, reveal bool) (*orderView, error) {
	o, err := c.readOrder(ctx, id)
	if err != nil || o == nil {
		return nil, err
	}
	status, method := string(o.CurrentStatus()), string(o.Details.Type)
	top, _, _ := splitStatus(status)
	v := &orderView{
		Order: o, Short: id.String()[:8], Test: cmp.Or(o.LabTest.Name, "No lab test"), Sandbox: c.sandbox(), Reveal: reveal,
		HasPatient: o.PatientDetails != nil || o.PatientAddress != nil || o.Physician != nil, Vial: vialOf(status),
		Words: statusWords(status, detailOf(o.LastEvent)), Client: o.UserID.String()[:8], Final: top == "completed" || top == "cancelled",
		Canceled: top == "cancelled", Testkit: method == "testkit", Failures: failures, Losses: lostStatuses, RedrawOf: redrawOf(o), RedrawnBy: redrawnBy(o),
	}
	if m := methodName(method); m != "" {
		v.Words += ", " + strings.ToLower(m)
	}
	v.StepText = countOf(len(o.Events), "event")
	if c.sandbox() {
		state, _ := c.Server.OrderState(id) // an order that was deleted meanwhile has none
		v.Client = cmp.Or(state.ClientUserID, v.Client)
		if len(state.Next) > 0 {
			v.Next = statusWords(state.Next[0], "")
			v.StepText = fmt.Sprintf("%d of %d steps", state.Reached, state.Reached+len(state.Next))
		}
	}
	c.addTimeline(ctx, v)
	v.Results = c.newResults(ctx, o, reveal)
	malformed, unknown := o.Malformed(), inspect.UnknownFieldsOf(o, o.RawJSON())
	if len(malformed)+len(unknown) > 0 {
		v.Kept = fmt.Sprintf("%d malformed, %d unknown", len(malformed), len(unknown))
	}
	v.JSON = viewJSON(o.RawJSON(), jsonOptions{Kept: keptFields(malformed, unknown), Reveal: reveal})
	return v, nil
}

func detailOf(e labhealth.OrderEvent) string {
	if e.StatusDetail == nil {
		return ""
	}
	return string(*e.StatusDetail)
}

// addTimeline adds the events of the order, with their deliveries.
func (c *Console) addTimeline(ctx context.Context, v *orderView) {
	events := slices.Clone(v.Events)
	slices.SortStableFunc(events, func(a, b labhealth.OrderEvent) int { return a.CreatedAt.Compare(b.CreatedAt) })
	v.Earlier = max(0, len(events)-maxTimeline)
	events = events[v.Earlier:]
	deliveries := c.deliveriesOf(ctx, v.ID)
	for i, e := range events {
		d := deliveries[e.ID]
		optional := c.sandbox() && strings.HasSuffix(string(e.Status), ".partial_results")
		v.Timeline = append(v.Timeline, timelineEntry{e, d.first, d.words(optional), i == len(events)-1})
	}
}

// eventDelivery are the deliveries of an event of an order.
type eventDelivery struct {
	first              int64 // number of the first accepted one, or of the first
	accepted, rejected int
	lost, dropped      int // on the network of the sandbox: responses, and events that never arrived
}

// words says what became of the event. An optional one is sent only if the team asks for it.
func (d eventDelivery) words(optional bool) string {
	switch {
	case d.first == 0 && d.dropped > 0:
		return "lost, never delivered"
	case d.first == 0 && optional:
		return "not sent: partial_webhooks_enabled is off"
	case d.first == 0:
		return ""
	case d.accepted == 0:
		return "rejected"
	}
	text := "delivered"
	for _, also := range []struct {
		n    int
		what string
	}{{d.accepted - 1, "duplicate"}, {d.rejected, "rejection"}, {d.lost, "lost response"}} {
		if also.n > 0 {
			text += ", " + countOf(also.n, also.what)
		}
	}
	return text
}

// deliveriesOf returns the deliveries of the latest events of an order, by the ID of the event.
func (c *Console) deliveriesOf(ctx context.Context, id uuid.UUID) map[int64]eventDelivery {
	const limit = 50
	list, err := c.Inspector.List(ctx, inspect.Filter{OrderID: id}, limit)
	if err != nil {
		return nil
	}
	found := map[int64]eventDelivery{}
	for _, d := range slices.Backward(list) { // oldest first
		whole, ok, err := c.Inspector.Get(ctx, d.Number)
		if err != nil || !ok {
			continue
		}
		_, event := orderEventOf(whole.Body)
		if event == 0 {
			continue
		}
		e := found[event]
		if d.Verdict == inspect.Rejected {
			e.rejected++
		} else if e.accepted++; e.accepted == 1 {
			e.first = d.Number
		}
		e.first = cmp.Or(e.first, d.Number)
		found[event] = e
	}
	c.addLost(found, id)
	return found
}

// addLost adds the events of an order that the network of the sandbox lost, or their responses.
func (c *Console) addLost(found map[int64]eventDelivery, id uuid.UUID) {
	if !c.sandbox() {
		return
	}
	for _, d := range c.Server.Deliveries() {
		if !d.Lost && !d.Dropped {
			continue
		}
		order, event := orderEventOf(d.Body)
		if order != id || event == 0 {
			continue
		}
		e := found[event]
		if d.Lost {
			e.lost++
		} else {
			e.dropped++
		}
		found[event] = e
	}
}

// orderEventOf returns the order and the number of the event in the body of a delivery, or zero.
func orderEventOf(body []byte) (order uuid.UUID, event int64) {
	var b struct {
		Data struct {
			ID        uuid.UUID `json:"id"`
			LastEvent struct {
				ID int64 `json:"id"`
			} `json:"last_event"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &b) != nil {
		return uuid.Nil, 0
	}
	return b.Data.ID, b.Data.LastEvent.ID
}

// redrawnBy returns the order that repeats an order, or zero.
func redrawnBy(o *labhealth.Order) uuid.UUID {
	if o.OrderTransaction == nil {
		return uuid.Nil
	}
	for _, other := range o.OrderTransaction.Orders {
		if other.ParentID != nil && *other.ParentID == o.ID {
			return other.ID
		}
	}
	return uuid.Nil
}
