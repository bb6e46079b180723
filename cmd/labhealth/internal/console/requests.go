package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// Limits of the page of requests.
const (
	requestsShown = 100
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
	c.act("POST /console/requests/{number}/again", c.sendRequestAgain)
	c.act("POST /console/requests/clear", func(*http.Request) (string, string, error) {
		c.faults.log.clear(c.Server)
		c.live.changed("requests")
		return requestsPath, "", nil
	})
}

const requestsPath = "/console/requests"

func requestQuery(r *http.Request) query {
	q := queryOf(r, requestsPath, "q", "is", "before")
	if !slices.ContainsFunc(requestChips, func(chip requestChip) bool { return chip.is == q.Get("is") }) {
		q = q.with("is", "")
	}
	return q
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
	Query   query
	Total   int
	Faulted int
	Chips   []chipView
	Rows    []requestRow
	Older   string // address of the next rows
	Latest  string // address of the first rows, if these are others
	Detail  *requestDetail
	Try     string
}

// requestRow is a row of the list.
type requestRow struct {
	*requestRecord
	Address string
	On      bool
}

func (c *Console) requestsPage(w http.ResponseWriter, r *http.Request) {
	q := requestQuery(r)
	records := c.faults.log.all(c.Server)
	view := requestsView{Query: q, Total: len(records), Try: `curl -H "x-service-api-key: $` + keyVariable + `" ` + c.Server.URL + "/v2/user/"}
	for _, rec := range records {
		if rec.Faulted {
			view.Faulted++
		}
	}
	shown := view.addChips(slices.DeleteFunc(records, func(rec *requestRecord) bool { return !matchesWords(rec.text, q.Get("q")) }))
	addressed := r.PathValue("number") != ""
	number, err := strconv.Atoi(cmp.Or(r.PathValue("number"), r.FormValue(shownParameterName), "0"))
	switch {
	case addressed && (err != nil || number < 1):
		http.NotFound(w, r)
		return
	case number <= 0 && len(shown) > 0:
		number = shown[len(shown)-1].Number
	}
	view.addRows(shown, number)
	p := page{Title: "Requests", Current: "requests", Live: "requests", Self: q.Address(), Data: &view}
	if addressed {
		p.Self = q.Beside(number)
	} else if number > 0 {
		p.Self = q.with(shownParameterName, strconv.Itoa(number)).Address()
	}
	if number > 0 {
		view.Detail = c.requestDetail(r, q, number)
		if view.Detail == nil && addressed {
			c.back(w, r, q.Address(), "warn", gone)
			return
		}
	}
	c.render(w, r, "requests", p)
}

const gone = "The service does not keep this request any more."

// addChips adds the chips with their counts, and returns the records that the current one selects.
func (v *requestsView) addChips(records []*requestRecord) (shown []*requestRecord) {
	for _, chip := range requestChips {
		view := chipView{Name: chip.name, Path: v.Query.with("is", chip.is, "before", "").Address(), Current: chip.is == v.Query.Get("is")}
		for _, rec := range records {
			if chip.match(rec) {
				view.Count++
				if view.Current {
					shown = append(shown, rec)
				}
			}
		}
		v.Chips = append(v.Chips, view)
	}
	return shown
}

// addRows adds the latest rows, or those before a number.
func (v *requestsView) addRows(records []*requestRecord, detail int) {
	if before, _ := strconv.Atoi(v.Query.Get("before")); before > 0 {
		i, _ := slices.BinarySearchFunc(records, before, compareNumber)
		records = records[:i]
		v.Latest = v.Query.with("before", "").Address()
	}
	for _, rec := range slices.Backward(records) {
		if len(v.Rows) == requestsShown {
			v.Older = v.Query.with("before", strconv.Itoa(v.Rows[requestsShown-1].Number)).Address()
			return
		}
		v.Rows = append(v.Rows, requestRow{rec, v.Query.Beside(rec.Number), rec.Number == detail})
	}
}

func compareNumber(r *requestRecord, number int) int { return cmp.Compare(r.Number, number) }

