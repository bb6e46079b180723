package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// Limits of the page of requests.
const (
	requestsShown = 100
	scriptSize    = 64 << 20 // bytes of the bodies in a script
	resendTimeout = 5 * time.Second
)

func (c *Console) requestsRoutes() {
	if !c.sandbox() {
		return
	}
	c.mux.HandleFunc("GET /console/requests", c.requestsPage)
	c.mux.HandleFunc("GET /console/requests/{number}", c.requestsPage)
	c.mux.HandleFunc("POST /console/requests/{number}/reveal", c.requestsPage)
	c.mux.HandleFunc("POST /console/requests/{number}/curl", c.requestCurl)
	c.mux.HandleFunc("POST /console/requests/{number}/again", c.sendRequestAgain)
	c.mux.HandleFunc("POST /console/requests/script", c.requestScript)
	c.mux.HandleFunc("POST /console/requests/clear", c.clearRequests)
}

// requestQuery is what the address of the page selects.
type requestQuery struct {
	Q, Is, As string
	Before    int
}

func requestQueryOf(r *http.Request) requestQuery {
	q := requestQuery{Q: strings.TrimSpace(r.FormValue("q")), Is: r.FormValue("is"), As: r.FormValue("as")}
	if !slices.ContainsFunc(requestChips, func(chip requestChip) bool { return chip.is == q.Is }) {
		q.Is = ""
	}
	if q.As != "go" && q.As != "http" {
		q.As = ""
	}
	q.Before, _ = strconv.Atoi(r.FormValue("before"))
	return q
}

