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
	ID         string
	Short      string
	Test       string
	Words      string // the status and the method
	Vial       vial
	Sandbox    bool
	Next       string // the next status in words
	Final      bool   // completed or canceled
	Canceled   bool
	Partial    bool // can have partial results
	Fails      []failChoice
	Timeline   []timelineEntry
	Earlier    int // events that are not shown
	Ahead      string
	StepText   string
	Facts      []fact
	Patient    []fact
	HasPatient bool
	Reveal     bool
	Results    *resultsView
	Typed      []typedField
	Kept       string // how many fields are malformed or unknown
	JSON       jsonView
	Source     string // of the JSON
	Documents  []fact
}

// failChoice is an entry of the menu "Fail".
type failChoice struct{ Field, Value, Text, Note string }

// timelineEntry is an event of an order.
type timelineEntry struct {
	Vial   vial
	Words  string
	At     string
	Day    string // empty if it is that of the entry before
	Event  int64
	Path   string // of the delivery, empty if there is none
	State  string // of the delivery
	Since  int64  // when the status was reached in seconds, if it is the current one of an open order
	Age    string // since then
	Detail string // after the age
	Here   bool
}

// fact is a name with a value, which may be a link.
type fact struct {
	Name, Text, Path string
	Mono             bool
}

// typedField is a field of a typed value.
type typedField struct {
	Name, Text, Note string
	Kept             bool
}

func (c *Console) orderPage(w http.ResponseWriter, r *http.Request) { c.showOrder(w, r, false) }

// revealPatient shows the page once with the data of the patient.
func (c *Console) revealPatient(w http.ResponseWriter, r *http.Request) { c.showOrder(w, r, true) }

func (c *Console) showOrder(w http.ResponseWriter, r *http.Request, reveal bool) {
	id, ok := c.orderOfPath(w, r)
	if !ok {
		return
	}
	o, err := c.newOrder(r.Context(), id, reveal)
	switch {
	case err != nil:
		c.fail(w, r, err)
	case o == nil:
		c.noPage(w, r, "No delivery brought an order "+id.String()+".")
	default:
		c.render(w, r, "order", page{Title: o.Test + " " + o.Short, Current: "orders", Live: "orders deliveries", Self: orderPath(id), Data: o})
	}
}

// newOrder returns the page of an order, or nil if there is none.
func (c *Console) newOrder(ctx context.Context, id uuid.UUID, reveal bool) (*orderView, error) {
	o, err := c.readOrder(ctx, id)
	if err != nil || o == nil {
		return nil, err
	}
	v := &orderView{
		ID: id.String(), Short: id.String()[:8], Test: visible(cmp.Or(o.LabTest.Name, "No lab test")), Sandbox: c.sandbox(), Reveal: reveal,
		HasPatient: o.PatientDetails != nil || o.PatientAddress != nil || o.Physician != nil,
	}
	status := string(o.CurrentStatus())
	v.Vial = vialOf(status)
	v.Words = statusWords(status, detailOf(o.LastEvent))
	if m := methodName(string(o.Details.Type)); m != "" {
		v.Words += ", " + strings.ToLower(m)
	}
	var next []string
	if c.sandbox() {
		next, _ = c.Server.NextStatuses(id) // an order that was deleted meanwhile has none
	}
	c.addActions(v, o, status, next)
	c.addTimeline(ctx, v, o, next)
	v.addFacts(c, o)
	if reveal {
		v.Patient = patientFacts(o)
	}
	v.Results = c.newResults(ctx, o, reveal)
	v.addRead(o, reveal)
	return v, nil
}

func detailOf(e labhealth.OrderEvent) string {
	if e.StatusDetail == nil {
		return ""
	}
	return string(*e.StatusDetail)
}

// addActions adds what can be done with the order.
func (c *Console) addActions(v *orderView, o *labhealth.Order, status string, next []string) {
	top, _, _ := splitStatus(status)
	v.Final = top == "completed" || top == "cancelled"
	v.Canceled = top == "cancelled"
	if len(next) > 0 {
		v.Next = statusWords(next[0], "")
	}
	method := string(o.Details.Type)
	v.Partial = method != "testkit" && !v.Final
	for _, f := range failures {
		v.Fails = append(v.Fails, failChoice{"detail", string(f), words(string(f)), string(f)})
	}
	if method == "testkit" {
		for _, s := range lostStatuses {
			v.Fails = append(v.Fails, failChoice{"status", s, statusWords(s, ""), s})
		}
	}
	if c.sandbox() && top != "cancelled" {
		v.Documents = append(v.Documents, fact{Name: "Requisition", Path: orderPath(o.ID) + "/requisition.pdf"})
		if o.HasResults() {
			v.Documents = append(v.Documents, fact{Name: "Results", Path: orderPath(o.ID) + "/results.pdf"})
		}
	}
}

