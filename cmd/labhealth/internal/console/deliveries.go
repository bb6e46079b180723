package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
)

// Limits of the page of deliveries.
const (
	deliveriesShown = 100
	histogramBars   = 60
	histogramStep   = 10 * time.Second
)

func (c *Console) deliveriesRoutes() {
	c.mux.HandleFunc("GET /console/deliveries", c.deliveriesPage)
	c.mux.HandleFunc("GET /console/deliveries/{number}", c.deliveryPage)
	c.mux.HandleFunc("POST /console/deliveries/{number}/reveal", c.deliveryPage)
	c.mux.HandleFunc("POST /console/deliveries/{number}/replay", c.replayDelivery)
	c.mux.HandleFunc("POST /console/deliveries/{number}/curl", c.deliveryCurl)
	c.mux.HandleFunc("POST /console/deliveries/{number}/body", c.deliveryBody)
	c.mux.HandleFunc("GET /console/deliveries/{number}/edit", c.editPage)
	c.mux.HandleFunc("POST /console/deliveries/{number}/open", c.editPage)
	c.mux.HandleFunc("POST /console/deliveries/{number}/edit", c.editDelivery)
	c.mux.HandleFunc("GET /console/deliveries/replay", c.replayPage)
	c.mux.HandleFunc("POST /console/deliveries/replay", c.replayMany)
	c.mux.HandleFunc("POST /console/deliveries/forward", c.setForward)
	c.mux.HandleFunc("GET /console/deliveries/check", c.checkPage)
	c.mux.HandleFunc("POST /console/deliveries/check", c.checkApplication)
	if c.sandbox() {
		c.mux.HandleFunc("GET /console/deliveries/send", c.sendPage)
		c.mux.HandleFunc("POST /console/deliveries/send", c.sendEvent)
	}
}

// deliveryQuery is what the address of the page selects.
type deliveryQuery struct {
	Q, Is, From, To string
	Before          int64
}

func deliveryQueryOf(r *http.Request) deliveryQuery {
	q := deliveryQuery{Q: strings.TrimSpace(r.FormValue("q")), Is: r.FormValue("is"), From: r.FormValue("from"), To: r.FormValue("to")}
	q.Before, _ = strconv.ParseInt(r.FormValue("before"), 10, 64)
	return q
}

