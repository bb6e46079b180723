package main

import "testing"

// TestBrowserDeliveries moves through deliveries by keyboard, and replays one while the list is
// paused: it waits behind the pill, and is a duplicate.
func TestBrowserDeliveries(t *testing.T) {
	t.Parallel()
	b := startBox(t, "--users", "2", "--orders", "3")
	p := openTab(t, b.URL, b.Console, 1440, 900)
	p.goTo("/console/deliveries")
	p.wait(`document.querySelectorAll("#rows > li").length > 5`)
	p.waitText("#running", "Running")

	p.do(evaluate("window.__same = true"))
	p.keys("j", "j")
	want := eval[string](p, `document.querySelector("#rows .at a").getAttribute("href")`)
	p.keys("\r")
	p.wait(`location.pathname === ` + js(want) + ` && document.querySelector("#rows .on a").getAttribute("href") === ` + js(want))
	p.click(".tabs a:last-child")
	p.wait(`location.search === "?tab=body" && document.querySelector("#body .tabs [aria-current]").textContent === "Body"`)
	if !eval[bool](p, "window.__same === true") {
		t.Error("the list was loaded again")
	}
	p.do(evaluate("history.back()"))
	p.wait(`location.search === "" && document.querySelector("#body .tabs [aria-current]")`)

	p.keys("p")
	p.waitText("#live", "Paused")
	before := eval[int](p, `document.querySelectorAll("#rows > li").length`)
	p.do(evaluate(`fetch(document.querySelector("#detail form[action$=replay]").action, { method: "POST", body: new URLSearchParams({ as: "again" }), redirect: "manual" })`))
	p.waitText(".pill", "1 new")
	if now := eval[int](p, `document.querySelectorAll("#rows > li").length`); now != before {
		t.Errorf("%d rows while the list is paused, not %d", now, before)
	}
	p.click(".pill")
	p.waitText("#rows > li:first-child", "duplicate of #")
	p.wait(`document.querySelector(".pill").hidden`)
	p.click("#rows > li:first-child a")
	p.waitText(".verdict", "Verified, and a duplicate")

	p.keys("/")
	if at := eval[string](p, "document.activeElement.name"); at != "q" {
		t.Errorf("/ leads to %q", at)
	}
	p.screenshot("deliveries")
}