// addTimeline adds the events of the order, with their deliveries, and what follows.
func (c *Console) addTimeline(ctx context.Context, v *orderView, o *labhealth.Order, next []string) {
	events := slices.Clone(o.Events)
	slices.SortStableFunc(events, func(a, b labhealth.OrderEvent) int { return a.CreatedAt.Compare(b.CreatedAt) })
	v.Earlier = max(0, len(events)-maxTimeline)
	events = events[v.Earlier:]
	deliveries := c.deliveriesOf(ctx, o.ID)
	before, zone := "", c.Now().Location()
	for i, e := range events {
		entry := timelineEntry{Vial: vialOf(string(e.Status)), Words: statusWords(string(e.Status), detailOf(e)), Event: e.ID, Here: i == len(events)-1}
		if !e.CreatedAt.IsZero() {
			at := e.CreatedAt.In(zone)
			entry.At = at.Format("15:04")
			if day := at.Format("Mon 2 Jan"); day != before {
				entry.Day, before = day, day
			}
		}
		d := deliveries[e.ID]
		entry.State = d.words(c.sandbox() && isPartial(string(e.Status)))
		if d.first > 0 {
			entry.Path = fmt.Sprintf("/console/deliveries/%d", d.first)
		}
		if entry.Here && !v.Final && !e.CreatedAt.IsZero() {
			entry.Since, entry.Age, entry.Detail = e.CreatedAt.Unix(), age(c.now().Sub(e.CreatedAt)), " so far"
			if isStuck(string(e.Status), e.CreatedAt, c.now()) {
				entry.Detail += ", longer than usual or blocked"
				entry.Vial.State = "stuck"
			}
		}
		v.Timeline = append(v.Timeline, entry)
	}
	reached := reachedOf(o)
	switch {
	case len(next) > 0:
		v.Ahead = statusWords(next[0], "")
		v.StepText = fmt.Sprintf("%d of %d steps", reached, reached+len(next))
	default:
		v.StepText = countOf(len(o.Events), "event")
	}
}

// eventDelivery are the deliveries of an event of an order.
type eventDelivery struct {
	first               int64 // number of the first accepted one, or of the first
	accepted, duplicate int
	rejected            int
	lost, dropped       int // on the network of the sandbox: responses, and events that never arrived
}

// isPartial reports whether events of a status are sent only if the team asks for them.
func isPartial(status string) bool {
	_, _, low := splitStatus(status)
	return low == "partial_results"
}

