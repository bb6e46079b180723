// The list of orders and its filters.

package labhealthtest

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// listOrders returns the latest orders first, unless the request specifies another order.
func (s *Server) listOrders(r *request) (any, error) {
	page := r.queryRange("page", 1, 1, 0)
	size := r.queryRange("size", 50, 1, 100)
	key := r.queryOne("order_key")
	direction := r.queryOne("order_direction")
	found := selected(r, s.indexedOrders(r), orderFilters)
	if err := r.err(); err != nil {
		return nil, err
	}
	if compare := orderSortKeys[key]; compare != nil {
		found = slices.Clone(found)
		slices.SortStableFunc(found, compare)
	}
	from, to := pageBounds(page, size, len(found))
	orders := append([]*order{}, found[from:to]...)
	if direction != "asc" {
		orders = append([]*order{}, found[len(found)-to:len(found)-from]...)
		slices.Reverse(orders)
	}
	return struct {
		Orders []*order `json:"orders"`
		Total  int      `json:"total"`
		Page   int      `json:"page"`
		Size   int      `json:"size"`
	}{orders, len(found), page, size}, nil
}

// orderSortKeys are the sort keys other than the creation time.
var orderSortKeys = map[string]func(a, b *order) int{
	"patient_name": func(a, b *order) int {
		return strings.Compare(a.patientName(), b.patientName())
	},
	"last_status": func(a, b *order) int { return strings.Compare(a.LastEvent.Status, b.LastEvent.Status) },
}

// indexedOrders returns the orders that the parameters user_id and order_ids select, by creation
// time. It may return a slice of the server.
func (s *Server) indexedOrders(r *request) []*order {
	orders := s.orders
	userID, hasUser := parseUUID(r.queryOne("user_id"))
	if hasUser {
		orders = s.ordersOf[userID]
	}
	ids := r.queryList("order_ids")
	if len(ids) == 0 {
		return orders
	}
	var named []*order
	for _, id := range ids {
		orderID, _ := parseUUID(id)
		o := s.orderByID[orderID]
		if o != nil && (!hasUser || o.UserID == userID) && !slices.Contains(named, o) {
			named = insertOrder(named, o)
		}
	}
	return named
}

// orderFilters are the parameters of listOrders that select orders.
var orderFilters = []filter[*order]{
	equalsUUID("order_transaction_id", func(o *order) uuid.UUID { return o.Transaction.ID }),
	equalsAny("status", (*order).lowLevelStatus),
	equalsAny("order_type", func(o *order) string { return o.Details.Type }),
	equals("interpretation", (*order).interpretation),
	criticalFilter,
	activationFilter,
	sinceFilter("start_date", createdAt),
	untilFilter("end_date", createdAt),
	sinceFilter("updated_start_date", updatedAt),
	untilFilter("updated_end_date", updatedAt),
	contains("patient_name", (*order).patientName),
	contains("shipping_recipient_name", (*order).shippingRecipient),
	searchFilter,
}

func createdAt(o *order) time.Time { return time.Time(o.CreatedAt) }
func updatedAt(o *order) time.Time { return time.Time(o.UpdatedAt) }

func (o *order) interpretation() string {
	if o.Interpretation == nil {
		return ""
	}
	return *o.Interpretation
}

func (o *order) shippingRecipient() string {
	if o.ShippingDetails == nil {
		return ""
	}
	return strings.ToLower(o.ShippingDetails.ReceiverName)
}

func criticalFilter(r *request) func(*order) bool {
	want := r.queryBool("is_critical")
	if want == nil {
		return nil
	}
	return func(o *order) bool { return *want == (o.interpretation() == "critical") }
}

// activationFilter selects current and scheduled orders. By the published definitions, an order for
// today is neither.
func activationFilter(r *request) func(*order) bool {
	types := r.queryList("order_activation_types")
	if len(types) == 0 {
		return nil
	}
	today := r.now.Format(time.DateOnly)
	return func(o *order) bool {
		if o.ActivateBy == nil || *o.ActivateBy < today {
			return slices.Contains(types, "current")
		}
		return *o.ActivateBy > today && slices.Contains(types, "scheduled")
	}
}

func sinceFilter(name string, get func(*order) time.Time) filter[*order] {
	return func(r *request) func(*order) bool {
		start, _, ok := r.queryTime(name)
		if !ok {
			return nil
		}
		return func(o *order) bool { return !get(o).Before(start) }
	}
}

// untilFilter includes the whole day of a date.
func untilFilter(name string, get func(*order) time.Time) filter[*order] {
	return func(r *request) func(*order) bool {
		end, isDate, ok := r.queryTime(name)
		if !ok {
			return nil
		}
		if isDate {
			end = end.AddDate(0, 0, 1).Add(-time.Microsecond)
		}
		return func(o *order) bool { return !get(o).After(end) }
	}
}

// searchFilter searches the patient's name, the sample ID, and the IDs of order and user.
func searchFilter(r *request) func(*order) bool {
	input := strings.ToLower(r.query.Get("search_input"))
	if input == "" {
		return nil
	}
	id, _ := parseUUID(input)
	return func(o *order) bool {
		return strings.Contains(o.patientName(), input) ||
			o.SampleID != nil && strings.EqualFold(*o.SampleID, input) ||
			id != uuid.Nil && (o.ID == id || o.UserID == id)
	}
}
