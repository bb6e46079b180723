// The list of orders and its filters.

package labhealthtest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// listOrders returns the latest orders first, unless the request specifies another order.
func (s *Server) listOrders(r *request) (any, error) {
	page, size := r.queryInt("page"), r.queryInt("size")
	found := selected(r, s.indexedOrders(r), orderFilters)
	if compare := orderSortKeys[r.queryOne("order_key")]; compare != nil {
		found = slices.Clone(found)
		slices.SortStableFunc(found, compare)
	}
	from, to := pageBounds(page, size, len(found))
	orders := append([]*order{}, found[from:to]...)
	if r.queryOne("order_direction") != "asc" {
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
	equals("order_transaction_id", func(o *order) string { return o.Transaction.ID.String() }),
	equals("status", (*order).lowLevelStatus),
	equals("order_type", func(o *order) string { return o.Details.Type }),
	equals("interpretation", (*order).interpretation),
	equals("is_critical", func(o *order) string { return strconv.FormatBool(o.interpretation() == "critical") }),
	activationFilter,
	since("start_date", createdAt),
	until("end_date", createdAt),
	since("updated_start_date", updatedAt),
	until("updated_end_date", updatedAt),
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

// searchFilter searches the patient's name, the sample ID, and the IDs of order and user.
func searchFilter(r *request) func(*order) bool {
	input := strings.ToLower(r.queryOne("search_input"))
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
