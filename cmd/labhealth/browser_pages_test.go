package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// pagesOf returns a path of each kind of page, which it finds by following the links from the
// first.
func (p *tab) pagesOf() []string {
	p.t.Helper()
	queue := []string{"/console/orders", "/console/users", "/console/deliveries", "/console/faults", "/console/requests"}
	seen := map[string]bool{}
	for _, path := range append(queue, "/console/") {
		seen[kindOf(path)] = true
	}
	for i := 0; i < len(queue) && i < 16; i++ {
		p.goTo(queue[i])
		for _, link := range eval[[]string](p, `[...document.querySelectorAll("a[href]")].filter((a) => !a.hasAttribute("download") && a.origin === location.origin && a.pathname.startsWith("/console/")).map((a) => a.pathname + a.search)`) {
			shape := kindOf(link)
			if !seen[shape] && strings.Count(link, "&") == 0 && !strings.HasSuffix(strings.Split(link, "?")[0], ".pdf") {
				seen[shape] = true
				queue = append(queue, link)
			}
		}
	}
	return queue
}

// kindOf returns what distinguishes the pages that have their own form: the path, and in the long
// form of the tests the names of the parameters.
func kindOf(link string) string {
	path, query, _ := strings.Cut(shapeOf(link), "?")
	if !long() {
		return path
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		path += " " + name
	}
	return path
}

// contrast returns the texts of the page whose contrast is below 4.5:1, and how many it has seen.
const contrast = `(() => {
  const canvas = document.createElement("canvas"); canvas.width = canvas.height = 1;
  const paint = canvas.getContext("2d", { willReadFrequently: true }), known = new Map();
  const rgba = (color) => {
    if (!known.has(color)) {
      paint.clearRect(0, 0, 1, 1); paint.fillStyle = "#000"; paint.fillStyle = color; paint.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = paint.getImageData(0, 0, 1, 1).data;
      known.set(color, [r, g, b, a / 255]);
    }
    return known.get(color);
  };
  const over = (top, bottom) => { const a = top[3]; return [0, 1, 2].map((i) => top[i] * a + bottom[i] * (1 - a)).concat(1); };
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (e) => {
    const layers = [];
    for (let x = e; x; x = x.parentElement) {
      const c = rgba(getComputedStyle(x).backgroundColor);
      if (c[3] > 0) layers.push(c);
      if (c[3] === 1) break;
    }
    return layers.reverse().reduce((below, c) => over(c, below), rgba("Canvas"));
  };
  const low = [];
  let n = 0;
  const check = (e, text, color, opacity) => {
    const below = ground(e), own = rgba(color), c = over([own[0], own[1], own[2], own[3] * opacity], below);
    const [a, b] = [light(c), light(below)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    n++;
    if (ratio < 4.495) low.push(ratio.toFixed(2) + " " + e.tagName.toLowerCase() + "." + (e.getAttribute("class") || "") + " " + text.trim().slice(0, 40));
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode, e = node.parentElement;
    if (!node.data.trim() || !e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || /^(SCRIPT|STYLE|OPTION|TITLE|DESC)$/i.test(e.tagName) || e.closest("[disabled], [aria-disabled=true], .sr")) continue;
    let opacity = 1;
    for (let x = e; x; x = x.parentElement) opacity *= +getComputedStyle(x).opacity;
    const style = getComputedStyle(e);
    check(e, node.data, e instanceof SVGElement ? style.fill : style.color, opacity);
  }
  for (const e of document.querySelectorAll("input, textarea")) {
    if (!e.checkVisibility() || e.disabled) continue;
    if (e.value && !/^(checkbox|radio|range|hidden)$/.test(e.type)) check(e, e.value, getComputedStyle(e).color, 1);
    else if (e.placeholder) check(e, e.placeholder, getComputedStyle(e, "::placeholder").color, +getComputedStyle(e, "::placeholder").opacity);
  }
  return { n, low };
})()`

const widest = `JSON.stringify([...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && getComputedStyle(e).position !== "fixed").slice(0, 5).map((e) => e.tagName + "." + e.getAttribute("class")))`

func long() bool { return os.Getenv("LABHEALTH_TEST_LONG") != "" }