func (d eventDelivery) words(optional bool) string {
	text := "delivered"
	switch {
	case d.first == 0 && d.dropped > 0:
		return "lost, never delivered"
	case d.first == 0 && optional:
		return "not sent: partial_webhooks_enabled is off"
	case d.first == 0:
		return ""
	case d.accepted == 0:
		text = "rejected"
	case d.duplicate == 1:
		text += ", once more as a duplicate"
	case d.duplicate > 1:
		text += fmt.Sprintf(", %d duplicates", d.duplicate)
	}
	switch {
	case d.lost == 1:
		text += ", response once lost"
	case d.lost > 1:
		text += fmt.Sprintf(", response lost %d times", d.lost)
	}
	if d.rejected > 0 && d.accepted > 0 {
		text += fmt.Sprintf(", %d rejected", d.rejected)
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
		accepted := d.Verdict == inspect.Verified || d.Verdict == inspect.Unsigned
		switch {
		case !accepted:
			e.rejected++
		case e.accepted > 0:
			e.accepted, e.duplicate = e.accepted+1, e.duplicate+1
		default:
			e.accepted, e.first = 1, d.Number
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

// addFacts adds facts about the order that are no patient data.
func (v *orderView) addFacts(c *Console, o *labhealth.Order) {
	add := func(name, text string) {
		if text != "" {
			v.Facts = append(v.Facts, fact{Name: name, Text: visible(text)})
		}
	}
	mono := func(name, text, path string) {
		if text != "" {
			v.Facts = append(v.Facts, fact{Name: name, Text: visible(text), Path: path, Mono: path == ""})
		}
	}
	mono("ID", v.ID, "")
	if o.UserID != uuid.Nil {
		user := o.UserID.String()[:8]
		if c.sandbox() {
			if state, ok := c.Server.OrderState(o.ID); ok {
				user = cmp.Or(state.ClientUserID, user)
			}
		}
		mono("User", user, "/console/users/"+o.UserID.String())
	}
	if o.SampleID != nil {
		mono("Sample", *o.SampleID, "")
	}
	if o.LabTest.Lab != nil {
		add("Lab", o.LabTest.Lab.Name)
	}
	add("Billing", words(string(o.BillingType)))
	if parent := redrawOf(o); parent != uuid.Nil {
		mono("Redraw of", parent.String()[:8], orderPath(parent))
	}
	if redraw := redrawnBy(o); redraw != uuid.Nil {
		mono("Redrawn by", redraw.String()[:8], orderPath(redraw))
	}
	if o.ActivateBy != nil {
		add("Activate by", o.ActivateBy.String())
	}
	if o.ExpectedResultByDate != nil {
		add("Expected", o.ExpectedResultByDate.String())
	}
	if !o.CreatedAt.IsZero() {
		add("Created", o.CreatedAt.In(c.Now().Location()).Format("Mon 2 Jan 2006, 15:04"))
	}
	if p := o.Passthrough; p != nil {
		mono("Passthrough", shorten([]byte(*p)), "")
	}
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

// patientFacts are shown when they were asked for.
func patientFacts(o *labhealth.Order) []fact {
	var facts []fact
	add := func(name string, texts ...string) {
		text := strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), " ")
		if text != "" {
			facts = append(facts, fact{Name: name, Text: visible(text)})
		}
	}
	if p := o.PatientDetails; p != nil {
		add("Name", deref(p.FirstName), deref(p.LastName))
		add("Born", p.DOB.String())
		add("Gender", p.Gender)
		add("Phone", deref(p.PhoneNumber))
		add("Email", deref(p.Email))
	}
	if a := o.PatientAddress; a != nil {
		add("Address", a.ReceiverName, a.FirstLine, deref(a.SecondLine), a.City, a.State, a.Zip, a.Country)
	}
	if p := o.Physician; p != nil {
		add("Physician", p.FirstName, p.LastName)
		add("NPI", p.NPI)
	}
	add("Notes", deref(o.Notes), deref(o.ClinicalNotes))
	return facts
}

func deref(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// addRead adds the typed fields beside the received JSON, and marks what is malformed or unknown in
// both.
func (v *orderView) addRead(o *labhealth.Order, reveal bool) {
	raw := o.RawJSON()
	v.Typed = typedFields(o)
	kept := map[string]bool{}
	name := func(path string) string {
		if !reveal {
			path = HideNames(path, mask)
		}
		return visible(path)
	}
	malformed, unknown := o.Malformed(), inspect.UnknownFieldsOf(o, raw)
	for _, m := range malformed {
		kept[m.Path] = true
		v.Typed = append(v.Typed, typedField{Name: name(m.Path), Text: "zero", Note: "malformed: no " + m.Want, Kept: true})
	}
	for _, path := range unknown {
		kept[path] = true
		v.Typed = append(v.Typed, typedField{Name: name(path), Text: "RawJSON", Note: "unknown field, kept in RawJSON", Kept: true})
	}
	if len(malformed)+len(unknown) > 0 {
		v.Kept = fmt.Sprintf("%d malformed, %d unknown", len(malformed), len(unknown))
	}
	v.JSON = viewJSON(raw, jsonOptions{Kept: kept, Reveal: reveal})
	v.Source = "from the latest delivery"
	if v.Sandbox {
		v.Source = "GET /v3/order/" + v.Short + "…"
	}
}

// typedFields are fields of the order that are no patient data.
func typedFields(o *labhealth.Order) []typedField {
	var fields []typedField
	add := func(name, text string) { fields = append(fields, typedField{Name: name, Text: visible(text)}) }
	add("ID", o.ID.String())
	add("CurrentStatus()", string(o.CurrentStatus()))
	add("UserID", o.UserID.String())
	add("TeamID", o.TeamID.String())
	add("LabTest.Name", o.LabTest.Name)
	add("LabTest.Price", string(o.LabTest.Price))
	add("LabTest.Markers", countOf(len(o.LabTest.Markers), "marker"))
	add("Details.Type", string(o.Details.Type))
	add("Details.Data", strings.TrimPrefix(fmt.Sprintf("%T", o.Details.Data), "*labhealth."))
	add("SampleID", pointer(o.SampleID))
	add("BillingType", string(o.BillingType))
	add("Interpretation", pointer(o.Interpretation))
	add("HasMissingResults", pointer(o.HasMissingResults))
	add("HasResults()", fmt.Sprint(o.HasResults()))
	add("Origin", pointer(o.Origin))
	add("CreatedAt", o.CreatedAt.UTC().Format("2006-01-02 15:04:05.000 UTC"))
	add("UpdatedAt", o.UpdatedAt.UTC().Format("2006-01-02 15:04:05.000 UTC"))
	add("Events", fmt.Sprintf("%d, the last is %d", len(o.Events), o.LastEvent.ID))
	add("ExpectedResultByDate", pointer(o.ExpectedResultByDate))
	add("WorstCaseResultByDate", pointer(o.WorstCaseResultByDate))
	return fields
}

// pointer formats an optional value.
func pointer[T any](p *T) string {
	if p == nil {
		return "nil"
	}
	return fmt.Sprint(*p)
}
