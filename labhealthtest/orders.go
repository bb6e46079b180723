package labhealthtest

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// outcomeLife is how long the outcome of an idempotency key is kept.
const outcomeLife = 24 * time.Hour

// outcome is the answer that an idempotency key had.
type outcome struct {
	answer answer
	at     time.Time
}

var (
	errNoUser    = errors.New("labhealthtest: no such user")
	errNoOrder   = errors.New("labhealthtest: no such order")
	errNoLabTest = errors.New("labhealthtest: no such lab test, or not active")
)

var noOrder = refuse(http.StatusNotFound, "This order doesn't exist")

// placed is the answer of the operations that make and change an order.
type placed struct {
	Order   *order `json:"order"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

// RefuseImport makes every import fail with this status and body, as for a team that is not enabled for the closed beta. Neither
// status nor body is documented: servers have sent JSON since November 2025 and plain text before, and a body that is not JSON is
// sent as plain text. Status 0 enables the team again.
func (s *Server) RefuseImport(status int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.importDenied = nil
	if status != 0 {
		s.importDenied = &answer{status: status, body: []byte(body), contentType: contentType(body)}
	}
}

// importOrder takes over an order that exists already: it ends at requisition_bypassed and cannot be modified.
func (s *Server) importOrder(r *request) answer {
	if s.importDenied != nil {
		return *s.importDenied
	}
	var body placeOrder
	r.decode(importOrderBody, &body)
	if a, bad := r.invalid(); bad {
		return a
	}
	u := s.user(body.UserID)
	if u == nil {
		return noUser
	}
	if s.sampleIDs[*body.SampleID] {
		return refuse(http.StatusBadRequest, "An order with this sample_id already exists")
	}
	test, method, detail := s.resolve(&body)
	if detail != "" {
		return refuse(http.StatusBadRequest, detail)
	}
	s.sampleIDs[*body.SampleID] = true
	o := s.place(u, test, method, &body, r.now)
	s.emitOrder(o)
	s.step(o, "received."+method+".requisition_bypassed", "", r.now)
	s.emitOrder(o)
	return reply(placed{o, "success", "Order created successfully"})
}

// createOrder honours X-Idempotency-Key: the outcome of a request that passed its validation is answered again for 24 hours,
// whatever the later request says.
func (s *Server) createOrder(r *request) answer {
	var body placeOrder
	r.decode(createOrderBody, &body)
	if a, bad := r.invalid(); bad {
		return a
	}
	key := r.header.Get("X-Idempotency-Key")
	if key == "" {
		return s.create(&body, r.now)
	}
	if out, ok := s.outcomes[key]; ok && r.now.Sub(out.at) < outcomeLife {
		return out.answer
	}
	a := s.create(&body, r.now)
	if a.status == http.StatusOK || r.header.Get("X-Idempotency-Error") != "no-cache" {
		s.outcomes[key] = outcome{a, r.now}
	}
	return a
}

func (s *Server) create(body *placeOrder, now time.Time) answer {
	u := s.user(body.UserID)
	if u == nil {
		return noUser
	}
	test, method, detail := s.resolve(body)
	if detail == "" {
		detail = unanswered(test, body)
	}
	if detail == "" && body.ActivateBy != nil && *body.ActivateBy < now.Format(time.DateOnly) {
		detail = pastDate
	}
	if detail != "" {
		return refuse(http.StatusBadRequest, detail)
	}
	o := s.place(u, test, method, body, now)
	s.emitOrder(o)
	return reply(placed{o, "success", "Order created successfully"})
}

const pastDate = "activate_by must be today or a future date"

// updateOrder changes or clears the date of a scheduled order.
func (s *Server) updateOrder(r *request) answer {
	id := r.pathUUID("order_id")
	var body struct {
		ActivateBy *string `json:"activate_by"`
	}
	r.decode(updateOrderBody, &body)
	if a, bad := r.invalid(); bad {
		return a
	}
	o := s.orderByID[id]
	if o == nil {
		return noOrder
	}
	low := o.lowLevel()
	detail := ""
	switch {
	case low != "ordered" && low != "awaiting_registration":
		detail = "Order can not be modified in its current status"
	case !o.scheduled:
		detail = "Order was created for immediate processing and can not be rescheduled"
	case body.ActivateBy != nil && *body.ActivateBy < r.now.Format(time.DateOnly):
		detail = pastDate
	}
	if detail != "" {
		return refuse(http.StatusBadRequest, detail)
	}
	o.ActivateBy = body.ActivateBy
	o.UpdatedAt = stamp(r.now)
	// Without a date the order is dispatched at once, but not before a testkit that awaits its registration was registered.
	if body.ActivateBy == nil && low == "ordered" {
		s.step(o, "received."+o.Details.Type+".requisition_created", "", r.now)
		s.emitOrder(o)
	}
	return reply(placed{o, "success", "order updated"})
}

func (s *Server) getOrder(r *request) answer {
	id := r.pathUUID("order_id")
	if a, bad := r.invalid(); bad {
		return a
	}
	if o := s.orderByID[id]; o != nil {
		return reply(o)
	}
	return noOrder
}

// place makes an order, which is at ordered, and keeps it.
func (s *Server) place(u *user, test *labTest, method string, body *placeOrder, now time.Time) *order {
	o := &order{
		ID:             s.newID(),
		UserID:         u.UserID,
		TeamID:         s.TeamID,
		PatientDetails: body.PatientDetails,
		PatientAddress: body.PatientAddress,
		LabTest:        test,
		SampleID:       body.SampleID,
		ClinicalNotes:  body.ClinicalNotes,
		CreatedAt:      stamp(now),
		Events:         make([]orderEvent, 0, 2),
		Physician:      body.Physician,
		Priority:       body.Priority,
		ActivateBy:     body.ActivateBy,
		Passthrough:    body.Passthrough,
		BillingType:    body.BillingType,
		ICDCodes:       body.ICDCodes,
		Origin:         "initial",
		scheduled:      body.ActivateBy != nil,
	}
	if p := o.PatientDetails; p.searchName == "" {
		p.searchName = strings.ToLower(p.FirstName + " " + p.LastName)
	}
	data := siteData{s.newID(), stamp(now), stamp(now)}
	o.Details.Type = method
	switch method {
	case "testkit":
		o.Details.Data = &testkitData{siteData: data}
	case "on_site_collection":
		o.Details.Data = &data
	default:
		o.Details.Data = &appointmentData{siteData: data}
	}
	o.Transaction = transaction{ID: s.newID(), Status: "active", Orders: []transactionOrder{{
		ID: o.ID, CreatedAt: microStamp(now), Origin: o.Origin,
	}}}
	s.step(o, "received."+method+".ordered", "", now)

	s.orders = insert(s.orders, o)
	s.ordersOf[u.UserID] = insert(s.ordersOf[u.UserID], o)
	s.orderByID[o.ID] = o
	return o
}

// insert keeps orders by creation time, also when the clock went back, and those of one time as they came.
func insert(orders []*order, o *order) []*order {
	i := len(orders)
	if i > 0 && byCreation(orders[i-1], o) > 0 {
		i, _ = slices.BinarySearchFunc(orders, o, byCreation)
	}
	return slices.Insert(orders, i, o)
}

func byCreation(a, b *order) int {
	return cmp.Or(
		time.Time(a.CreatedAt).Compare(time.Time(b.CreatedAt)),
		cmp.Compare(a.Events[0].ID, b.Events[0].ID))
}

// listOrders filters, sorts and pages; the newest order comes first.
func (s *Server) listOrders(r *request) answer {
	page := r.queryRange("page", 1, 1, 0)
	size := r.queryRange("size", 50, 1, 100)
	key := r.queryOne("order_key", oneOf("created_at", "patient_name", "last_status"))
	direction := r.queryOne("order_direction", oneOf("asc", "desc"))
	found := s.filter(r)
	if a, bad := r.invalid(); bad {
		return a
	}
	if order := sortKeys[key]; order != nil {
		found = slices.Clone(found)
		slices.SortStableFunc(found, order)
	}
	from := len(found)
	if page-1 <= len(found)/size { // A page may be as large as an int can be.
		from = min((page-1)*size, len(found))
	}
	to := min(from+size, len(found))
	selected := append([]*order{}, found[from:to]...)
	if direction != "asc" {
		selected = append([]*order{}, found[len(found)-to:len(found)-from]...)
		slices.Reverse(selected)
	}
	return reply(struct {
		Orders []*order `json:"orders"`
		Total  int      `json:"total"`
		Page   int      `json:"page"`
		Size   int      `json:"size"`
	}{selected, len(found), page, size})
}

// sortKeys are the orders of a list other than by creation time.
var sortKeys = map[string]func(a, b *order) int{
	"patient_name": func(a, b *order) int {
		return strings.Compare(a.PatientDetails.searchName, b.PatientDetails.searchName)
	},
	"last_status": func(a, b *order) int { return strings.Compare(a.LastEvent.Status, b.LastEvent.Status) },
}

// filter returns the orders that the query parameters select, by creation time. The slice may be the server's own.
func (s *Server) filter(r *request) []*order {
	among := s.orders
	var conditions []func(*order) bool
	where := func(f func(*order) bool) { conditions = append(conditions, f) }

	// The conditions that an index answers come first.
	if id := r.queryOne("user_id", aUUID); id != "" {
		userID, _ := parseUUID(id)
		among = s.ordersOf[userID]
		where(func(o *order) bool { return o.UserID == userID })
	}
	if ids := r.queryList("order_ids", aUUID); len(ids) > 0 {
		var named []*order
		for _, id := range ids {
			orderID, _ := parseUUID(id)
			if o := s.orderByID[orderID]; o != nil && !slices.Contains(named, o) {
				named = insert(named, o)
			}
		}
		among = named
	}
	if id := r.queryOne("order_transaction_id", aUUID); id != "" {
		transactionID, _ := parseUUID(id)
		where(func(o *order) bool { return o.Transaction.ID == transactionID })
	}
	if statuses := r.queryList("status", lowLevelStatus); len(statuses) > 0 {
		where(func(o *order) bool { return slices.Contains(statuses, o.lowLevel()) })
	}
	if methods := r.queryList("order_type", collectionMethod); len(methods) > 0 {
		where(func(o *order) bool { return slices.Contains(methods, o.Details.Type) })
	}
	if want := r.queryOne("interpretation", interpretation); want != "" {
		where(func(o *order) bool { return o.Interpretation != nil && *o.Interpretation == want })
	}
	if critical := r.queryBool("is_critical"); critical != nil {
		where(func(o *order) bool {
			return *critical == (o.Interpretation != nil && *o.Interpretation == "critical")
		})
	}
	if types := r.queryList("order_activation_types", oneOf("current", "scheduled")); len(types) > 0 {
		today := r.now.Format(time.DateOnly)
		// An order that is due today is neither, going by the published definitions.
		current, scheduled := slices.Contains(types, "current"), slices.Contains(types, "scheduled")
		where(func(o *order) bool {
			return current && (o.ActivateBy == nil || *o.ActivateBy < today) ||
				scheduled && o.ActivateBy != nil && *o.ActivateBy > today
		})
	}
	created := func(o *order) time.Time { return time.Time(o.CreatedAt) }
	updated := func(o *order) time.Time { return time.Time(o.UpdatedAt) }
	for _, f := range []struct {
		prefix string
		of     func(*order) time.Time
	}{{"", created}, {"updated_", updated}} {
		if start, _, ok := r.queryTime(f.prefix + "start_date"); ok {
			where(func(o *order) bool { return !f.of(o).Before(start) })
		}
		if end, isDate, ok := r.queryTime(f.prefix + "end_date"); ok {
			if isDate { // The day is meant to its end.
				end = end.AddDate(0, 0, 1).Add(-time.Microsecond)
			}
			where(func(o *order) bool { return !f.of(o).After(end) })
		}
	}
	if name := strings.ToLower(r.query.Get("patient_name")); name != "" {
		where(func(o *order) bool { return strings.Contains(o.PatientDetails.searchName, name) })
	}
	if name := strings.ToLower(r.query.Get("shipping_recipient_name")); name != "" {
		where(func(o *order) bool {
			return o.ShippingDetails != nil && strings.Contains(strings.ToLower(o.ShippingDetails.ReceiverName), name)
		})
	}
	if input := strings.ToLower(r.query.Get("search_input")); input != "" {
		id, _ := parseUUID(input)
		where(func(o *order) bool {
			return strings.Contains(o.PatientDetails.searchName, input) ||
				o.SampleID != nil && strings.EqualFold(*o.SampleID, input) ||
				id != uuid.Nil && (o.ID == id || o.UserID == id)
		})
	}
	if len(conditions) == 0 || len(r.problems) > 0 {
		return among
	}
	var found []*order
next:
	for _, o := range among {
		for _, holds := range conditions {
			if !holds(o) {
				continue next
			}
		}
		found = append(found, o)
	}
	return found
}
