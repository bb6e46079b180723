package attack

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// field is one header field.
type field struct{ name, value string }

// body is what a response has in place of the body that fits the call.
type body struct {
	name, contentType, text string
	// doubtful bodies may be those of a proxy, so that a 2xx with one need not be committed.
	doubtful bool
}

var bodies = []body{
	{name: "HTML", contentType: "text/html; charset=utf-8", text: "<html><body>" + patientCanary + " signed in</body></html>", doubtful: true},
	{name: "text", contentType: "text/plain", text: "OK " + patientCanary, doubtful: true},
	{name: "empty", contentType: "application/json"},
	{name: "null", contentType: "application/json", text: "null"},
	{name: "other object", contentType: "application/json", text: `{"detail":"` + patientCanary + `"}`},
	{name: "list", contentType: "application/json", text: `["` + patientCanary + `"]`},
	{name: "cut", contentType: "application/json", text: `{"order":{"id":"3f0c9a52-7d1e-`},
	{name: "two", contentType: "application/json", text: `{} {}`},
	{name: "deep", contentType: "application/json", text: strings.Repeat("[", 20_000)},
	{name: "not UTF-8", contentType: "application/json", text: "{\"a\":\"\xff" + patientCanary + "\"}"},
	{name: "large", contentType: "application/json", text: `{"a":"` + strings.Repeat("x", 100_000) + `"}`},
	{name: "validation", contentType: "application/json",
		text: `{"detail":[{"loc":["body","` + patientCanary + `"],"msg":"` + patientCanary + `","type":"` + patientCanary + `"}]}`},
}

func bodyOf(name string) *body {
	for i := range bodies {
		if bodies[i].name == name {
			return &bodies[i]
		}
	}
	return nil
}

// accepts reports whether a client may treat the response as proof that the request was processed.
func (p responsePlan) accepts() bool {
	b := bodyOf(p.Body)
	return p.status() >= 200 && p.status() <= 299 && (b == nil || !b.doubtful)
}

// rejects reports whether a client may treat the response as proof that the request was not
// processed.
func (p responsePlan) rejects() bool {
	return p.status() >= 400 && p.status() <= 499 && p.status() != http.StatusRequestTimeout
}

func (p responsePlan) status() int {
	if p.Status == 0 {
		return http.StatusOK
	}
	return p.Status
}

// received is called by a server when it has read the header of a request, and again when it has
// read the body. It commits when the response demands it.
func (a *arrival) received(plan responsePlan, complete bool) {
	plan = a.honest(plan)
	a.expect(plan)
	switch {
	case plan.rejects(), plan.Commit == commitNever && !plan.accepts():
	case plan.Commit == commitAtHeader, complete && plan.Commit != commitLate:
		a.commit()
	}
}

// expect records the response that a request is to get.
func (a *arrival) expect(plan responsePlan) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if a.call >= 0 {
		r := &a.w.calls[a.call].received[a.n-1]
		r.status, r.retryAfter = plan.status(), plan.RetryAfter
	}
}

// over is called by a server when it has sent the response, or given up to.
func (a *arrival) over(plan responsePlan) {
	plan = a.honest(plan)
	if plan.Commit == commitLate && !plan.rejects() {
		a.commit()
	}
}

// respond returns the response to a request. It commits what a response that accepts must have
// committed.
func (a *arrival) respond(plan responsePlan) (status int, header []field, content []byte) {
	plan = a.honest(plan)
	if plan.accepts() {
		a.commit()
	}
	row := a.row()
	header = []field{{"Content-Type", row.contentType()}}
	content = []byte(a.pageBody(row.body(a.mark)))
	if b := bodyOf(plan.Body); b != nil {
		header[0].value = b.contentType
		content = []byte(b.text)
	} else if !plan.accepts() {
		header[0].value = "application/json"
		content = fmt.Appendf(nil, `{"detail":"%s %s"}`, patientCanary, a.mark)
	}
	if plan.RetryAfter != "" {
		header = append(header, field{"Retry-After", plan.RetryAfter})
	}
	if plan.Location != "" {
		header = append(header, field{"Location", plan.Location})
	}
	if plan.status() == http.StatusNoContent || plan.status() == http.StatusNotModified || a.method == http.MethodHead {
		content = nil
	}
	return plan.status(), header, content
}

// pageOf returns the page that a path asks for.
func pageOf(path string) int {
	_, after, _ := strings.Cut(path, "cursor=page-")
	digits := strings.FieldsFunc(after, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 1
	}
	n, err := strconv.Atoi(digits[0])
	if err != nil {
		return 1
	}
	return n
}

// pageBody returns the body of the requested page of a list, of which text is that of the only one.
func (a *arrival) pageBody(text string) string {
	if a.call < 0 || !a.row().hasCursor() {
		return text
	}
	if a.page < a.w.plan.Calls[a.call].Pages {
		text = strings.Replace(text, noCursor, fmt.Sprintf(`"next_cursor":"page-%d"`, a.page+1), 1)
	}
	id := anID
	id[0] += byte(a.page - 1)
	return strings.ReplaceAll(text, anID.String(), id.String())
}

// row returns the row of the call of a request.
func (a *arrival) row() *call {
	if a.call < 0 {
		return &call{}
	}
	return callNamed(a.w.plan.Calls[a.call].Method)
}
