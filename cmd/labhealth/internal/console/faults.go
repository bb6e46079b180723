package console

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// Limits of what can be armed.
const (
	maxArmed      = 100
	maxSeconds    = 600
	callsShown    = 200
	maxDelayLimit = 24 * 60 // minutes
	oldTimestamp  = time.Hour
)

// elsewhere is the target of redirects. It does not exist (RFC 2606).
const elsewhere = "http://elsewhere.invalid/"

// faultKind is a fault that can be armed.
type faultKind struct {
	Key, Name, Text string
	Setting         string // name of the input, or empty
	Unit            string // of the input
	Seconds         int    // default of the input
	before          bool
	fault           func(s faultSettings) labhealthtest.Fault
}

// faultSettings are the inputs of the kinds.
type faultSettings struct {
	RetryAfter, Delay int
	After             bool // 503 after the request was processed
}

var faultKinds = []*faultKind{
	{
		Key: "closed", Name: "Lose the response",
		Text:  "Processes the request, then closes the connection. The client cannot know.",
		fault: func(faultSettings) labhealthtest.Fault { return labhealthtest.FaultClosed },
	},
	{
		Key: "429", Name: "Respond 429", Text: "Does not process the request.", Setting: "retry_after", Unit: "s", Seconds: 2, before: true,
		fault: func(s faultSettings) labhealthtest.Fault {
			return labhealthtest.FaultResponse(http.StatusTooManyRequests, `{"detail":"Too Many Requests"}`, "Retry-After", strconv.Itoa(s.RetryAfter))
		},
	},
	{
		Key: "503", Name: "Respond 503", Text: "The client cannot know whether the request was processed.", Setting: "after", before: true,
		fault: func(faultSettings) labhealthtest.Fault {
			return labhealthtest.FaultResponse(http.StatusServiceUnavailable, "Service Unavailable", "Content-Type", "text/plain")
		},
	},
	{
		Key: "silence", Name: "Do not respond", Text: "Processes the request, then waits until the client gives up.",
		fault: func(faultSettings) labhealthtest.Fault { return labhealthtest.FaultSilence },
	},
	{
		Key: "half", Name: "Send half of the body", Text: "Processes the request. Its response ends too early.",
		fault: func(faultSettings) labhealthtest.Fault { return labhealthtest.FaultHalfBody },
	},
	{
		Key: "delay", Name: "Delay the response", Text: "Processes the request at once.", Setting: "delay", Unit: "s", Seconds: 10,
		fault: func(s faultSettings) labhealthtest.Fault {
			return labhealthtest.FaultDelay(time.Duration(s.Delay) * time.Second)
		},
	},
	{
		Key: "redirect", Name: "Redirect elsewhere", Text: "307 to another host, which must not get the key.", before: true,
		fault: func(faultSettings) labhealthtest.Fault {
			return labhealthtest.FaultResponse(http.StatusTemporaryRedirect, "", "Location", elsewhere)
		},
	},
}

// corruption is a change of deliveries before they are received.
type corruption struct {
	Key, Name, Text string
	apply           func(*http.Request, []byte) []byte
}

var corruptions = []corruption{
	{"signature", "Break the signature", "It does not match the secret.", breakSignature},
	{"timestamp", "Old timestamp", "An hour old, as of a delivery that someone repeats.", func(r *http.Request, body []byte) []byte {
		for _, name := range []string{"Svix-Timestamp", "Webhook-Timestamp"} {
			if seconds, err := strconv.ParseInt(r.Header.Get(name), 10, 64); err == nil {
				r.Header.Set(name, strconv.FormatInt(seconds-int64(oldTimestamp.Seconds()), 10))
			}
		}
		return body
	}},
	{"body", "Change the body", "One byte differs from what was signed.", func(_ *http.Request, body []byte) []byte {
		return append(bytes.Clone(body), ' ')
	}},
}

// breakSignature replaces the first character of each signature by another one.
func breakSignature(r *http.Request, body []byte) []byte {
	for _, name := range []string{"Svix-Signature", "Webhook-Signature"} {
		signatures := strings.Fields(r.Header.Get(name))
		for i, s := range signatures {
			version, value, ok := strings.Cut(s, ",")
			if !ok || value == "" {
				continue
			}
			first := "A"
			if value[0] == 'A' {
				first = "B"
			}
			signatures[i] = version + "," + first + value[1:]
		}
		if len(signatures) > 0 {
			r.Header.Set(name, strings.Join(signatures, " "))
		}
	}
	return body
}

