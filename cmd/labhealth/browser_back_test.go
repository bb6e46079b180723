package main

import (
	"fmt"
	"strings"
	"testing"
)

// The forms of a live card return to the view in which it is put: all orders, those of a method, a
// search, older ones, and what was typed into the filter.
func TestBrowserBackFromLiveCard(t *testing.T) {
	t.Parallel()
	s, b := startOpenBox(t)
	user := s.server.AddUser("user-1")
	for range 90 {
		if _, err := s.server.AddOrder(user, s.server.LabTests.WalkIn); err != nil {
			t.Fatal(err)
		}
	}
	for _, view := range []struct{ name, path, typed, want string }{
		{"all", "/console/orders", "", "/console/orders"},
		{"method", "/console/orders?method=walk_in_test", "", "/console/orders?method=walk_in_test"},
		{"search", "/console/orders?q=lipid", "", "/console/orders?q=lipid"},
		{"search of a method", "/console/orders?method=walk_in_test&q=lipid+user-1", "", "/console/orders?method=walk_in_test&q=lipid+user-1"},
		{"older", "/console/orders?from=50&lane=received", "", "/console/orders?from=50&lane=received"},
		{"typed", "/console/orders?method=walk_in_test", "user-1 lipid", "/console/orders?method=walk_in_test&q=user-1+lipid"},
		{"typed over a search", "/console/orders?q=lipid", "user-1", "/console/orders?q=user-1"},
		{"cleared", "/console/orders?q=lipid", " ", "/console/orders"},
	} {
		p := openTab(t, b.URL, b.Console, 1440, 900)
		p.goTo(view.path)
		p.waitText("#running", "Running")
		p.wait(`document.querySelector(".card form.next")`)
		id := eval[string](p, `document.querySelector(".card form.next").closest(".card").id`)
		card := "#" + id
		before := eval[string](p, fmt.Sprintf("document.querySelector(%s).dataset.item", js(card)))
		order := s.server.Orders()[0]
		for _, o := range s.server.Orders() {
			if strings.HasSuffix(id, o.String()) {
				order = o
			}
		}
		if _, err := s.server.Advance(order); err != nil {
			t.Fatal(err)
		}
		// The page of older orders shows the next one in its place.
		p.wait(fmt.Sprintf("!document.querySelector(%s) || document.querySelector(%[1]s).dataset.item !== %s", js(card), js(before)))
		card = "#" + eval[string](p, `document.querySelector(".card form.next").closest(".card").id`)
		if view.typed != "" {
			p.do(evaluate(fmt.Sprintf(`{ const f = document.querySelector("[data-filter]"); f.value = %s; f.dispatchEvent(new Event("input", {bubbles: true})); }`, js(strings.TrimSpace(view.typed)))))
		}
		p.submit(func() { p.click(card + " form.next button") })
		if at := eval[string](p, "location.pathname + location.search"); at != view.want {
			t.Errorf("%s: the page is at %s, want %s", view.name, at, view.want)
		}
		// The theme is changed in the same place.
		p.submit(func() { p.click("[data-act=theme]") })
		if at := eval[string](p, "location.pathname + location.search"); at != view.want {
			t.Errorf("%s: after the theme, the page is at %s, want %s", view.name, at, view.want)
		}
	}
}

// A delivery that was opened in the list is still open after the theme was changed, and the page of
// a user keeps its span.
func TestBrowserBackFromOthers(t *testing.T) {
	t.Parallel()
	b := startBox(t, "--users", "3", "--orders", "1")
	p := openTab(t, b.URL, b.Console, 1440, 900)
	at := func() string { return eval[string](p, "location.pathname + location.search") }
	p.goTo("/console/deliveries?q=type%3Aglucose")
	p.waitText("#running", "Running")
	p.click("#rows li:nth-child(2) a")
	p.wait(`location.pathname !== "/console/deliveries" || location.search !== "?q=type%3Aglucose"`)
	want := at()
	p.submit(func() { p.click("[data-act=theme]") })
	if got := at(); got != want {
		t.Errorf("deliveries: the page is at %s, want %s", got, want)
	}
	p.goTo("/console/users")
	user := eval[string](p, `document.querySelector("#users a").getAttribute("href")`)
	want = user + "?as=values&day=2026-11-20&span=week"
	for _, form := range []string{"refresh", "summary"} {
		p.goTo(want)
		p.waitText("#running", "Running")
		p.submit(func() {
			p.do(evaluate(fmt.Sprintf(`document.querySelector("form[action$='/%s']").requestSubmit()`, form)))
		})
		if got := at(); got != want {
			t.Errorf("%s: the page is at %s, want %s", form, got, want)
		}
	}
	p.goTo("/console/users")
	p.do(evaluate(`{ const f = document.querySelector("[data-filter]"); f.value = "user"; f.dispatchEvent(new Event("input", {bubbles: true})); }`))
	p.submit(func() { p.do(evaluate(`document.querySelector("form[action$='/refresh']").requestSubmit()`)) })
	if got := at(); got != "/console/users?q=user" {
		t.Errorf("users: the page is at %s", got)
	}
}
