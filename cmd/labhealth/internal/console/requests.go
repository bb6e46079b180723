package console

import (
	"net/http"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

func (c *Console) requestsRoutes() {
	c.mux.HandleFunc("GET /console/requests", c.requestsPage)
}

func (c *Console) requestsPage(w http.ResponseWriter, r *http.Request) {
	c.render(w, r, "requests", page{Title: "Requests", Current: "requests", Live: "requests", Data: map[string]string{"Title": "Nothing yet", "Text": ""}})
}

func (c *Console) countRequests() int { return c.Server.RequestCount() }

// requestReceived updates the open pages after a request.
func (c *Console) requestReceived(r labhealthtest.Request) {}
