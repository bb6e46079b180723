package console

import (
	"context"
	"net/http"
)

func (c *Console) deliveriesRoutes() {
	c.mux.HandleFunc("GET /console/deliveries", c.deliveriesPage)
}

func (c *Console) deliveriesPage(w http.ResponseWriter, r *http.Request) {
	c.render(w, r, "deliveries", page{Title: "Deliveries", Current: "deliveries", Live: "deliveries", Data: map[string]string{"Title": "Nothing yet", "Text": ""}})
}

func (c *Console) countDeliveries(ctx context.Context) int { return 0 }

// deliveryChanged updates the open pages after a delivery was received or has changed.
func (c *Console) deliveryChanged(ctx context.Context, number int64) {}