// faults is what the user has armed, and what the service received meanwhile.
type faults struct {
	log *requestLog

	mu      sync.Mutex
	armed   []*armedFault // in the order in which they are used
	number  int           // of the latest armed fault
	network networkForm
	corrupt map[string]int // how many deliveries were changed, of the switches that are on
}

// armedFault is a fault that waits for requests.
type armedFault struct {
	ID        int
	Kind      *faultKind
	Operation string // empty for every operation
	Left      int    // negative until it is disarmed
	Detail    string // such as "Retry-After: 2"
	remove    func()
}

// LeftText is how many requests the fault waits for.
func (a *armedFault) LeftText() string {
	if a.Left < 0 {
		return "until disarmed"
	}
	return number(a.Left) + " left"
}

// networkForm are the sliders of the deliveries.
type networkForm struct {
	On                                       bool
	Lose, LoseResponse, Duplicate, Delay, Up int // percent, and minutes
}

var defaultNetwork = networkForm{Lose: 5, LoseResponse: 5, Duplicate: 10, Delay: 20, Up: 5}

func newFaults() *faults {
	return &faults{log: newRequestLog(), network: defaultNetwork, corrupt: map[string]int{}}
}

func (c *Console) faultsRoutes() {
	if !c.sandbox() {
		return
	}
	c.mux.HandleFunc("GET /console/faults", c.faultsPage)
	c.mux.HandleFunc("POST /console/faults", c.changeFaults)
	c.mux.HandleFunc("POST /console/faults/disarm", c.disarmAll)
	c.mux.HandleFunc("POST /console/faults/deliveries", c.changeNetwork)
	c.mux.HandleFunc("POST /console/faults/corrupt", c.changeCorruption)
}

// DeliveryTransport changes deliveries as the page Faults says, before next receives them.
func (c *Console) DeliveryTransport(next http.RoundTripper) http.RoundTripper {
	return deliveryTransport{c, next}
}

type deliveryTransport struct {
	console *Console
	next    http.RoundTripper
}

// RoundTrip sends a changed copy of the request.
func (t deliveryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	apply := t.console.faults.corrupting()
	if len(apply) == 0 {
		return t.next.RoundTrip(r)
	}
	var body []byte
	if r.Body != nil {
		defer r.Body.Close()
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	r = r.Clone(r.Context())
	for _, c := range apply {
		body = c.apply(r, body)
	}
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	t.console.faultsChanged()
	return t.next.RoundTrip(r)
}

// corrupting returns the changes that apply to a delivery, and counts it.
func (f *faults) corrupting() (apply []corruption) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range corruptions {
		if n, ok := f.corrupt[c.Key]; ok {
			f.corrupt[c.Key] = n + 1
			apply = append(apply, c)
		}
	}
	return apply
}

// arm arms a fault. times is negative until it is disarmed.
func (c *Console) arm(kind *faultKind, operation string, times int, s faultSettings) error {
	a := &armedFault{Kind: kind, Operation: operation, Left: times}
	before := kind.before
	switch kind.Key {
	case "429":
		a.Detail = fmt.Sprintf("Retry-After: %d", s.RetryAfter)
	case "503":
		before = !s.After
		a.Detail = "not processed"
		if s.After {
			a.Detail = "after processing"
		}
	case "delay":
		a.Detail = fmt.Sprintf("%d s", s.Delay)
	}
	fault := kind.fault(s)
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	if len(c.faults.armed) == maxArmed {
		return fmt.Errorf("at most %d faults can be armed: disarm some", maxArmed)
	}
	// A request may meet the fault before a is listed: its count waits for the lock.
	remove, err := c.Server.AddFault(labhealthtest.FaultPlan{
		Name: kind.Name, Operation: operation, Times: times, Before: before,
		Fault: func(w http.ResponseWriter, r *http.Request, body []byte) {
			c.met(a)
			fault(w, r, body)
		},
	})
	if err != nil {
		return err
	}
	c.faults.number++
	a.ID, a.remove = c.faults.number, remove
	c.faults.armed = append(c.faults.armed, a)
	return nil
}

// met counts a request that meets a fault.
func (c *Console) met(a *armedFault) {
	c.faults.mu.Lock()
	if a.Left > 0 {
		a.Left--
	}
	if a.Left == 0 {
		c.faults.armed = slices.DeleteFunc(c.faults.armed, func(other *armedFault) bool { return other == a })
	}
	c.faults.mu.Unlock()
	c.faultsChanged()
}

