package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// foreignScript tries everything that a website can do with the console of a user who is logged in.
// What it could read is in window.read.
const foreignScript = `
window.read = [];
const tried = [], base = "BASE", note = (name, value) => window.read.push(name + ": " + String(value).slice(0, 200));
const actions = ["/console/theme", "/console/orders", "/console/orders/fill", "/console/users", "/console/deliveries/forward", "/console/deliveries/replay",
  "/console/deliveries/1/replay", "/console/deliveries/1/reveal", "/console/deliveries/1/edit", "/console/requests/clear", "/console/requests/1/again", "/console/faults"];
const body = "theme=dark&url=http://attacker.example/&client_user_id=evil&as=again&confirm=yes&users=1&orders=1&body={}&q=";
const form = (target, action, method, enctype) => {
  const f = document.createElement("form");
  f.action = base + action; f.method = method; f.enctype = enctype; f.target = target;
  for (const pair of body.split("&")) { const i = document.createElement("input"); i.name = pair.split("=")[0]; i.value = pair.slice(i.name.length + 1); f.append(i); }
  document.body.append(f);
  HTMLFormElement.prototype.submit.call(f);
};
const frame = (attributes) => { const f = document.createElement("iframe"); Object.assign(f, attributes); document.body.append(f); return f; };
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
(async () => {
  for (const path of [...actions, "/", "/console/", "/console/orders", "/console/live?since=", "/console/assets/console.js", "/console/proof", "/v2/user/"]) {
    for (const options of [{ mode: "no-cors" }, { mode: "cors" }, { mode: "no-cors", method: "POST", body: new URLSearchParams(body) },
      { mode: "cors", method: "POST", body: new URLSearchParams(body) }, { mode: "no-cors", method: "HEAD" }, { mode: "no-cors", method: "POST", body: "x", referrerPolicy: "no-referrer" }]) {
      const stop = new AbortController();
      setTimeout(() => stop.abort(), 1500);
      tried.push(fetch(base + path, { credentials: "include", signal: stop.signal, ...options }).then(async (r) => {
        const text = await r.text();
        if (r.type !== "opaque" && r.type !== "opaqueredirect") note("fetch " + path, r.status + text);
      }, () => {}));
    }
    navigator.sendBeacon(base + path, new URLSearchParams(body));
    tried.push(new Promise((done) => { const i = new Image(); i.onload = () => { note("img " + path, i.width); done(); }; i.onerror = done; i.src = base + path; setTimeout(done, 1500); }));
    tried.push(new Promise((done) => { const s = document.createElement("script"); s.onload = () => { note("script " + path, ""); done(); }; s.onerror = done; s.src = base + path; document.head.append(s); setTimeout(done, 1500); }));
    tried.push(new Promise((done) => { const l = document.createElement("link"); l.rel = "stylesheet"; l.onload = () => { note("css " + path, ""); done(); }; l.onerror = done; l.href = base + path; document.head.append(l); setTimeout(done, 1500); }));
  }
  const events = new EventSource(base + "/console/live?since=", { withCredentials: true });
  events.onopen = () => note("EventSource", "open");
  for (const name of ["ready", "changed"]) events.addEventListener(name, (e) => note("EventSource", e.data));
  const socket = new WebSocket(base.replace("http", "ws") + "/console/live?since=");
  socket.onopen = () => note("WebSocket", "open");
  const framed = frame({ src: base + "/console/orders" });
  framed.onload = () => { try { note("iframe", framed.contentDocument.body.innerText); } catch { } };
  for (const [n, action] of actions.entries()) {
    for (const enctype of ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"]) {
      const name = "f" + n + enctype.length;
      frame({ name });
      form(name, action, "post", enctype);
    }
  }
  // With a redirect that repeats the POST, and from a document without an origin.
  frame({ name: "redirected" });
  form("redirected", "", "post", "application/x-www-form-urlencoded");
  const own = document.createElement("form");
  own.action = "/redirect"; own.method = "post"; own.target = "redirected"; own.innerHTML = "<input name=url value=http://attacker.example/><input name=client_user_id value=evil>";
  document.body.append(own);
  own.submit();
  frame({ sandbox: "allow-scripts allow-forms", srcdoc: "<form action='" + base + "/console/users' method=post><input name=client_user_id value=evil></form><script>document.forms[0].submit()</scr" + "ipt>" });
  frame({ src: "data:text/html,<form action='" + base + "/console/users' method=post><input name=client_user_id value=evil></form><script>document.forms[0].submit()</scr" + "ipt>" });
  const opened = open(base + "/console/orders");
  await Promise.allSettled(tried);
  await sleep(1500);
  try { if (opened) note("window", opened.document.body.innerText); } catch { }
  try { if (opened && opened.length) note("frames of a window", opened.length); } catch { }
  events.close();
  document.title = "tried";
})();
`

// A website on another port of this machine, to which the browser sends the cookies of the console,
// changes nothing and reads nothing.
func TestBrowserForeignPage(t *testing.T) {
	t.Parallel()
	s, b := startOpenBox(t)
	s.server.AddUser("user-1")
	if err := s.server.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	attacker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, b.URL+"/console/users", http.StatusTemporaryRedirect)
		default:
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<!doctype html><title>trying</title><body><script>"+strings.ReplaceAll(foreignScript, "BASE", b.URL)+"</script>")
		}
	}))
	defer attacker.Close()
	p := openTab(t, b.URL, b.Console, 1200, 800)
	p.expect("") // all that the browser rejects
	p.waitText("#running", "Running")
	before := dump(t, s)
	theme := eval[string](p, `document.documentElement.dataset.theme || ""`)
	p.do(evaluate("location.href = " + js(attacker.URL+"/")))
	p.wait(`document.title === "tried"`)
	read := eval[[]string](p, "window.read")
	for _, line := range read {
		t.Errorf("the website has read %s", line)
	}
	after := dump(t, s)
	// Requests of the attacker to the service itself are in its log, and were rejected.
	withoutCount := func(text string) string {
		cut := strings.LastIndex(text, "\n")
		var requests, deliveries int
		var url string
		fmt.Sscanf(text[cut+1:], "%d requests, %d deliveries, forwards to %q", &requests, &deliveries, &url)
		return fmt.Sprint(text[:cut], deliveries, url)
	}
	if withoutCount(before) != withoutCount(after) {
		t.Errorf("something has changed: %.300s", after)
	}
	p.goTo("/console/orders")
	p.waitText("#running", "Running")
	if now := eval[string](p, `document.documentElement.dataset.theme || ""`); now != theme {
		t.Errorf("the theme is %q", now)
	}
	if text := eval[string](p, "document.body.innerText"); strings.Contains(text, "evil") {
		t.Errorf("the page shows %s", text)
	}
}
