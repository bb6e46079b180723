package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// startOpenBox starts a sandbox whose service the test can use.
func startOpenBox(t *testing.T) (*sandbox, *box) {
	t.Helper()
	s, err := startSandbox(t.Context(), sandboxFlags{addr: "127.0.0.1:0", seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s, &box{sandboxState: s.state(), t: t}
}

// importBody returns a valid import.
func importBody(user uuid.UUID, sample string) labhealth.ImportOrderBody {
	return labhealth.ImportOrderBody{
		UserID:           user,
		BillingType:      labhealth.BillingClientBill,
		OrderSet:         labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{uuid.MustParse("5b41f610-ebc5-4803-8f0c-a61c3bdc7f02")}},
		CollectionMethod: labhealth.CollectionMethodWalkInTest,
		PatientDetails: labhealth.PatientDetailsWithValidation{
			FirstName: "Ada", LastName: "Example", DOB: labhealth.Date{Year: 1985, Month: time.December, Day: 10},
			Gender: labhealth.GenderFemale, PhoneNumber: "+14155550123", Email: "ada@example.com",
		},
		PatientAddress: labhealth.PatientAddress{
			ReceiverName: "Ada Example", FirstLine: "1 Example Street", City: "Monterey", State: "CA", Zip: "93940", Country: "US",
		},
		SampleID: sample,
	}
}

// importOrder imports an order as an application does.
func importOrder(t *testing.T, b *box, user uuid.UUID, sample string) uuid.UUID {
	t.Helper()
	resp, err := b.client().Orders.Import(t.Context(), importBody(user, sample))
	if err != nil {
		t.Fatal(err)
	}
	return resp.Order.ID
}

// An order that the client imports appears without a reload. Its next status is a click, whose
// event arrives verified. A replay of it is a duplicate. All of it works with the keyboard.
func TestBrowserOrder(t *testing.T) {
	t.Parallel()
	s, b := startOpenBox(t)
	user := s.server.AddUser("user-1")
	s.server.AddOrders(1)
	board := openTab(t, b.URL, b.Console, 1440, 900)
	rows := openTab(t, b.URL, b.Console, 1440, 900)
	rows.goTo("/console/deliveries")
	for _, p := range []*tab{board, rows} {
		p.waitText("#running", "Running")
		p.do(evaluate("window.__same = true"))
	}
	start := time.Now()
	id := importOrder(t, b, user, "SAMPLE-0001")
	card := "#order-" + id.String()
	board.waitText("#received-cards "+card, "Lipid Panel")
	t.Logf("the order is on the board after %v", time.Since(start).Round(time.Millisecond))
	rows.wait(`[...document.querySelectorAll("#rows li")].some((e) => e.textContent.includes("order.created") && e.querySelector(".mk").getAttribute("aria-label") === "verified")`)
	if !eval[bool](board, "window.__same") || !eval[bool](rows, "window.__same") {
		t.Error("a page was loaded again")
	}
	text := eval[string](board, fmt.Sprintf("document.querySelector(%s).textContent", js(card)))
	if strings.Contains(text, "Ada") || strings.Contains(eval[string](board, "document.documentElement.outerHTML"), "1985") {
		t.Error("the board shows the patient")
	}
	// j selects the card, a advances it.
	board.keys("j")
	board.submit(func() { board.keys("a") })
	board.wait(fmt.Sprintf("document.querySelector(%s) && !document.querySelector(%s).textContent.includes('Ordered')", js(card), js(card)))
	rows.wait(`[...document.querySelectorAll("#rows li")].some((e) => e.textContent.includes("order.updated"))`)
	// In the rows: select the latest, open it, replay it.
	rows.keys("k", "k", "k") // upwards, from wherever the selection is
	rows.keys(kb.Enter)
	rows.wait(`location.pathname === document.querySelector("#rows .at a").pathname`)
	rows.waitText("#detail", "order.updated")
	rows.keys("r")
	rows.submit(func() { rows.click("#detail details[open] form button.primary, #detail details[open] form button") })
	rows.wait(`[...document.querySelectorAll("#rows .mk")].some((e) => e.getAttribute("aria-label").startsWith("duplicate"))`)
	rows.screenshot("flow-replayed")
	board.screenshot("flow-board")
}

// A delivery with a signature of another secret is rejected, and the page says why.
func TestBrowserRejected(t *testing.T) {
	t.Parallel()
	s, b := startOpenBox(t)
	err := s.server.DeliverTo("http://inspector.invalid/", labhealthtest.WithSigningSecrets(webhookSecret(77)),
		labhealthtest.WithTransport(s.inspector.Transport()))
	if err != nil {
		t.Fatal(err)
	}
	p := openTab(t, b.URL, b.Console, 1440, 900)
	p.goTo("/console/deliveries")
	p.waitText("#running", "Running")
	importOrder(t, b, s.server.AddUser("user-1"), "SAMPLE-0001")
	p.wait(`[...document.querySelectorAll("#rows .mk")].some((e) => e.getAttribute("aria-label").startsWith("rejected"))`)
	p.do(evaluate(`[...document.querySelectorAll("#rows .mk")].find((e) => e.getAttribute("aria-label").startsWith("rejected")).closest("a").click()`))
	p.waitText("#detail .verdict", "signature")
	t.Log(eval[string](p, `document.querySelector("#detail .verdict").innerText`))
	p.screenshot("rejected")
}

// Events in which every text is markup do nothing, on any page.
func TestBrowserHostile(t *testing.T) {
	t.Parallel()
	s, b := startOpenBox(t)
	user := s.server.AddUser("user-1")
	const evil = `<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=alert(3)>{{.}}</textarea></title>javascript:alert(4)`
	for _, typ := range []string{"labtest.order.updated", "daily.data.sleep.created", "daily.data.glucose.created", "daily.data.workouts.created", evil} {
		event := fmt.Sprintf(`{"event_type":"%s","user_id":"%s","client_user_id":"%s","team_id":"%s","data":{"id":"%s","%s":"%s","status":"%s","source":{"provider":"%s","slug":"%s","type":"%s","name":"%s","device_id":"%s"},"notes":"%s","lab_test":{"name":"%s","method":"%s"},"patient_details":{"first_name":"%s"},"events":[{"id":1,"status":"%s","created_at":"2026-11-23T00:00:00Z"}],"title":"%s","calendar_date":"%s"}}`,
			typ, user, evil, s.server.TeamID, uuid.New(), evil, evil, evil, evil, evil, evil, evil, evil, evil, evil, evil, evil, evil, evil, evil)
		if err := s.server.Send([]byte(event)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.server.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := openTab(t, b.URL, b.Console, 1440, 900)
	p.goTo("/console/deliveries")
	p.waitText("#running", "Running")
	s.server.Send([]byte(strings.ReplaceAll(`{"event_type":"EVIL","client_user_id":"EVIL","data":{"EVIL":"EVIL"}}`, "EVIL", evil))) // arrives live
	p.wait(`document.querySelectorAll("#rows li").length >= 6`)
	paths := eval[[]string](p, `[...document.querySelectorAll("#rows li a")].slice(0, 8).map((a) => a.pathname)`)
	for _, path := range paths {
		paths = append(paths, path+"?tab=body", path+"?tab=typed", path+"/edit")
	}
	paths = append(paths, "/console/users/"+user.String(), "/console/orders", "/console/requests", "/console/faults",
		"/console/deliveries?q="+strings.NewReplacer("<", "%3C", ">", "%3E", `"`, "%22", `\`, "%5C", " ", "+").Replace(evil))
	for _, path := range paths {
		p.goTo(path)
		if n := eval[int](p, `document.querySelectorAll("img, iframe, object, embed, [onerror], [onload], [onclick], a[href^=javascript], script:not([src^='/console/assets/'])").length`); n != 0 {
			t.Errorf("%s: %d elements of the event", path, n)
		}
	}
	p.screenshot("hostile")
}

// A plot of 10,000 samples is drawn at once.
func TestBrowserPlot(t *testing.T) {
	t.Parallel()
	s, b := startOpenBox(t)
	user := s.server.AddUser("user-1")
	now := time.Now().UTC().Truncate(24 * time.Hour).Add(-24 * time.Hour)
	if err := s.server.AddSamples(user, "heartrate", 10000, labhealthtest.StartingAt(now)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.server.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	p := openTab(t, b.URL, b.Console, 1440, 900)
	for _, query := range []string{"?day=" + now.Format(time.DateOnly), "?day=" + now.Format(time.DateOnly) + "&span=week"} {
		start := time.Now()
		p.goTo("/console/users/" + user.String() + query)
		p.wait(`document.querySelector(".plot canvas")`)
		nav := eval[map[string]float64](p, `(() => { const n = performance.getEntriesByType("navigation")[0]; return { response: n.responseEnd - n.requestStart, drawn: n.loadEventEnd, bytes: n.decodedBodySize }; })()`)
		t.Logf("10,000 samples%s: %v in all, response %.0f ms, loaded %.0f ms, %.0f bytes", query, time.Since(start).Round(time.Millisecond), nav["response"], nav["drawn"], nav["bytes"])
	}
	p.screenshot("plot")
}
