package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/labhealth/labhealth-go"
)

// deliveryRow is an expression that is true when the list of deliveries has a row of the type with
// a verdict.
func deliveryRow(eventType, verdict string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#rows li")].some((e) => e.textContent.includes(%s) && e.querySelector(".mk").getAttribute("aria-label").startsWith(%s))`,
		js(eventType), js(verdict))
}

// A switch of the page Faults breaks signatures: the next delivery is rejected with the reason. The
// one after it is verified again.
func TestBrowserBrokenSignature(t *testing.T) {
	t.Parallel()
	s, b := startOpenBox(t)
	order, err := s.server.AddOrder(s.server.AddUser("user-1"), s.server.LabTests.WalkIn)
	if err != nil {
		t.Fatal(err)
	}
	rows := openTab(t, b.URL, b.Console, 1440, 900)
	rows.goTo("/console/deliveries")
	rows.waitText("#running", "Running")
	rows.wait(deliveryRow("order.created", "verified"))
	rows.do(evaluate("window.__same = true"))
	faults := openTab(t, b.URL, b.Console, 1440, 900)
	faults.goTo("/console/faults")
	faults.submit(func() { faults.click("#corrupt-signature") })
	rows.waitText("#count-faults", "1 armed")

	if _, err := s.server.Advance(order); err != nil {
		t.Fatal(err)
	}
	rows.wait(deliveryRow("order.updated", "rejected: no signature matches"))
	rows.wait(`[...document.querySelectorAll("#rows li")].some((e) => e.textContent.includes("no signature matches") && e.textContent.includes("not stored"))`)
	faults.waitText(".sw.on", "Break the signature")
	faults.submit(func() { faults.click("#corrupt-signature") })
	if _, err := s.server.Advance(order); err != nil {
		t.Fatal(err)
	}
	rows.wait(deliveryRow("order.updated", "verified"))
	if !eval[bool](rows, "window.__same") {
		t.Error("the page was loaded again")
	}
}

// lose arms the fault that loses one response to an operation.
func (p *tab) lose(operation string) {
	p.t.Helper()
	p.goTo("/console/faults?operation=" + strings.ReplaceAll(operation, " ", "+") + "&times=1")
	p.waitText("#running", "Running")
	p.submit(func() { p.click("#arm-closed") })
	p.waitText("#armed-closed", operation)
}

// A program that repeats a call whose response was lost creates two orders, which the page Faults
// shows. The client reports an unknown outcome, and there is one order.
func TestBrowserLostResponse(t *testing.T) {
	t.Parallel()
	s, b := startOpenBox(t)
	user := s.server.AddUser("user-1")
	p := openTab(t, b.URL, b.Console, 1440, 900)
	p.lose("POST /v3/order")
	naive := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	body := fmt.Sprintf(`{"user_id":"%s","order_set":{"lab_test_ids":["5b41f610-ebc5-4803-8f0c-a61c3bdc7f02"]},
		"patient_details":{"first_name":"Ada","last_name":"Example","dob":"1990-01-31","gender":"female","phone_number":"+14155550123","email":"ada@example.com"},
		"patient_address":{"first_line":"1 Main Street","city":"San Francisco","state":"CA","zip":"94105","country":"US","phone_number":"+14155550123"}}`, user)
	var failed []bool
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), "POST", b.URL+"/v3/order", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Service-Api-Key", b.APIKey)
		r.Header.Set("Content-Type", "application/json")
		resp, err := naive.Do(r)
		failed = append(failed, err != nil)
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	if !slices.Equal(failed, []bool{true, false}) {
		t.Fatalf("the requests failed: %v", failed)
	}
	p.waitText("#faults-finding", "One call created two orders.")
	for _, id := range s.server.Orders() {
		p.wait(fmt.Sprintf(`document.querySelector("#faults-finding a[href='/console/orders/%s']")`, id))
	}
	p.screenshot("faults-two-orders")

	before := len(s.server.Orders())
	p.lose("POST /v3/order/import")
	_, err := b.client().Orders.Import(t.Context(), importBody(user, "SAMPLE-0001"))
	if outcome := labhealth.OutcomeOf(err); outcome != labhealth.OutcomeUnknown {
		t.Errorf("the outcome is %v of %v", outcome, err)
	}
	if n := len(s.server.Orders()) - before; n != 1 {
		t.Errorf("the import created %d orders", n)
	}
	p.wait(`[...document.querySelectorAll(".calls tr")].some((e) => e.textContent.includes("SAMPLE-0001") && e.textContent.includes("Once"))`)
}

