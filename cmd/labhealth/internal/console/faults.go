package console

import "net/http"

// faults is what the user has armed.
type faults struct{}

func newFaults() *faults { return &faults{} }

func (c *Console) faultsRoutes() {
	c.mux.HandleFunc("GET /console/faults", c.faultsPage)
}

func (c *Console) faultsPage(w http.ResponseWriter, r *http.Request) {
	c.render(w, r, "faults", page{Title: "Faults", Current: "faults", Live: "faults", Data: map[string]string{"Title": "No faults are armed", "Text": ""}})
}

func (c *Console) countFaults() int { return 0 }
