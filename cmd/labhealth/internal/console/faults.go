package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
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
	maxArmed     = 100
	maxSeconds   = 600
	callsShown   = 200
	oldTimestamp = time.Hour
)

// elsewhere is the target of redirects. It does not exist (RFC 2606).
const elsewhere = "http://elsewhere.invalid/"

// faultKind is a fault that can be armed.
type faultKind struct {
	Key, Name, Text string
	Setting         string // name of the input, or empty
	Value           int    // default of the input, in seconds
	detail          string // format of the value
	before          bool
	fault           func(value int) labhealthtest.Fault
}

// always is a fault without a setting.
func always(fault labhealthtest.Fault) func(int) labhealthtest.Fault {
	return func(int) labhealthtest.Fault { return fault }
}

// unavailable is the kind that is sent before the request is processed, or after it.
const unavailable = "503"

var faultKinds = []*faultKind{
	{Key: "closed", Name: "Lose the response", Text: "Processes the request, then closes the connection. The client cannot know.", fault: always(labhealthtest.FaultClosed)},
	{
		Key: "429", Name: "Respond 429", Text: "Does not process the request.", Setting: "retry_after", Value: 2, detail: "Retry-After: %d", before: true,
		fault: func(seconds int) labhealthtest.Fault {
			return labhealthtest.FaultResponse(http.StatusTooManyRequests, `{"detail":"Too Many Requests"}`, "Retry-After", strconv.Itoa(seconds))
		},
	},
	{
		Key: unavailable, Name: "Respond 503", Text: "The client cannot know whether the request was processed.", Setting: "after",
		fault: always(labhealthtest.FaultResponse(http.StatusServiceUnavailable, "Service Unavailable", "Content-Type", "text/plain")),
	},
	{Key: "silence", Name: "Do not respond", Text: "Processes the request, then waits until the client gives up.", fault: always(labhealthtest.FaultSilence)},
	{Key: "half", Name: "Send half of the body", Text: "Processes the request. Its response ends too early.", fault: always(labhealthtest.FaultHalfBody)},
	{
		Key: "delay", Name: "Delay the response", Text: "Processes the request at once.", Setting: "delay", Value: 10, detail: "%d s",
		fault: func(seconds int) labhealthtest.Fault {
			return labhealthtest.FaultDelay(time.Duration(seconds) * time.Second)
		},
	},
	{
		Key: "redirect", Name: "Redirect elsewhere", Text: "307 to another host, which must not get the key.", before: true,
		fault: always(labhealthtest.FaultResponse(http.StatusTemporaryRedirect, "", "Location", elsewhere)),
	},
}

// corruption is a change of deliveries before they are received.
type corruption struct {
	Key, Name, Text string
	apply           func(*http.Request, []byte) []byte
}