// focus returns what has the keyboard focus, and fails if the focus cannot be seen.
func (p *tab) focus() string {
	p.t.Helper()
	state := eval[struct {
		Text string
		Seen bool
	}](p, `(() => {
		const e = document.activeElement, around = [e, e.nextElementSibling, e.closest(".card, .field, .seg label, .rows li > a")];
		const marked = (x) => x && (getComputedStyle(x).boxShadow !== "none" || getComputedStyle(x).outlineStyle !== "none");
		const r = e.getBoundingClientRect();
		return { Text: e.tagName + " " + (e.getAttribute("aria-label") || e.textContent || e.name || "").trim().slice(0, 40), Seen: e !== document.body && around.some(marked) && r.bottom > 0 && r.top < innerHeight };
	})()`)
	if !state.Seen {
		p.t.Errorf("the focus on %q cannot be seen at %s", state.Text, eval[string](p, "location.pathname"))
	}
	return state.Text
}

// The whole path of an order works without a mouse: from the board to its delivery and a replay of
// it, the filter, the help and the theme.
func TestBrowserKeyboard(t *testing.T) {
	t.Parallel()
	s, b := startOpenBox(t)
	p := openTab(t, b.URL, b.Console, 1440, 900)
	p.prefer("light")
	p.waitText("#content", "The first order appears here")
	p.waitText("#running", "Running")
	order := importOrder(t, b, s.server.AddUser("user-1"), "SAMPLE-0001")
	card := "#order-" + order.String()
	p.waitText("#received-cards "+card, "Lipid Panel") // without a reload
	for range 12 {
		p.keys(kb.Tab)
		p.focus()
	}
	p.keys("j")
	p.focus()
	p.submit(func() { p.keys(kb.Enter) })
	p.waitText("#order-head", "Requisition bypassed")
	p.submit(func() { p.keys("a") })
	p.waitText("#order-head h1", "Appointment pending")

	p.do(evaluate("{ const now = Date.now(); Date.now = () => now }")) // g waits for its second key for a second
	p.submit(func() { p.keys("g", "d") })
	p.wait(deliveryRow("order.updated", "verified"))
	p.keys("j")
	p.focus()
	p.keys(kb.Enter)
	p.wait(`location.pathname === document.querySelector("#rows .on a").pathname && location.pathname !== "/console/deliveries"`)
	p.waitText("#detail .dh", "order.updated")
	p.keys("r")
	p.wait(`document.querySelector("#detail details[open] button")`)
	p.do(evaluate(`document.querySelector("#detail details[open] summary").focus()`))
	p.keys(kb.Tab)
	if text := p.focus(); !strings.Contains(text, "Again") {
		t.Errorf("the first entry of the menu is %q", text)
	}
	p.submit(func() { p.keys(kb.Enter) })
	p.wait(deliveryRow("order.updated", "duplicate"))

	p.keys("/")
	p.focus()
	p.do(evaluate("document.activeElement.select()")) // the protocol types what the page has prevented
	p.submit(func() { p.keys("created", kb.Enter) })
	p.wait(`location.search.includes("q=created") && !document.querySelector("#rows").textContent.includes("order.updated")`)
	p.keys("?")
	p.wait(`document.querySelector("#help").matches(":popover-open")`)
	p.keys(kb.Escape)
	p.wait(`!document.querySelector("#help").matches(":popover-open")`)
	p.keys("t")
	p.wait(`document.documentElement.dataset.theme === "light"`)
	p.submit(func() { p.keys("t") })
	p.wait(`document.documentElement.dataset.theme === "dark" && getComputedStyle(document.body).backgroundColor === "rgb(13, 16, 18)"`)
}

// A page survives a restart of the sandbox at the same address: it says that the sandbox has
// stopped, and continues once the new address was opened in the browser. It loads once.
func TestBrowserRestart(t *testing.T) {
	theBrowserContext(t) // or skip
	first, err := startSandbox(t.Context(), sandboxFlags{addr: "127.0.0.1:0", seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	state := first.state()
	p := openTab(t, state.URL, state.Console, 1440, 900)
	p.expect("ERR_")
	p.expect("401")
	p.waitText("#running", "Running")
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	p.waitText("#running", "Stopped")
	second, err := startSandbox(t.Context(), sandboxFlags{addr: first.addr.String(), seed: 1, users: 1, orders: 2})
	if err != nil {
		t.Skipf("the port was taken: %v", err)
	}
	defer func() {
		if err := second.close(); err != nil {
			t.Error(err)
		}
	}()
	p.wait(`document.querySelector("#waiting").textContent.includes("open the address")`)
	loads := func() (n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, r := range p.requests {
			if r == "GET /console/orders" {
				n++
			}
		}
		return n
	}
	before := loads()
	p.do(evaluate("fetch(" + js(second.state().Console) + ").then(() => { window.__opened = true })"))
	p.wait(`document.querySelectorAll(".card").length === 2 && document.querySelector("#running").textContent === "Running"`)
	time.Sleep(300 * time.Millisecond)
	// The response to fetch is the page of orders, too.
	if n := loads() - before; n > 2 {
		t.Errorf("the page was loaded %d times", n-1)
	}
}
