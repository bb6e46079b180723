package console

import (
	"context"
	"net/http"

	"github.com/google/uuid"
)

func (c *Console) ordersRoutes() {
	c.mux.HandleFunc("GET /console/orders", c.ordersPage)
}

func (c *Console) ordersPage(w http.ResponseWriter, r *http.Request) {
	c.render(w, r, "orders", page{Title: "Orders", Current: "orders", Live: "orders", Data: map[string]string{"Title": "Nothing yet", "Text": ""}})
}

func (c *Console) countOrders(ctx context.Context) int { return 0 }

// orderChanged updates the open pages after a change of an order.
func (c *Console) orderChanged(ctx context.Context, id uuid.UUID) {}