// disarm removes the armed faults that match, and returns their number.
func (f *faults) disarm(match func(*armedFault) bool) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = slices.DeleteFunc(f.armed, func(a *armedFault) bool {
		if !match(a) {
			return false
		}
		a.remove()
		n++
		return true
	})
	return n
}

// changeFaults arms or disarms a kind of fault, or disarms one fault.
func (c *Console) changeFaults(w http.ResponseWriter, r *http.Request) {
	settings, err := faultSettingsOf(r)
	back := "/console/faults?" + url.Values{"operation": {r.FormValue("operation")}, "times": {r.FormValue("times")}}.Encode()
	switch {
	case r.FormValue("disarm") != "":
		c.faults.disarm(func(a *armedFault) bool { return a.Kind.Key == r.FormValue("disarm") })
	case r.FormValue("remove") != "":
		c.faults.disarm(func(a *armedFault) bool { return strconv.Itoa(a.ID) == r.FormValue("remove") })
	case err == nil:
		err = c.armForm(r, settings)
	}
	c.faultsChanged()
	if err != nil {
		c.back(w, r, back, "bad", "No fault was armed: "+err.Error()+".")
		return
	}
	c.back(w, r, back, "", "")
}

func (c *Console) armForm(r *http.Request, settings faultSettings) error {
	i := slices.IndexFunc(faultKinds, func(k *faultKind) bool { return k.Key == r.FormValue("arm") })
	if i < 0 {
		return errors.New("there is no such fault")
	}
	operation := r.FormValue("operation")
	if operation != "" && !slices.Contains(labhealthtest.Operations(), operation) {
		return errors.New("there is no such operation")
	}
	times := map[string]int{"1": 1, "2": 2, "-1": -1}[r.FormValue("times")]
	if times == 0 {
		return errors.New("choose once, twice or until disarmed")
	}
	return c.arm(faultKinds[i], operation, times, settings)
}

func faultSettingsOf(r *http.Request) (s faultSettings, err error) {
	s.After = r.FormValue("after") == "after"
	s.RetryAfter, err = boundedForm(r, "retry_after", "Retry-After", 2, maxSeconds)
	if err == nil {
		s.Delay, err = boundedForm(r, "delay", "the delay", 10, maxSeconds)
	}
	return s, err
}

// boundedForm returns a number of a form, from 0 to limit.
func boundedForm(r *http.Request, name, label string, missing, limit int) (int, error) {
	text := strings.TrimSpace(r.FormValue(name))
	if text == "" {
		return missing, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > limit {
		return 0, fmt.Errorf("%s must be a number from 0 to %d", label, limit)
	}
	return n, nil
}

// disarmAll makes everything reliable again.
func (c *Console) disarmAll(w http.ResponseWriter, r *http.Request) {
	c.faults.disarm(func(*armedFault) bool { return true })
	c.faults.mu.Lock()
	clear(c.faults.corrupt)
	c.faults.network.On = false
	err := c.Server.SetNetworkConditions(labhealthtest.NetworkConditions{})
	c.faults.mu.Unlock()
	c.faultsChanged()
	if err != nil {
		c.fail(w, r, err)
		return
	}
	c.back(w, r, "/console/faults", "ok", "Nothing is armed. Events that are already delayed remain so.")
}

// changeNetwork changes the network between the service and the receivers.
func (c *Console) changeNetwork(w http.ResponseWriter, r *http.Request) {
	f := networkForm{On: r.FormValue("on") == "1"}
	for _, field := range []struct {
		name  string
		value *int
		limit int
	}{{"lose", &f.Lose, 100}, {"lose_response", &f.LoseResponse, 100}, {"duplicate", &f.Duplicate, 100}, {"delay", &f.Delay, 100}, {"up", &f.Up, maxDelayLimit}} {
		n, err := boundedForm(r, field.name, field.name, 0, field.limit)
		if err != nil {
			c.back(w, r, "/console/faults", "bad", "The deliveries were not changed: "+err.Error()+".")
			return
		}
		*field.value = n
	}
	f.Up = max(f.Up, 1)
	c.faults.mu.Lock()
	c.faults.network = f
	err := c.Server.SetNetworkConditions(f.conditions())
	c.faults.mu.Unlock()
	c.faultsChanged()
	if err != nil {
		c.fail(w, r, err)
		return
	}
	c.back(w, r, "/console/faults", "", "")
}

func (f networkForm) conditions() labhealthtest.NetworkConditions {
	if !f.On {
		return labhealthtest.NetworkConditions{}
	}
	share := func(percent int) float64 { return float64(percent) / 100 }
	return labhealthtest.NetworkConditions{
		Lose: share(f.Lose), LoseResponse: share(f.LoseResponse), Duplicate: share(f.Duplicate), Delay: share(f.Delay),
		MaxDelay: time.Duration(f.Up) * time.Minute,
	}
}

func (c *Console) changeCorruption(w http.ResponseWriter, r *http.Request) {
	key := r.FormValue("key")
	if !slices.ContainsFunc(corruptions, func(c corruption) bool { return c.Key == key }) {
		c.back(w, r, "/console/faults", "bad", "There is no such fault.")
		return
	}
	c.faults.mu.Lock()
	if r.FormValue("on") == "1" {
		c.faults.corrupt[key] = 0
	} else {
		delete(c.faults.corrupt, key)
	}
	c.faults.mu.Unlock()
	c.faultsChanged()
	c.back(w, r, "/console/faults", "", "")
}

func (c *Console) countFaults() int { return c.faults.count() }

func (f *faults) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.armed) + len(f.corrupt)
	if f.network.On {
		n++
	}
	return n
}

