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
	Ran       bool
	Tone      string // of Summary
	Summary   string
	Probes    []inspect.Probe
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
	failed, unclear := 0, 0
	for _, p := range probes {
		if !p.Passed {
			failed++
		} else if p.Unclear {
			unclear++
		}
	}
	v.Probes = probes
	v.Ran = true
	switch {
	case failed > 0 && len(probes) == 1 && !v.StoreDown:
		v.Tone, v.Summary = "bad", "The application does not accept a valid delivery. The rest was not sent."
	case failed > 0 && v.StoreDown:
		v.Tone, v.Summary = "bad", "The application acknowledges what it cannot store."
	case failed > 0:
		v.Tone, v.Summary = "bad", number(failed)+" of "+number(len(probes))+" results are wrong."
	case unclear > 0:
		v.Tone, v.Summary = "warn", "No result is wrong, and "+number(unclear)+" of "+number(len(probes))+" need a look."
	case v.StoreDown:
		v.Tone, v.Summary = "ok", "The application does not acknowledge what it cannot store."
	case v.Page == "":
		v.Tone, v.Summary = "ok", "All "+number(len(probes))+" status codes are correct. They do not show what was stored: check again with a page, and with the database stopped."
	default:
		v.Tone, v.Summary = "ok", "All "+number(len(probes))+" results are correct. Stop the database of the application and check again."
	}
}