// requestDetail is the data of the template request.
type requestDetail struct {
	*requestRecord
	Query     query
	Addressed bool // the address has the number
	Revealed  bool
	Target    string
	Head      []string // lines of the command before the body
	Quoted    bool     // the body is an argument of the command, which ends with a quote
	Body      jsonView
	Response  jsonView
	Document  string // instead of Response
	Problems  []problem
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

// requestDetail returns what is shown of a request, or nil if it is not kept.
func (c *Console) requestDetail(r *http.Request, q query, n int) *requestDetail {
	received, ok := c.request(n)
	records := c.faults.log.all(c.Server)
	i, found := slices.BinarySearchFunc(records, n, compareNumber)
	if !ok || !found {
		return nil
	}
	d := &requestDetail{requestRecord: records[i], Query: q, Addressed: r.PathValue("number") != "", Revealed: r.Method == http.MethodPost}
	if d.Target = d.Path; d.Revealed {
		d.Target = clip(received.Path, 4000)
	} else {
		received.Path = d.Target
	}
	d.addCurl(curlOfRequest(c.Server.URL, received))
	d.addResponse(received)
	return d
}

// addCurl adds the command, in which the values of patients are hidden.
func (d *requestDetail) addCurl(command curlCommand) {
	d.Head = command.lines()
	if command.isArgument() && len(command.body) > 0 {
		d.Head, d.Quoted = append(d.Head, "--data-raw '"), true
	} else if len(command.body) > 0 {
		d.Head = append(d.Head, "--data-binary @body   # "+sizeOf(len(command.body)))
	}
	for i, line := range d.Head {
		if d.Head[i] = visible(line); i > 0 {
			d.Head[i] = "  " + d.Head[i]
		}
		if i < len(d.Head)-1 {
			d.Head[i] += ` \`
		}
	}
	if len(command.body) > maxArgument {
		return
	}
	d.Body = viewJSON(command.body, jsonOptions{Reveal: d.Revealed})
	for _, line := range d.Body.Lines {
		for i := range line.Tokens {
			if d.Quoted {
				line.Tokens[i].Text = strings.ReplaceAll(line.Tokens[i].Text, "'", `'\''`)
			}
		}
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
	case bytes.HasPrefix(r.Response, []byte("%PDF")):
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
		path := strings.Trim(strings.ReplaceAll(fmt.Sprint(v.Loc), " ", "."), "[]")
		d.Problems = append(d.Problems, problem{clip(path, 200), clip(v.Msg, 300)})
	}
}

// Hides reports whether values of patients are hidden.
func (d *requestDetail) Hides() bool {
	return d.Body.Hidden || d.Response.Hidden || strings.Contains(d.Target, "="+mask)
}

// requestCurl responds with the complete command, to be copied.
func (c *Console) requestCurl(w http.ResponseWriter, r *http.Request) {
	received, ok := c.request(int(numberOf(r)))
	if !ok {
		c.back(w, r, requestsPath, "warn", gone)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, curlOfRequest(c.Server.URL, received).String())
}

// sendRequestAgain sends a request to the service, like the client that has sent it. Faults apply.
func (c *Console) sendRequestAgain(r *http.Request) (path, text string, err error) {
	received, ok := c.request(int(numberOf(r)))
	if !ok {
		return requestsPath, "", warning(gone)
	}
	before := c.Server.RequestCount()
	text, err = c.resend(r.Context(), received)
	path = query{path: requestsPath}.Beside(received.Number)
	for _, rec := range c.Server.Requests() {
		if rec.Number > before && rec.Method == received.Method {
			path = query{path: requestsPath}.Beside(rec.Number)
		}
	}
	return path, text, err
}

func (c *Console) resend(ctx context.Context, received labhealthtest.Request) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, resendTimeout)
	defer cancel()
	command := curlOfRequest(c.Server.URL, received)
	req, err := http.NewRequestWithContext(ctx, command.method, command.url, bytes.NewReader(command.body))
	if err != nil {
		return "", err
	}
	req.Header = command.header.Clone()
	req.Header.Set("User-Agent", "labhealth-console")
	req.Header.Set(command.key[0], c.Server.APIKey)
	if command.key[1] == managementKeyVariable {
		req.Header.Set(command.key[0], c.Server.OrgKey)
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", warning("There was no response within 5 s, or the connection was closed.")
	}
	defer resp.Body.Close()
	return "The service responded " + strconv.Itoa(resp.StatusCode) + ".", nil
}

func (c *Console) countRequests() int { return len(c.faults.log.all(c.Server)) }
