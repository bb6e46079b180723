package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// Plots are read by pointer and by keyboard, all at one time, also after new data has replaced
// them, and the data appears without reload. Dragging shows a part of the time.
func TestBrowserPlots(t *testing.T) {
	t.Parallel()
	b := startBox(t, "--users", "3", "--orders", "1")
	p := openTab(t, b.URL, b.Console, 1440, 900)
	p.goTo("/console/users?q=" + "freestyle_libre")
	p.submit(func() { p.click("#users a") })
	// The week before has a day without data. A week shows shorter gaps at some times only.
	for range 4 {
		p.submit(func() { p.click(`a[aria-label="Earlier"]`) })
	}
	p.wait(`document.querySelectorAll(".plot").length >= 3`)
	p.submit(func() { p.click(`nav[aria-label="Span"] a:nth-child(2)`) })
	p.wait(`document.querySelector(".plot[data-plot*=gaps] canvas")`)
	p.screenshot("users-week")
	p.submit(func() { p.click(`nav[aria-label="Span"] a:nth-child(1)`) })

	p.do(evaluate(`document.querySelector(".plot").focus()`))
	p.keys(kb.ArrowRight)
	p.wait(`[...document.querySelectorAll(".plot output")].every((o) => o.textContent.startsWith("12:00  "))`)
	p.keys(kb.ArrowLeft)
	p.wait(`[...document.querySelectorAll(".plot .rest")].every((e) => e.hidden)`)
	if text := eval[string](p, `document.querySelector(".plot output").textContent`); !strings.HasPrefix(text, "11:55  ") {
		t.Errorf("one step to the left of 12:00 is %q", text)
	}

	p.do(evaluate(`window.__same = true`))
	id := eval[string](p, `location.pathname.split("/").pop()`)
	day := eval[string](p, `new URLSearchParams(location.search).get("day")`)
	p.do(evaluate(fmt.Sprintf(`fetch("/console/users/%s/samples", {method: "POST", redirect: "manual", body: new URLSearchParams({resource: "hrv", n: "12", day: %q})})`, id, day)))
	p.waitText(".plot h3", "Heart rate variability")
	p.wait(`window.__same`)
	p.wait(`[...document.querySelectorAll(".plot output")].every((o) => o.textContent.startsWith("11:55  "))`)
	p.wait(`document.activeElement.matches(".plot")`)
	p.keys(kb.Escape)
	p.wait(`[...document.querySelectorAll(".plot")].every((e) => !e.querySelector(".rest").hidden && !e.querySelector("output").textContent)`)

	// Dragging from 06:00 to 12:00 shows this part of all plots: the pointer is then at 09:00.
	p.do(evaluate(`(async () => {
		const over = document.querySelector(".plot .u-over"), r = over.getBoundingClientRect();
		for (const [type, part, on] of [["mousemove", 0.25, over], ["mousedown", 0.25, over], ["mousemove", 0.5, over], ["mouseup", 0.5, document], ["pointermove", 0.5001, over]]) {
			on.dispatchEvent(new (type === "pointermove" ? PointerEvent : MouseEvent)(type, { clientX: r.left + r.width * part, clientY: r.top + 9, bubbles: true, button: 0, movementX: 1 }));
			await new Promise((done) => setTimeout(done, 50));
		}
	})()`))
	p.wait(`[...document.querySelectorAll(".plot output")].every((o) => o.textContent.startsWith("09:00  "))`)
}
