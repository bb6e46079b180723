package console

import (
	"net/http"
	"strings"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
)

// checkView is the data of the template check-application.
type checkView struct {
	Forward   forwardView
	Page      string
	StoreDown bool
	Error     string
	Probes    []inspect.Probe
	Failed    int
	Unclear   int
}

// checkPage shows the form. After a POST it sends the deliveries of the check and shows how the
// application responded. The result is not stored.
func (c *Console) checkPage(w http.ResponseWriter, r *http.Request) {
	view := checkView{Forward: c.forwardView(), Page: strings.TrimSpace(r.PostFormValue("page")), StoreDown: r.PostFormValue("down") != ""}
	p := page{Title: "Check the application", Current: "deliveries", Data: &view}
	if r.Method == http.MethodPost {
		probes, err := c.Inspector.CheckApplication(r.Context(), inspect.CheckOptions{Page: view.Page, StoreDown: view.StoreDown})
		switch {
		case r.Context().Err() != nil:
			return
		case err != nil:
			view.Error, p.Status = sentence(err), http.StatusUnprocessableEntity
		default:
			view.show(probes)
		}
	}
	c.render(w, r, "check-application", p)
}

// show sets the result.
func (v *checkView) show(probes []inspect.Probe) {
	v.Probes = probes
	for _, p := range probes {
		if !p.Passed {
			v.Failed++
		} else if p.Unclear {
			v.Unclear++
		}
	}
}
