package console

import (
	"net/url"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
)

func TestCheckPage(t *testing.T) {
	s := newDeliveriesSite(t)
	s.contains(s.get("/console/deliveries", 200), `href="/console/deliveries/check"`)
	page := s.get("/console/deliveries/check", 200)
	s.contains(page, "Check the application", "The orders are invented", "/webhooks</code>")
	s.lacks(page, "Should be")
	if len(s.bodies) != 0 {
		t.Error("a GET has sent something")
	}
	// The application accepts everything.
	page = s.post("/console/deliveries/check", url.Values{}, 200)
	s.contains(page, "4 of 12 results are wrong.", "Without a signature", "Anyone who knows the URL", "Check again")
	s.lacks(page, "..", deliverySecret)
	page = s.post("/console/deliveries/check", url.Values{"down": {"1"}}, 200)
	s.contains(page, "The application acknowledges what it cannot store.", "the event is lost", " checked>")
	s.status = 401
	s.contains(s.post("/console/deliveries/check", url.Values{}, 200), "other ways to sign", "The application does not accept a valid delivery. The rest was not sent.", "another secret")
	s.contains(s.post("/console/deliveries/check", url.Values{"page": {"http://example.com/"}}, 422), "The page must be a path of the application", `value="http://example.com/"`)
	if err := s.inspector.SetForward(""); err != nil {
		t.Fatal(err)
	}
	s.contains(s.get("/console/deliveries/check", 200), "No application is set")
	s.contains(s.post("/console/deliveries/check", url.Values{}, 422), "No application is set: forward deliveries to one first.")
}

// Status codes alone are not a success: an application that ignores updates has the same.
func TestCheckSummary(t *testing.T) {
	for _, c := range []struct {
		view checkView
		want string
	}{
		{checkView{}, "They do not show what was stored: check again with a page"},
		{checkView{Page: "/orders"}, "All 1 results are correct. Stop the database"},
		{checkView{StoreDown: true}, "does not acknowledge what it cannot store"},
	} {
		c.view.show([]inspect.Probe{{Passed: true}})
		var b strings.Builder
		if err := newDeliveriesSite(t).console.templates.ExecuteTemplate(&b, "check-application", &c.view); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), `<div class="note ok"`) || !strings.Contains(b.String(), c.want) {
			t.Errorf("%s, want %q", b.String(), c.want)
		}
	}
}

// The page of a delivery says what the response of the application means.
func TestFindingOnPage(t *testing.T) {
	s := newDeliveriesSite(t)
	body := `{"event_type":"labtest.order.created","user_id":"` + deliveryUser + `","data":{}}`
	n := s.deliver("msg_ok", deliverySecret, body, 0)
	s.lacks(s.get(pathOf(n), 200), "/console/deliveries/check\">Check")
	s.status = 401
	s.contains(s.get(pathOf(s.deliver("msg_no", deliverySecret, body, 0)), 200), "The signature is valid, and the application responded 401", `/console/deliveries/check">Check`)
}

func pathOf(n int64) string { return "/console/deliveries/" + number(int(n)) }