// Every text of every page can be read, in both themes and at both widths, also with every
// menu open, and no page is wider than the window. The short form looks at each page twice.
func TestBrowserPages(t *testing.T) {
	t.Parallel()
	size := []string{"--users", "2", "--orders", "6"}
	if long() {
		size = []string{"--users", "3", "--orders", "20"}
	}
	b := startBox(t, size...)
	b.call("GET", "/v2/user/", "", nil) // for the page of requests
	wide := openTab(t, b.URL, b.Console, 1440, 900)
	pages := wide.pagesOf()
	texts := 0
	for _, size := range []struct{ width, height int64 }{{1440, 900}, {390, 844}} {
		p := wide
		if size.width != 1440 {
			p = openTab(t, b.URL, b.Console, size.width, size.height)
		}
		for _, path := range pages {
			p.goTo(path)
			if over := eval[int](p, `document.scrollingElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("%s at %d: %d pixels too wide: %s", path, size.width, over, eval[string](p, widest))
			}
			for _, theme := range []string{"light", "dark"} {
				if !long() && (theme == "dark") != (size.width == 390) {
					continue
				}
				p.prefer(theme)
				if theme == "dark" { // all that can be opened is open for the second
					p.do(evaluate(`document.querySelectorAll("details").forEach((d) => { d.open = true }); document.querySelector("#help")?.showPopover()`))
				}
				name := fmt.Sprintf("%s at %d, %s", path, size.width, theme)
				if scheme := eval[string](p, `getComputedStyle(document.body).backgroundColor`); (scheme == "rgb(13, 16, 18)") != (theme == "dark") {
					t.Errorf("%s: the background is %s", name, scheme)
				}
				p.screenshot(fmt.Sprintf("%s-%d-%s", strings.NewReplacer("/", "_", "?", "_", "&", "_").Replace(strings.TrimPrefix(path, "/console/")), size.width, theme))
				texts += p.checkContrast(name)
			}
		}
	}
	t.Logf("%d texts on %d pages: %s", texts, len(pages), strings.Join(pages, " "))
	if len(pages) < 8 {
		t.Errorf("only %d pages", len(pages))
	}
}

func (p *tab) checkContrast(name string) (seen int) {
	p.t.Helper()
	var found struct {
		N   int
		Low []string
	}
	if err := json.Unmarshal([]byte(eval[string](p, "JSON.stringify("+contrast+")")), &found); err != nil {
		p.t.Fatal(err)
	}
	if len(found.Low) > 0 {
		p.t.Errorf("%s: the contrast of %d texts is below 4.5: %s", name, len(found.Low), strings.Join(found.Low[:min(5, len(found.Low))], "; "))
	}
	return found.N
}

// Every page can be read without script, and its actions are forms.
func TestBrowserWithoutScript(t *testing.T) {
	t.Parallel()
	b := startBox(t, "--users", "2", "--orders", "5")
	p := openTab(t, b.URL, b.Console, 1440, 900)
	pages := p.pagesOf()
	send(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	for _, path := range pages {
		p.goTo(path)
		if eval[bool](p, `document.documentElement.classList.contains("js")`) {
			t.Fatal("the script runs")
		}
		if n := eval[int](p, `document.querySelector("main").innerText.trim().length`); n < 20 {
			t.Errorf("%s has %d characters", path, n)
		}
		if dead := eval[string](p, `[...document.querySelectorAll("button, .btn")].filter((e) => e.checkVisibility() && !e.form && !e.href && !e.hasAttribute("popovertarget") && !e.closest("summary")).map((e) => e.outerHTML).join("\n")`); dead != "" {
			t.Errorf("%s: these do nothing without script: %s", path, dead)
		}
	}
	p.goTo("/console/orders")
	before := eval[string](p, `document.querySelector("#received-cards [data-item] form button, [data-item] form button").closest("[data-item]").innerText`)
	p.submit(func() { p.click("[data-item] form button") })
	if after := eval[string](p, `document.body.innerText`); strings.Contains(after, before) {
		t.Errorf("the first card has not moved: %s", before)
	}
}

// TestPicture draws the picture of the README:
//
//	LABHEALTH_TEST_PICTURE=../../docs/console.png go test -run TestPicture .
func TestPicture(t *testing.T) {
	name := os.Getenv("LABHEALTH_TEST_PICTURE")
	if name == "" {
		t.Skip("skipped: LABHEALTH_TEST_PICTURE names no file")
	}
	b := startBox(t, "--users", "10", "--orders", "30")
	p := openTab(t, b.URL, b.Console, 1440, 900)
	p.prefer("light")
	p.waitText("#running", "Running")
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if len(png) > 300_000 {
		t.Errorf("%d bytes", len(png))
	}
	if err := os.WriteFile(name, png, 0o644); err != nil {
		t.Fatal(err)
	}
}
