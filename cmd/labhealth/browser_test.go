package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// The tests in a browser need Chromium or Chrome, at LABHEALTH_TEST_BROWSER or in PATH. They share
// one process, in which each tab has its own cookies.

var theBrowser struct {
	sync.Mutex
	ctx    context.Context
	cancel func()
	err    error
}

// patience is how long a page may take for what it must do, on a machine that is busy.
const patience = 3 * time.Minute

var browserNames = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"}

func browserPath() string {
	if path := os.Getenv("LABHEALTH_TEST_BROWSER"); path != "" {
		return path
	}
	for _, name := range browserNames {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// theBrowserContext returns the browser, which the first call starts.
func theBrowserContext(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped in short mode: a browser")
	}
	path := browserPath()
	if path == "" {
		t.Skip("skipped: there is no browser (apt-get install chromium, or set LABHEALTH_TEST_BROWSER)")
	}
	b := &theBrowser
	b.Lock()
	defer b.Unlock()
	if b.ctx == nil && b.err == nil {
		opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WSURLReadTimeout(2*time.Minute),
			chromedp.Flag("disable-gpu", true))
		if os.Geteuid() == 0 {
			opts = append(opts, chromedp.NoSandbox) // Chromium's own sandbox does not run as root
		}
		alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
		ctx, cancel := chromedp.NewContext(alloc)
		b.ctx, b.cancel = ctx, func() { chromedp.Cancel(ctx); cancel(); cancelAlloc() }
		b.err = chromedp.Do(ctx)
	}
	if b.err != nil {
		t.Fatalf("%s does not start: %v", path, b.err)
	}
	return b.ctx
}

// closeBrowser ends the process.
func closeBrowser() {
	theBrowser.Lock()
	defer theBrowser.Unlock()
	if theBrowser.cancel != nil {
		theBrowser.cancel()
	}
}

// tab is a page in the browser. When the test completes, it fails if the page asked another host,
// opened a dialog, violated the policy, or had an error in its script.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string // of the sandbox

	mu       sync.Mutex
	problems []string
	expected []string // parts of problems that the test provokes
	requests []string
}

// openTab opens the console of a sandbox by the address that it printed, in a window of a width.
func openTab(t *testing.T, base, console string, width, height int64) *tab {
	t.Helper()
	p := newTab(t, base, width, height)
	p.goTo(strings.TrimPrefix(console, base))
	return p
}

func newTab(t *testing.T, base string, width, height int64) *tab {
	t.Helper()
	parent := theBrowserContext(t)
	p := &tab{t: t, base: base}
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithNewBrowserContext(), chromedp.WithListener(p.observe))
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	timed, cancelTimed := context.WithTimeout(ctx, 4*patience)
	p.ctx = timed
	t.Cleanup(func() {
		p.check()
		cancelTimed()
		cancel()
	})
	send(p, network.Enable, network.EnableParams{})
	// Tabs of other tests do not take the focus.
	send(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	send(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600,
	})
	return p
}

// observe notes what no page of the console may do.
func (p *tab) observe(event any) {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		switch {
		case err != nil || u.Scheme == "data" || u.Scheme == "about":
		case u.Scheme+"://"+u.Host != p.base:
			p.problem("a request to another host: " + e.Request.URL)
		default:
			p.mu.Lock()
			p.requests = append(p.requests, e.Request.Method+" "+u.RequestURI())
			p.mu.Unlock()
		}
	case *page.EventJavascriptDialogOpening:
		p.problem("a dialog: " + e.Message)
		go chromedp.Call(p.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
	case *runtime.EventExceptionThrown:
		p.problem("an exception: " + e.ExceptionDetails.Text + consoleText([]*runtime.RemoteObject{e.ExceptionDetails.Exception}))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			p.problem(fmt.Sprint("console: ", e.Type, " ", consoleText(e.Args)))
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError || e.Entry.Source == cdplog.EntrySourceSecurity {
			p.problem("log: " + e.Entry.Text + " " + e.Entry.URL)
		}
	}
}

func consoleText(args []*runtime.RemoteObject) string {
	var texts []string
	for _, arg := range args {
		if arg == nil {
			continue
		}
		texts = append(texts, string(arg.Value)+arg.Description)
	}
	return strings.Join(texts, " ")
}

func (p *tab) problem(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, text)
}

// expect permits problems that contain a text.
func (p *tab) expect(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, text)
}

func (p *tab) check() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		if !slices.ContainsFunc(p.expected, func(text string) bool { return strings.Contains(problem, text) }) {
			p.t.Errorf("the page had %s", problem)
		}
	}
}

func (p *tab) do(action chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, action); err != nil {
		p.t.Fatal(err)
	}
}