var corruptions = []corruption{
	{"signature", "Break the signature", "It does not match the secret.", func(r *http.Request, body []byte) []byte {
		for _, name := range []string{"Svix-Signature", "Webhook-Signature"} {
			if r.Header.Get(name) != "" {
				r.Header.Set(name, "v1,"+base64.StdEncoding.EncodeToString(make([]byte, sha256.Size)))
			}
		}
		return body
	}},
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

// faults is what the user has armed, and what the service received meanwhile.
type faults struct {
	log *requestLog

	mu         sync.Mutex
	armed      []*armedFault // in the order in which they are used
	number     int           // of the latest armed fault
	unreliable bool          // the network, as network says
	network    []slider
	corrupt    map[string]int // how many deliveries were changed, of the switches that are on
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

// slider is a number of the network of the deliveries: percent, or minutes.
type slider struct {
	Name, Label, Unit string
	Min, Max, Value   int
}

func newFaults() *faults {
	network := []slider{
		{"lose", "Lose the event", " %", 0, 100, 5}, {"lose_response", "Lose the response", " %", 0, 100, 5},
		{"duplicate", "Deliver twice", " %", 0, 100, 10}, {"delay", "Delay", " %", 0, 100, 20}, {"up", "by up to", " min", 1, 60, 5},
	}
	return &faults{log: newRequestLog(), network: network, corrupt: map[string]int{}}
}

const faultsPath = "/console/faults"

func (c *Console) faultsRoutes() {
	if !c.sandbox() {
		return
	}
	c.mux.HandleFunc("GET /console/faults", c.faultsPage)
	c.act("POST /console/faults", c.changeFaults)
	c.act("POST /console/faults/disarm", c.disarmAll)
	c.act("POST /console/faults/deliveries", c.changeNetwork)
	c.act("POST /console/faults/corrupt", c.changeCorruption)
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
func (c *Console) arm(kind *faultKind, operation string, times, value int) error {
	a := &armedFault{Kind: kind, Operation: operation, Left: times}
	before := kind.before
	if kind.detail != "" {
		a.Detail = fmt.Sprintf(kind.detail, value)
	}
	if kind.Key == unavailable {
		before = value == 0
		a.Detail = map[bool]string{true: "not processed", false: "after processing"}[before]
	}
	fault := kind.fault(value)
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

// disarm removes the armed faults that match.
func (f *faults) disarm(match func(*armedFault) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = slices.DeleteFunc(f.armed, func(a *armedFault) bool {
		if match(a) {
			a.remove()
			return true
		}
		return false
	})
}

// changeFaults arms or disarms a kind of fault, or disarms one fault.
func (c *Console) changeFaults(r *http.Request) (path, done string, err error) {
	defer c.faultsChanged()
	path = faultsPath + "?" + url.Values{"operation": {r.FormValue("operation")}, "times": {r.FormValue("times")}}.Encode()
	switch {
	case r.FormValue("disarm") != "":
		c.faults.disarm(func(a *armedFault) bool { return a.Kind.Key == r.FormValue("disarm") })
	case r.FormValue("remove") != "":
		c.faults.disarm(func(a *armedFault) bool { return strconv.Itoa(a.ID) == r.FormValue("remove") })
	default:
		err = c.armForm(r)
	}
	return path, "", err
}

func (c *Console) armForm(r *http.Request) error {
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
	value := faultKinds[i].Value
	if setting := faultKinds[i].Setting; setting != "" && r.FormValue(setting) != "" {
		n, err := boundedForm(r, setting, 0, maxSeconds)
		if err != nil {
			return err
		}
		value = n
	}
	return c.arm(faultKinds[i], operation, times, value)
}

// boundedForm returns a number of a form, from least to most.
func boundedForm(r *http.Request, name string, least, most int) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(r.FormValue(name)))
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s must be a number from %d to %s", name, least, number(most))
	}
	return n, nil
}

// disarmAll makes everything reliable again.
func (c *Console) disarmAll(*http.Request) (path, done string, err error) {
	defer c.faultsChanged()
	c.faults.disarm(func(*armedFault) bool { return true })
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	clear(c.faults.corrupt)
	c.faults.unreliable = false
	return faultsPath, "Nothing is armed. Events that are already delayed remain so.", c.Server.SetNetworkConditions(labhealthtest.NetworkConditions{})
}

// changeNetwork changes the network between the service and the receivers.
func (c *Console) changeNetwork(r *http.Request) (path, done string, err error) {
	defer c.faultsChanged()
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	network := slices.Clone(c.faults.network)
	for i, s := range network {
		if r.FormValue(s.Name) != "" {
			if network[i].Value, err = boundedForm(r, s.Name, s.Min, s.Max); err != nil {
				return faultsPath, "", err
			}
		}
	}
	c.faults.network, c.faults.unreliable = network, r.FormValue("on") == "1"
	conditions := labhealthtest.NetworkConditions{}
	if share := func(i int) float64 { return float64(network[i].Value) / 100 }; c.faults.unreliable {
		conditions = labhealthtest.NetworkConditions{
			Lose: share(0), LoseResponse: share(1), Duplicate: share(2), Delay: share(3), MaxDelay: time.Duration(network[4].Value) * time.Minute,
		}
	}
	return faultsPath, "", c.Server.SetNetworkConditions(conditions)
}

func (c *Console) changeCorruption(r *http.Request) (path, done string, err error) {
	defer c.faultsChanged()
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	key := r.FormValue("key")
	switch {
	case !slices.ContainsFunc(corruptions, func(c corruption) bool { return c.Key == key }):
		return faultsPath, "", errors.New("there is no such fault")
	case r.FormValue("on") == "1":
		c.faults.corrupt[key] = 0
	default:
		delete(c.faults.corrupt, key)
	}
	return faultsPath, "", nil
}

func (c *Console) countFaults() int {
	f := c.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.armed) + len(f.corrupt)
	if f.unreliable {
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
	Unreliable bool
	Network    []slider
	Corrupt    []corruptRow
	Calls      callsView
}

// faultRow is a kind of fault with what is armed of it.
type faultRow struct {
	*faultKind
	Armed []armedFault
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
	Findings []*call // that created several orders
}

func (c *Console) faultsPage(w http.ResponseWriter, r *http.Request) {
	view := &faultsView{
		Armed: c.countFaults(), Operation: r.FormValue("operation"), Times: r.FormValue("times"), Operations: labhealthtest.Operations(),
		Calls: c.callsView(),
	}
	if !r.URL.Query().Has("operation") {
		view.Operation = "POST /v3/order/import"
	}
	c.faults.show(view)
	c.render(w, r, "faults", page{Title: "Faults", Current: "faults", Live: "faults requests", Data: view})
}

// show adds what is armed.
func (f *faults) show(view *faultsView) {
	f.mu.Lock()
	defer f.mu.Unlock()
	view.Unreliable, view.Network = f.unreliable, f.network
	for _, kind := range faultKinds {
		row := faultRow{faultKind: kind}
		for _, a := range f.armed {
			if a.Kind == kind {
				row.Armed = append(row.Armed, *a)
			}
		}
		view.Kinds = append(view.Kinds, row)
	}
	for _, c := range corruptions {
		n, on := f.corrupt[c.Key]
		view.Corrupt = append(view.Corrupt, corruptRow{c, on, n})
	}
}

func (c *Console) callsView() callsView {
	records := c.faults.log.all(c.Server)
	v := callsView{Strip: newStrip(records, c.Now()), Calls: groupCalls(records)}
	if len(records) > 0 {
		v.Since = records[0].At
	}
	for _, call := range v.Calls {
		if len(call.Orders) > 1 && len(v.Findings) < 2 {
			v.Findings = append(v.Findings, call)
		}
	}
	if len(v.Calls) > callsShown {
		v.More = len(v.Calls) - callsShown
		v.Calls = v.Calls[:callsShown]
	}
	return v
}

// faultsChanged updates the open pages after a change of what is armed.
func (c *Console) faultsChanged() { c.live.changed("faults") }