// faultsView is the data of the template faults.
type faultsView struct {
	Armed      int
	Operation  string
	Times      string
	Operations []string
	Kinds      []faultRow
	Network    networkForm
	Corrupt    []corruptRow
	Calls      callsView
	Import     string // the operation of the empty state
}

// faultRow is a kind of fault with what is armed of it.
type faultRow struct {
	*faultKind
	Armed []armedFault
}

// Left is how many requests the armed faults of the kind wait for.
func (r faultRow) Left() string {
	total := 0
	for _, a := range r.Armed {
		if a.Left < 0 {
			return "until disarmed"
		}
		total += a.Left
	}
	if total == 0 {
		return ""
	}
	return number(total) + " left"
}

type corruptRow struct {
	corruption
	On    bool
	Count int
}

// callsView is what the service received, and how often it was processed.
type callsView struct {
	Strip    strip
	Calls    []*call
	More     int // calls that are not shown
	Since    time.Time
	Findings []finding
	Total    int
}

// finding is a call that created several orders.
type finding struct {
	*call
	Title, Advice string
}

func (c *Console) faultsPage(w http.ResponseWriter, r *http.Request) {
	view := &faultsView{
		Operation: r.FormValue("operation"), Times: r.FormValue("times"), Operations: labhealthtest.Operations(), Import: "POST /v3/order/import",
	}
	if !r.URL.Query().Has("operation") {
		view.Operation = view.Import
	}
	view.Armed = c.countFaults()
	view.Kinds = c.faults.rows()
	view.Network, view.Corrupt = c.faults.deliveries()
	view.Calls = c.callsView()
	c.render(w, r, "faults", page{Title: "Faults", Current: "faults", Live: "faults requests", Data: view})
}

func (f *faults) rows() []faultRow {
	f.mu.Lock()
	defer f.mu.Unlock()
	rows := make([]faultRow, len(faultKinds))
	for i, kind := range faultKinds {
		rows[i].faultKind = kind
		for _, a := range f.armed {
			if a.Kind == kind {
				rows[i].Armed = append(rows[i].Armed, *a)
			}
		}
	}
	return rows
}

func (f *faults) deliveries() (networkForm, []corruptRow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rows := make([]corruptRow, len(corruptions))
	for i, c := range corruptions {
		n, on := f.corrupt[c.Key]
		rows[i] = corruptRow{c, on, n}
	}
	return f.network, rows
}

func (c *Console) callsView() callsView {
	records := c.faults.log.all(c.Server)
	v := callsView{Strip: newStrip(records, c.Now()), Calls: groupCalls(records), Total: len(records)}
	if len(records) > 0 {
		v.Since = records[0].At
	}
	for _, call := range v.Calls {
		if len(call.Orders) > 1 && len(v.Findings) < 2 {
			v.Findings = append(v.Findings, newFinding(call))
		}
	}
	if len(v.Calls) > callsShown {
		v.More = len(v.Calls) - callsShown
		v.Calls = v.Calls[:callsShown]
	}
	return v
}

func newFinding(c *call) finding {
	what, advice := "call", "Send an X-Idempotency-Key with an order, so that the service creates it once."
	if c.Name == "POST /v3/order/import" {
		what, advice = "import", "Look for the sample ID before you send an import again, or use bulk.Run, which does."
	}
	n := number(len(c.Orders))
	if len(c.Orders) == 2 {
		n = "two"
	}
	return finding{c, "One " + what + " created " + n + " orders.", advice}
}

// faultsChanged updates the open pages after a change of what is armed.
func (c *Console) faultsChanged() { c.live.changed("faults") }
