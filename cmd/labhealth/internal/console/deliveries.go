package console

import (
	"context"
	"fmt"
	"net/http"
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

const deliveriesPath = "/console/deliveries"

// deliveryPath returns the address of a delivery beside all.
func deliveryPath(number int64) string { return query{path: deliveriesPath}.Beside(number) }

func (c *Console) deliveriesRoutes() {
	c.mux.HandleFunc("GET /console/deliveries", c.deliveriesPage)
	c.mux.HandleFunc("GET /console/deliveries/{number}", c.deliveriesPage)
	c.mux.HandleFunc("POST /console/deliveries/{number}/reveal", c.deliveriesPage)
	c.act("POST /console/deliveries/{number}/replay", c.replayDelivery)
	c.mux.HandleFunc("POST /console/deliveries/{number}/curl", c.deliveryCurl)
	c.mux.HandleFunc("POST /console/deliveries/{number}/body", c.deliveryBody)
	c.mux.HandleFunc("GET /console/deliveries/{number}/edit", c.editPage)
	c.mux.HandleFunc("POST /console/deliveries/{number}/open", c.editPage)
	c.mux.HandleFunc("POST /console/deliveries/{number}/edit", c.editDelivery)
	c.mux.HandleFunc("GET /console/deliveries/replay", c.replayPage)
	c.mux.HandleFunc("POST /console/deliveries/replay", c.replayMany)
	c.act("POST /console/deliveries/forward", c.setForward)
	c.mux.HandleFunc("GET /console/deliveries/check", c.checkPage)
	c.mux.HandleFunc("POST /console/deliveries/check", c.checkPage)
	if c.sandbox() {
		c.mux.HandleFunc("GET /console/deliveries/send", c.sendPage)
		c.mux.HandleFunc("POST /console/deliveries/send", c.sendPage)
	}
}

func deliveryQuery(r *http.Request) query {
	return queryOf(r, deliveriesPath, "q", "is", "from", "to", "before")
}

// filterOf returns what a query selects.
func filterOf(q query, zone *time.Location) inspect.Filter {
	f := inspect.Filter{Query: q.Get("q"), Is: q.Get("is")}
	f.Before, _ = strconv.ParseInt(q.Get("before"), 10, 64)
	f.From, _ = parseLocal(q.Get("from"), zone)
	f.To, _ = parseLocal(q.Get("to"), zone)
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
	Query     query
	Total     int
	Forward   forwardView
	Sandbox   bool
	Histogram histogram
	Chips     []chipView
	Rows      []deliveryRow
	Older     string // address of the next rows
	Latest    string // address of the latest rows, if these are others
	Many      string // address of the page to replay them
	None      bool   // no delivery is stored
	Detail    *deliveryView
	Opened    bool // the detail was asked for, and covers the list on phones
}

// forwardView says where deliveries are forwarded.
type forwardView struct{ URL, Short string }

func (c *Console) forwardView() forwardView {
	to := c.Inspector.Forward()
	return forwardView{to, shortURL(to)}
}

func shortURL(raw string) string {
	_, short, found := strings.Cut(raw, "://")
	if !found {
		return raw
	}
	return strings.TrimSuffix(short, "/")
}

var chipKinds = [...][2]string{{"All", ""}, {"Rejected", "rejected"}, {"Duplicate", "duplicate"}, {"Changed", "changed"}, {"Failed", "failed"}}

// deliveriesPage shows the list, and beside it the delivery of the address or the first.
func (c *Console) deliveriesPage(w http.ResponseWriter, r *http.Request) {
	var number int64
	if text := r.PathValue("number"); text != "" {
		if number = numberOf(r); number <= 0 {
			http.NotFound(w, r)
			return
		}
	}
	q, shown, tab := deliveryQuery(r), number, r.FormValue("tab")
	view, err := c.deliveriesView(r.Context(), q)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	p := page{Title: "Deliveries", Current: "deliveries", Live: "deliveries", Data: view}
	self := q.with("tab", tab)
	if number == 0 {
		if shown, _ = strconv.ParseInt(r.FormValue(shownParameterName), 10, 64); shown <= 0 && len(view.Rows) > 0 {
			shown = view.Rows[0].Number
		}
		if shown > 0 {
			self = self.with(shownParameterName, strconv.FormatInt(shown, 10))
		}
		p.Self = self.Address()
	} else {
		p.Title, p.Self, view.Opened = fmt.Sprintf("Delivery %d", number), self.Beside(number), true
	}
	if shown > 0 {
		view.Detail, err = c.deliveryView(r.Context(), shown, detailOptions{tab: tab, reveal: r.Method == http.MethodPost, query: q})
		switch {
		case err != nil:
			c.fail(w, r, err)
			return
		case view.Detail == nil && number > 0:
			c.noDelivery(w, r, number)
			return
		}
	}
	for i := range view.Rows {
		view.Rows[i].On = view.Rows[i].Number == shown
	}
	c.render(w, r, "deliveries", p)
}

func (c *Console) noDelivery(w http.ResponseWriter, r *http.Request, number int64) {
	c.render(w, r, "no-delivery", page{Title: "No delivery", Current: "deliveries", Status: http.StatusNotFound, Data: number})
}

func (c *Console) deliveriesView(ctx context.Context, q query) (*deliveriesView, error) {
	first := q.with("before", "")
	view := &deliveriesView{Query: q, Sandbox: c.sandbox(), Forward: c.forwardView(), Many: deliveriesPath + "/replay?" + first.values.Encode()}
	list, err := c.Inspector.List(ctx, filterOf(q, c.zone()), deliveriesShown+1)
	if err != nil {
		return nil, err
	}
	if len(list) > deliveriesShown {
		list = list[:deliveriesShown]
		view.Older = q.with("before", strconv.FormatInt(list[deliveriesShown-1].Number, 10)).Address()
	}
	if q.Get("before") != "" {
		view.Latest = first.Address()
	}
	for _, d := range list {
		view.Rows = append(view.Rows, c.deliveryRow(d, q))
	}
	for _, kind := range chipKinds {
		chip := first.with("is", kind[1])
		n, err := c.Inspector.Count(ctx, filterOf(chip, c.zone()))
		if err != nil {
			return nil, err
		}
		view.Chips = append(view.Chips, chipView{Name: kind[0], Path: chip.Address(), Count: n, Current: q.Get("is") == kind[1]})
	}
	if view.Total, err = c.Inspector.Count(ctx, inspect.Filter{}); err != nil {
		return nil, err
	}
	view.None = view.Total == 0
	view.Histogram, err = c.histogram(ctx)
	return view, err
}

// histogram shows the deliveries of the last ten minutes.
type histogram struct {
	Bars            []histogramBar
	From            string
	Count, Rejected int
}

// histogramBar is one rectangle, in the units of the SVG.
type histogramBar struct {
	Class     string
	X         int
	Y, Height float64
}

func (c *Console) histogram(ctx context.Context) (histogram, error) {
	const height = 30.0
	start := c.Now().Truncate(histogramStep).Add((1 - histogramBars) * histogramStep)
	buckets, err := c.Inspector.Histogram(ctx, start, histogramStep)
	h, largest := histogram{From: start.In(c.zone()).Format("15:04")}, 6
	for _, b := range buckets {
		largest = max(largest, b.Total)
	}
	for i, b := range buckets[:min(len(buckets), histogramBars)] {
		h.Count += b.Total
		h.Rejected += b.Rejected
		unit := (height - 3) / float64(largest)
		good, bad := max(1.5, unit*float64(b.Total-b.Rejected)), unit*float64(b.Rejected)
		class := ""
		if i == histogramBars-1 {
			class = "n"
		}
		h.Bars = append(h.Bars, histogramBar{class, 10 * i, height - good, good})
		if bad > 0 {
			h.Bars = append(h.Bars, histogramBar{"b", 10 * i, height - good - bad, bad})
		}
	}
	return h, err
}

func (c *Console) countDeliveries(ctx context.Context) int {
	n, err := c.Inspector.Count(ctx, inspect.Filter{})
	if err != nil && ctx.Err() == nil {
		c.Log.Error("console: cannot count the deliveries", "error", err)
	}
	return n
}