// send sends a command of the protocol.
func send[P, R any](p *tab, cmd cdp.Command[P, R], params P) R {
	p.t.Helper()
	result, err := chromedp.Call(p.ctx, cmd, params)
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

// goTo opens a path of the console.
func (p *tab) goTo(path string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.base + path))
}

// eval returns the value of an expression in the page.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// wait waits until an expression is true, also across pages.
func (p *tab) wait(expression string) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		ok, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && ok {
			return
		}
		if time.Now().After(deadline) || p.ctx.Err() != nil {
			p.t.Fatalf("it never became true: %s (error: %v)\n%s", expression, err, p.describe())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// waitText waits until an element contains a text.
func (p *tab) waitText(selector, text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("[...document.querySelectorAll(%s)].some((e) => e.textContent.replace(/\\s+/g, ' ').includes(%s))", js(selector), js(text)))
}

// describe returns where the page is and what it shows.
func (p *tab) describe() string {
	text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText.slice(0, 3000)"))
	return text
}

// click clicks an element, as a user does: it must be visible.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.wait("document.querySelector(" + js(selector) + ")")
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible)); err != nil {
		p.t.Fatalf("cannot click %s: %v\n%s", selector, err, p.describe())
	}
}

// keys presses keys, of which kb has the special ones.
func (p *tab) keys(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		p.do(chromedp.KeyEvent(key))
	}
}

// submit runs an action that leads to another page, and waits for it.
func (p *tab) submit(action func()) {
	p.t.Helper()
	p.do(chromedp.Evaluate[chromedp.Void]("window.__before = true"))
	action()
	p.wait("!window.__before && document.readyState === 'complete'")
}

// screenshot writes a picture for whoever looks at it, if LABHEALTH_TEST_SHOTS is a directory.
func (p *tab) screenshot(name string) {
	dir := os.Getenv("LABHEALTH_TEST_SHOTS")
	if dir == "" {
		return
	}
	p.t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/"+name+".png", png, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// js returns a string as an expression of JavaScript.
func js(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// prefer sets the theme of the system.
func (p *tab) prefer(theme string) {
	p.t.Helper()
	send(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		// A color that is still in transition has no contrast of its own.
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
}

// A tab reports what no page may do.
func TestBrowserObserves(t *testing.T) {
	t.Parallel()
	b := startBox(t, "--users", "0", "--orders", "0")
	p := openTab(t, b.URL, b.Console, 800, 600)
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	p.do(chromedp.Evaluate[chromedp.Void](`console.error("planted"), setTimeout(() => { throw new Error("thrown") }), setTimeout(() => alert("opened"))`))
	p.do(chromedp.Evaluate[chromedp.Void](`document.body.insertAdjacentHTML("beforeend", "<p style='color:red' onclick='alert(1)'>x</p>")`))
	p.do(chromedp.Navigate(other.URL + "/elsewhere"))
	for _, want := range []string{"console: error \"planted\"", "thrown", "a dialog: opened", "Content Security Policy", "another host: " + other.URL} {
		deadline := time.Now().Add(patience)
		for !p.had(want) {
			if time.Now().After(deadline) {
				t.Fatalf("%q is not in %q", want, p.problems)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	p.expect("")
}

// had reports whether a problem contains a text.
func (p *tab) had(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.problems, func(problem string) bool { return strings.Contains(problem, text) })
}

// The console opens with the printed address, which it leaves at once, and shows its pages.
func TestBrowserOpen(t *testing.T) {
	t.Parallel()
	b := startBox(t, "--users", "2", "--orders", "3")
	p := openTab(t, b.URL, b.Console, 1440, 900)
	if at := eval[string](p, "location.href"); at != b.URL+"/console/orders" {
		t.Errorf("the page is at %s", at)
	}
	p.waitText("#running", "Running")
	for _, name := range []string{"users", "deliveries", "faults", "requests", "orders"} {
		p.submit(func() { p.click(`nav a[href="/console/` + name + `"]`) })
		if current := eval[string](p, `document.querySelector("nav [aria-current=page]").getAttribute("href")`); current != "/console/"+name {
			t.Errorf("%s: current is %s", name, current)
		}
		p.screenshot(name)
	}
	if cookies := eval[string](p, "document.cookie"); cookies != "" {
		t.Errorf("a script can read the cookies %q", cookies)
	}
	if code := b.stop(); code != 0 {
		t.Errorf("exit code %d with an open page", code)
	}
	p.expect("ERR_") // the connection of the page
	p.waitText("#running", "Stopped")
}

// evaluate is an action that runs a script whose value does not matter.
func evaluate(script string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](script)
}