// values returns the query of an address, without Before.
func (q deliveryQuery) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"q": q.Q, "is": q.Is, "from": q.From, "to": q.To} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// path returns the address of the page, or of one delivery beside the list.
func (q deliveryQuery) path(number int64) string {
	path := "/console/deliveries"
	if number > 0 {
		path += "/" + strconv.FormatInt(number, 10)
	}
	v := q.values()
	if q.Before > 0 {
		v.Set("before", strconv.FormatInt(q.Before, 10))
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

func (q deliveryQuery) filter(zone *time.Location) inspect.Filter {
	f := inspect.Filter{Query: q.Q, Is: q.Is, Before: q.Before}
	f.From, _ = parseLocal(q.From, zone)
	f.To, _ = parseLocal(q.To, zone)
	return f
}

// parseLocal parses the value of an input of type datetime-local.
func parseLocal(text string, zone *time.Location) (t time.Time, err error) {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02T15:04:05.999"} {
		if t, err = time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, err
}

// zone is the time zone of the times that are shown.
func (c *Console) zone() *time.Location { return c.Now().Location() }

// deliveriesView is the data of the template deliveries.
type deliveriesView struct {
	Query     deliveryQuery
	Total     int
	Forward   forwardView
	Sandbox   bool
	Histogram histogram
	Chips     []chipView
	Rows      []deliveryRow
	Older     string // address of the next rows
	Latest    string // address of the latest rows, if these are others
	Many      string // address of the page to replay them
	Clear     string
	None      bool // no delivery is stored
	Detail    *deliveryView
	Opened    bool // the detail was asked for, and covers the list on phones
}

// forwardView says where deliveries are forwarded.
type forwardView struct{ URL, Short string }

func shortURL(raw string) string {
	_, short, found := strings.Cut(raw, "://")
	if !found {
		return raw
	}
	return strings.TrimSuffix(short, "/")
}

var chipKinds = [...]struct{ name, is string }{{"All", ""}, {"Rejected", "rejected"}, {"Duplicate", "duplicate"}, {"Changed", "changed"}, {"Failed", "failed"}}

// chips are the links that select kinds of deliveries.
func (c *Console) chips(ctx context.Context, q deliveryQuery) (chips []chipView, err error) {
	current := q.Is
	for _, kind := range chipKinds {
		q := q
		q.Is, q.Before = kind.is, 0
		n, err := c.Inspector.Count(ctx, q.filter(c.zone()))
		if err != nil {
			return nil, err
		}
		chips = append(chips, chipView{kind.name, q.path(0), n, current == kind.is})
	}
	return chips, nil
}

func (c *Console) deliveriesPage(w http.ResponseWriter, r *http.Request) { c.showDeliveries(w, r, 0) }

// deliveryPage shows one delivery beside the list.
func (c *Console) deliveryPage(w http.ResponseWriter, r *http.Request) {
	number, err := strconv.ParseInt(r.PathValue("number"), 10, 64)
	if err != nil || number <= 0 {
		http.NotFound(w, r)
		return
	}
	c.showDeliveries(w, r, number)
}

func (c *Console) showDeliveries(w http.ResponseWriter, r *http.Request, number int64) {
	ctx, q := r.Context(), deliveryQueryOf(r)
	view, err := c.deliveriesView(ctx, q)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	shown := number
	if shown == 0 {
		shown, _ = strconv.ParseInt(r.FormValue(shownParameterName), 10, 64)
	}
	if shown <= 0 && len(view.Rows) > 0 {
		shown = view.Rows[0].Number
	}
	if shown > 0 {
		options := detailOptions{tab: r.FormValue("tab"), reveal: r.Method == http.MethodPost, query: q}
		view.Detail, err = c.deliveryView(ctx, shown, options)
		if err != nil {
			c.fail(w, r, err)
			return
		}
		if view.Detail == nil && number > 0 {
			c.noDelivery(w, r, number)
			return
		}
	}
	view.Opened = number > 0
	for i := range view.Rows {
		view.Rows[i].On = view.Rows[i].Number == shown
	}
	p := page{Title: "Deliveries", Current: "deliveries", Live: "deliveries", Self: q.path(number), Data: view}
	if number == 0 && shown > 0 {
		p.Self = withParameter(p.Self, shownParameterName, strconv.FormatInt(shown, 10))
	}
	if tab := r.FormValue("tab"); tab != "" {
		p.Self = withParameter(p.Self, "tab", tab)
	}
	if number > 0 {
		p.Title = fmt.Sprintf("Delivery %d", number)
	}
	c.render(w, r, "deliveries", p)
}

func (c *Console) noDelivery(w http.ResponseWriter, r *http.Request, number int64) {
	c.render(w, r, "no-delivery", page{Title: "No delivery", Current: "deliveries", Status: http.StatusNotFound, Data: number})
}

func (c *Console) deliveriesView(ctx context.Context, q deliveryQuery) (*deliveriesView, error) {
	view := &deliveriesView{Query: q, Sandbox: c.sandbox(), Clear: "/console/deliveries", Forward: c.forwardView()}
	filter := q.filter(c.zone())
	list, err := c.Inspector.List(ctx, filter, deliveriesShown+1)
	if err != nil {
		return nil, err
	}
	if len(list) > deliveriesShown {
		list = list[:deliveriesShown]
		older := q
		older.Before = list[deliveriesShown-1].Number
		view.Older = older.path(0)
	}
	for _, d := range list {
		view.Rows = append(view.Rows, c.deliveryRow(d, q))
	}
	if view.Chips, err = c.chips(ctx, q); err != nil {
		return nil, err
	}
	if view.Total = view.Chips[0].Count; q.Q != "" || q.From != "" || q.To != "" {
		if view.Total, err = c.Inspector.Count(ctx, inspect.Filter{}); err != nil {
			return nil, err
		}
	}
	view.None = view.Total == 0
	if view.Histogram, err = c.histogram(ctx); err != nil {
		return nil, err
	}
	if q.Before > 0 {
		latest := q
		latest.Before = 0
		view.Latest = latest.path(0)
	}
	view.Many = "/console/deliveries/replay?" + q.values().Encode()
	return view, nil
}

func (c *Console) forwardView() forwardView {
	to := c.Inspector.Forward()
	return forwardView{to, shortURL(to)}
}

// histogram shows the deliveries of the last ten minutes.
type histogram struct {
	Bars            []histogramBar
	From            string
	Count, Rejected int
}

// bar is one rectangle, in the units of the SVG.
type histogramBar struct {
	Class     string
	X         int
	Y, Height float64
}

func (c *Console) histogram(ctx context.Context) (histogram, error) {
	end := c.Now().Truncate(histogramStep).Add(histogramStep)
	start := end.Add(-histogramBars * histogramStep)
	buckets, err := c.Inspector.Histogram(ctx, start, histogramStep)
	return newHistogram(buckets, start, c.zone()), err
}

func newHistogram(buckets []inspect.Bucket, start time.Time, zone *time.Location) histogram {
	const height, least = 30.0, 1.5
	h := histogram{From: start.In(zone).Format("15:04")}
	buckets = buckets[:min(len(buckets), histogramBars)]
	largest := 6
	for _, b := range buckets {
		largest = max(largest, b.Total)
		h.Count += b.Total
		h.Rejected += b.Rejected
	}
	for i, b := range buckets {
		unit := (height - 3) / float64(largest)
		tall, bad := unit*float64(b.Total-b.Rejected), 0.0
		if tall = max(tall, least); b.Total > 0 && b.Total == b.Rejected {
			tall = 0
		}
		if b.Rejected > 0 {
			bad = max(unit*float64(b.Rejected), 3)
		}
		class := ""
		if i == len(buckets)-1 {
			class = "n"
		}
		if tall > 0 {
			h.Bars = append(h.Bars, histogramBar{class, 10 * i, height - tall, tall})
		}
		if bad > 0 {
			h.Bars = append(h.Bars, histogramBar{"b", 10 * i, height - tall - bad, bad})
		}
	}
	return h
}

func (c *Console) countDeliveries(ctx context.Context) int {
	n, err := c.Inspector.Count(ctx, inspect.Filter{})
	if err != nil && ctx.Err() == nil {
		c.Log.Error("console: cannot count the deliveries", "error", err)
	}
	return n
}