// path returns the address of the page, or of one request beside the list.
func (q requestQuery) path(number int) string {
	path := "/console/requests"
	if number > 0 {
		path += "/" + strconv.Itoa(number)
	}
	v := url.Values{}
	for name, value := range map[string]string{"q": q.Q, "is": q.Is, "as": q.As} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Before > 0 {
		v.Set("before", strconv.Itoa(q.Before))
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// requestChip is a selection of requests.
type requestChip struct {
	is, name string
	match    func(*requestRecord) bool
}

var requestChips = []requestChip{
	{"", "All", func(*requestRecord) bool { return true }},
	{"writes", "Writes", func(r *requestRecord) bool { return !r.IsRead() }},
	{"rejected", "Rejected", (*requestRecord).Rejected},
	{"fault", "Met a fault", func(r *requestRecord) bool { return r.Faulted }},
}

// requestsView is the data of the template requests.
type requestsView struct {
	Query   requestQuery
	Total   int
	Faulted int
	Chips   []chipView
	Rows    []requestRow
	Older   string // address of the next rows
	Latest  string // address of the first rows, if these are others
	Detail  *requestDetail
	Try     string
}

type chipView struct {
	Name, Path string
	Count      int
	Current    bool
}

// requestRow is a row of the list.
type requestRow struct {
	*requestRecord
	Address string
	On      bool
}

// StatusText is the status, or the fault that replaced the response.
func (r *requestRecord) StatusText() string {
	if r.Status == 0 {
		return "fault"
	}
	return strconv.Itoa(r.Status)
}

// Tone is the color of the status.
func (r *requestRecord) Tone() string {
	switch {
	case r.Faulted:
		return "warn"
	case r.Rejected():
		return "bad"
	}
	return "ok"
}

// Duration is how long the request took.
func (r *requestRecord) Duration() string {
	if r.Took < time.Millisecond {
		return "< 1 ms"
	}
	return number(int(r.Took.Milliseconds())) + " ms"
}

// Summary is a few words about the request.
func (r *requestRecord) Summary() string {
	switch {
	case r.Status == 0:
		return "not processed"
	case r.Note != "":
		return r.Note
	case len(r.Orders) == 0 && r.Label != "":
		return r.Label
	}
	return ""
}

func (c *Console) requestsPage(w http.ResponseWriter, r *http.Request) {
	q := requestQueryOf(r)
	records := c.faults.log.all(c.Server)
	view := requestsView{Query: q, Total: len(records), Try: c.tryCommand()}
	words := strings.Fields(strings.ToLower(q.Q))
	matched := make([]*requestRecord, 0, len(records))
	for _, rec := range records {
		if rec.Faulted {
			view.Faulted++
		}
		if matchesWords(rec.text, words) {
			matched = append(matched, rec)
		}
	}
	shown := view.addChips(matched)
	detail := c.selectRequest(r, shown)
	if detail < 0 {
		http.NotFound(w, r)
		return
	}
	view.addRows(shown, detail)
	p := page{Title: "Requests", Current: "requests", Live: "requests", Self: q.path(detail)}
	if r.PathValue("number") == "" && detail > 0 {
		p.Self = withParameter(q.path(0), shownParameterName, strconv.Itoa(detail))
	}
	if detail > 0 {
		d, ok := c.requestDetail(r, q, detail)
		if !ok && r.PathValue("number") != "" {
			c.back(w, r, q.path(0), "warn", "The service does not keep this request any more.")
			return
		}
		view.Detail = d
	}
	p.Data = &view
	c.render(w, r, "requests", p)
}

func matchesWords(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// addChips adds the chips with their counts, and returns the records that the current one selects.
func (v *requestsView) addChips(records []*requestRecord) (shown []*requestRecord) {
	for _, chip := range requestChips {
		q := v.Query
		q.Is, q.Before = chip.is, 0
		view := chipView{Name: chip.name, Path: q.path(0), Current: chip.is == v.Query.Is}
		for _, rec := range records {
			if !chip.match(rec) {
				continue
			}
			view.Count++
			if view.Current {
				shown = append(shown, rec)
			}
		}
		v.Chips = append(v.Chips, view)
	}
	return shown
}

// addRows adds the latest rows, or those before Query.Before.
func (v *requestsView) addRows(records []*requestRecord, detail int) {
	if v.Query.Before > 0 {
		i, _ := slices.BinarySearchFunc(records, v.Query.Before, func(r *requestRecord, n int) int { return cmp.Compare(r.Number, n) })
		records = records[:i]
		q := v.Query
		q.Before = 0
		v.Latest = q.path(0)
	}
	for _, rec := range slices.Backward(records) {
		if len(v.Rows) == requestsShown {
			q := v.Query
			q.Before = v.Rows[requestsShown-1].Number
			v.Older = q.path(0)
			return
		}
		v.Rows = append(v.Rows, requestRow{rec, v.Query.path(rec.Number), rec.Number == detail})
	}
}

// selectRequest returns the number of the request that is shown: that of the address or the latest,
// 0 if there is none, or -1 if the address is wrong.
func (c *Console) selectRequest(r *http.Request, shown []*requestRecord) int {
	if text := r.PathValue("number"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return -1
		}
		return n
	}
	if n, err := strconv.Atoi(r.FormValue(shownParameterName)); err == nil && n > 0 {
		return n
	}
	if len(shown) == 0 {
		return 0
	}
	return shown[len(shown)-1].Number
}

// requestDetail is the data of the template request.
type requestDetail struct {
	*requestRecord
	Query     requestQuery
	Addressed bool // the address has the number
	Revealed  bool
	Target    string
	Tabs      []chipView
	Head      []string // lines before the body
	Tail      []string // after the body
	Binary    bool     // the body is in base64 and not shown
	Body      jsonView
	Response  jsonView
	Document  string // instead of Response
	Problems  []problem
}

// About names the operation, unless the target does, and what the request is about.
func (d *requestDetail) About() string {
	switch about := d.Operation; {
	case about == "":
		return strings.TrimSuffix("No such operation, "+d.Label, ", ")
	case about == d.Method+" "+d.Target && d.Label != "":
		return d.Label
	default:
		return strings.TrimSuffix(about+", "+d.Label, ", ")
	}
}

// problem is a field that the service rejected.
type problem struct{ Field, Text string }

// request returns a request that the service still has.
func (c *Console) request(n int) (labhealthtest.Request, bool) {
	requests := c.Server.Requests()
	i, ok := slices.BinarySearchFunc(requests, n, func(r labhealthtest.Request, n int) int { return cmp.Compare(r.Number, n) })
	if !ok {
		return labhealthtest.Request{}, false
	}
	return requests[i], true
}

func (c *Console) requestDetail(r *http.Request, q requestQuery, n int) (*requestDetail, bool) {
	received, ok := c.request(n)
	rec := c.faults.log.get(n)
	if !ok || rec == nil {
		return nil, false
	}
	d := &requestDetail{requestRecord: rec, Query: q, Addressed: r.PathValue("number") != "", Revealed: r.Method == http.MethodPost}
	d.Target = rec.Path
	if d.Revealed {
		d.Target = clip(received.Path, 4000)
	}
	for _, tab := range []struct{ as, name string }{{"", "curl"}, {"go", "Go"}, {"http", "HTTP"}} {
		query := q
		query.As = tab.as
		d.Tabs = append(d.Tabs, chipView{Name: tab.name, Path: query.path(n), Current: tab.as == q.As})
	}
	d.addCode(c.Server.URL, received)
	d.addResponse(received)
	return d, true
}

// addCode adds the request as code, with the values of patients hidden.
func (d *requestDetail) addCode(base string, r labhealthtest.Request) {
	if !d.Revealed {
		r.Path = d.Target
	}
	code := newRequestCode(base, r)
	d.Body = viewJSON(r.Body, jsonOptions{Reveal: d.Revealed})
	switch d.Query.As {
	case "go":
		head, tail, _ := strings.Cut(code.golang("`\x00`"), "\x00")
		d.Head, d.Tail = visibleLines(head), visibleLines(tail)
	case "http":
		d.Head = append(code.headLines(), "")
	default:
		d.addCurl(code)
	}
}

func (d *requestDetail) addCurl(code requestCode) {
	d.Head = code.curlLines()
	for i := range d.Head {
		if i > 0 {
			d.Head[i] = "  " + d.Head[i]
		}
		d.Head[i] = visible(d.Head[i])
		if i < len(d.Head)-1 || len(code.body) > 0 {
			d.Head[i] += ` \`
		}
	}
	_, isArgument := code.argument()
	switch {
	case len(code.body) == 0:
		return
	case isArgument:
		d.Head = append(d.Head, "  --data-raw '")
		d.Tail = []string{"'"}
		for _, line := range d.Body.Lines {
			for i := range line.Tokens {
				line.Tokens[i].Text = strings.ReplaceAll(line.Tokens[i].Text, "'", `'\''`)
			}
		}
	default:
		d.Binary = len(code.body) > maxArgument
		d.Head = append(d.Head, "  --data-binary @body   # "+sizeOf(len(code.body)))
	}
}

func (d *requestDetail) addResponse(r labhealthtest.Request) {
	switch {
	case r.Response == nil && r.StatusCode == 0:
		d.Document = "The fault replaced the processing of the request."
	case r.Response == nil:
		d.Document = "This response is not kept any more."
	case len(r.Response) == 0:
		d.Document = "The response has no body."
	case isPDF(r.Response):
		d.Document = "A PDF document, " + sizeOf(len(r.Response)) + "."
	default:
		d.Response = viewJSON(r.Response, jsonOptions{Reveal: d.Revealed})
	}
	var body struct {
		Detail []struct {
			Loc []any  `json:"loc"`
			Msg string `json:"msg"`
		} `json:"detail"`
	}
	if r.StatusCode != http.StatusUnprocessableEntity || json.Unmarshal(r.Response, &body) != nil {
		return
	}
	for _, v := range body.Detail[:min(len(body.Detail), 20)] {
		var path []string
		for _, part := range v.Loc {
			path = append(path, fmt.Sprint(part))
		}
		d.Problems = append(d.Problems, problem{clip(strings.Join(path, "."), 200), clip(v.Msg, 300)})
	}
}

// visibleLines returns the lines of code without the last line break.
func visibleLines(code string) []string {
	lines := strings.Split(strings.TrimRight(code, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, "\t", "    ")
	}
	return lines
}

// SizeText is the size of the body.
func (d *requestDetail) SizeText() string { return sizeOf(d.Size) }

// Hides reports whether values of patients are hidden.
func (d *requestDetail) Hides() bool {
	return d.Body.Hidden || d.Response.Hidden || strings.Contains(d.Target, "="+mask)
}

// Address returns the address of a request beside the same list.
func (q requestQuery) Address(number int) string { return q.path(number) }

// Back returns the address of the list.
func (q requestQuery) Back() string { return q.path(0) }

func (l *requestLog) get(n int) *requestRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.find(n)
}

// requestOf returns the request of the address of an action.
func (c *Console) requestOf(w http.ResponseWriter, r *http.Request) (labhealthtest.Request, bool) {
	n, err := strconv.Atoi(r.PathValue("number"))
	if err != nil {
		http.NotFound(w, r)
		return labhealthtest.Request{}, false
	}
	received, ok := c.request(n)
	if !ok {
		c.back(w, r, requestQuery{}.path(0), "warn", "The service does not keep this request any more.")
	}
	return received, ok
}

// requestCurl responds with the complete command, to be copied.
func (c *Console) requestCurl(w http.ResponseWriter, r *http.Request) {
	received, ok := c.requestOf(w, r)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, newRequestCode(c.Server.URL, received).curl())
}

// requestScript responds with all requests that the query selects, oldest first.
func (c *Console) requestScript(w http.ResponseWriter, r *http.Request) {
	q := requestQueryOf(r)
	words := strings.Fields(strings.ToLower(q.Q))
	selected := map[int]bool{}
	chip := requestChips[slices.IndexFunc(requestChips, func(chip requestChip) bool { return chip.is == q.Is })]
	for _, rec := range c.faults.log.all(c.Server) {
		selected[rec.Number] = chip.match(rec) && matchesWords(rec.text, words)
	}
	total := 0
	requests := slices.DeleteFunc(c.Server.Requests(), func(r labhealthtest.Request) bool {
		if selected[r.Number] {
			total += len(r.Body)
		}
		return !selected[r.Number]
	})
	if total > scriptSize {
		c.back(w, r, q.path(0), "bad", "The bodies of these requests are larger than "+sizeOf(scriptSize)+". Search for fewer requests.")
		return
	}
	w.Header().Set("Content-Type", "text/x-shellscript; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="requests.sh"`)
	io.WriteString(w, script(c.Server.URL, requests))
}

func (c *Console) clearRequests(w http.ResponseWriter, r *http.Request) {
	c.faults.log.clear(c.Server)
	c.live.changed("requests")
	c.back(w, r, requestQuery{}.path(0), "", "")
}

// sendRequestAgain sends a request to the service, like the client that has sent it. Faults apply.
func (c *Console) sendRequestAgain(w http.ResponseWriter, r *http.Request) {
	received, ok := c.requestOf(w, r)
	if !ok {
		return
	}
	before := c.Server.RequestCount()
	tone, text := c.resend(r.Context(), received)
	path := requestQuery{}.path(received.Number)
	for _, rec := range c.Server.Requests() {
		if rec.Number > before && rec.Method == received.Method {
			path = requestQuery{}.path(rec.Number)
		}
	}
	c.back(w, r, path, tone, text)
}

func (c *Console) resend(ctx context.Context, received labhealthtest.Request) (tone, text string) {
	ctx, cancel := context.WithTimeout(ctx, resendTimeout)
	defer cancel()
	code := newRequestCode(c.Server.URL, received)
	req, err := http.NewRequestWithContext(ctx, code.method, code.base+code.target, bytes.NewReader(code.body))
	if err != nil {
		return "bad", "The request cannot be sent: " + err.Error()
	}
	req.Header = code.header.Clone()
	req.Header.Set("User-Agent", "labhealth-console")
	header, _ := code.key()
	req.Header.Set(header, c.Server.APIKey)
	if code.management {
		req.Header.Set(header, c.Server.OrgKey)
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return "warn", "There was no response within 5 s, or the connection was closed."
	}
	defer resp.Body.Close()
	return "ok", "The service responded " + strconv.Itoa(resp.StatusCode) + "."
}

// tryCommand is what the page shows until there is a request.
func (c *Console) tryCommand() string {
	return `curl -H "x-service-api-key: $` + keyVariable + `" ` + c.Server.URL + "/v2/user/"
}

func (c *Console) countRequests() int { return c.faults.log.count(c.Server) }

func (l *requestLog) count(server *labhealthtest.Server) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.records) + server.RequestCount() - l.last
}
