package console

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// plotSet is what the template plots shows: the series of a user within a span.
type plotSet struct {
	Title  string // such as 14 to 20 November 2026
	Week   bool
	Zone   string        // whose times they are
	Offset time.Duration // of the user from UTC

	Plots  []plot
	Texts  string // series without numbers
	More   int    // series that are not shown
	Capped bool   // not all samples were read

	Earlier, Later, DayPath, WeekPath string
	OtherPath                         string // of the values or the plots
	AsValues                          bool
	Nearest                           *nearest // if there is nothing to show
}

// nearest is a day with samples beside one without.
type nearest struct {
	Resource, Day, Path string
}

// plot is what the template plot shows. The script draws Data.
type plot struct {
	ID, Title, Source, Note, Label string
	Short                          bool
	Data                           string // plotData in JSON; empty if the values cannot be drawn
	Unit                           string
	Facts                          []string // such as low 50
	Optional                       string   // left out on phones
	Big, BigNote                   string

	Columns []string // of the values as a table
	Rows    []valueRow
}

// plotData is what the script draws. Times are in seconds, by the clock of the user written as UTC.
type plotData struct {
	From   int64        `json:"from"`
	To     int64        `json:"to"`
	Step   int64        `json:"step"`  // of the cross-hair
	Usual  int64        `json:"usual"` // between two values
	X      []int64      `json:"x"`
	Y      [][]*float64 `json:"y"` // sums, or the mean, low and high of each line; null ends a line
	Bars   bool         `json:"bars,omitempty"`
	Gaps   [][2]int64   `json:"gaps,omitempty"`
	Target []float64    `json:"target,omitempty"`
	Now    int64        `json:"now,omitempty"`
}

type valueRow struct {
	Day  string // if it differs from that of the row before
	Time string
	Text []string
}

// Limits of a page.
const (
	maxSeries  = 60      // series that are shown
	maxUnits   = 4       // plots of one series
	maxSamples = 700_000 // that are read: a week with one each second
)

// loader reads the series of a user.
type loader struct {
	console *Console
	span    span
	now     time.Time
	kinds   map[[2]string]int // series of a resource and a provider
	offsets []time.Duration   // that samples within the span have, each once
	read    int
}

// loaded is what was read of one series.
type loaded struct {
	of         webhooks.Series
	reductions []*reduction // one for each unit
	texts      bool         // there are samples without a number
}

// loadPlots reads the series of a user within a span.
func (c *Console) loadPlots(ctx context.Context, userID uuid.UUID, s span, q query) (*plotSet, error) {
	all, err := c.Inspector.Store.Series(ctx, userID)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b webhooks.Series) int { return rank(a.Resource) - rank(b.Resource) })
	at := func(s span) string { return s.within(q).Beside(userID) }
	set := &plotSet{
		Title: s.title(), Week: s.week, AsValues: q.Get("as") == "values", Earlier: at(s.move(-1)), Later: at(s.move(1)),
		DayPath: at(span{s.day, false}), WeekPath: at(span{s.day, true}),
		OtherPath: s.within(q.with("as", map[bool]string{false: "values"}[q.Get("as") == "values"])).Beside(userID),
	}
	if len(all) > maxSeries {
		set.More, all = len(all)-maxSeries, all[:maxSeries]
	}
	l := &loader{console: c, span: s, now: c.Now(), kinds: map[[2]string]int{}}
	if err := l.findOffset(ctx, all); err != nil {
		return nil, err
	}
	var found []*loaded
	for _, of := range all {
		l.kinds[[2]string{of.Resource, of.Provider}]++
		one, err := l.load(ctx, of)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	set.Capped = l.read >= maxSamples
	set.Zone, set.Offset = l.zone(), l.offset()
	var texts []string
	for _, one := range found {
		for _, r := range one.reductions {
			if r.lines != nil {
				set.Plots = append(set.Plots, newPlot(one.of, l.source(one.of), r, len(set.Plots)))
			}
		}
		if one.texts {
			texts = append(texts, resourceName(one.of.Resource)+" ("+l.source(one.of)+")")
		}
	}
	set.Texts = strings.Join(texts, ", ")
	if len(set.Plots) == 0 && set.Texts == "" {
		set.Nearest = c.nearestDay(ctx, userID, s, at)
	}
	return set, nil
}

// rank is the place of a resource among the plots.
func rank(resource string) int {
	if i := slices.Index([]string{"heartrate", "glucose", "steps"}, resource); i >= 0 {
		return i
	}
	return 3
}

// offset is that of samples that have none.
func (l *loader) offset() time.Duration {
	if len(l.offsets) == 0 {
		return 0
	}
	return l.offsets[0]
}

// zone says whose times are shown.
func (l *loader) zone() string {
	if len(l.offsets) == 0 {
		return "times in UTC"
	}
	names := make([]string, len(l.offsets))
	for i, offset := range l.offsets {
		names[i] = time.Unix(0, 0).In(time.FixedZone("", int(offset.Seconds()))).Format("UTC-07:00")
	}
	return "times of the user, " + strings.Join(names, ", then ")
}

// source names the source of a series, with the type only if there are several.
func (l *loader) source(of webhooks.Series) string {
	if l.kinds[[2]string{of.Resource, of.Provider}] == 1 && of.Provider != "" {
		of.SourceType = ""
	}
	return sourceText(of)
}

// load reads a series.
func (l *loader) load(ctx context.Context, of webhooks.Series) (*loaded, error) {
	one := &loaded{of: of}
	from, to := l.span.limits()
	offset := l.offset()
	for stored, err := range l.console.Inspector.Store.Range(ctx, of, from, to) {
		if err != nil {
			return nil, err
		}
		if l.read++; l.read > maxSamples {
			break
		}
		at := time.Unix(0, stored.Key.UnixNano).UTC()
		if own, ok := offsetOf(&stored.Sample); ok {
			offset = own
			l.sawOffset(at, own)
		}
		one.add(l, &stored.Sample, at, offset)
	}
	return one, nil
}

const (
	maxOffsets    = 4      // that are named
	maxOffsetless = 10_000 // samples of a series that are searched for one with an offset
)

// sawOffset notes the offset of a sample, if this is within the span.
func (l *loader) sawOffset(at time.Time, offset time.Duration) bool {
	within := at.Add(offset).Sub(l.span.start())
	if within < 0 || within >= time.Duration(l.span.days())*24*time.Hour {
		return false
	}
	if !slices.Contains(l.offsets, offset) && len(l.offsets) < maxOffsets {
		l.offsets = append(l.offsets, offset)
	}
	return true
}

// findOffset looks for the offset of samples that have none: that of the first other one.
func (l *loader) findOffset(ctx context.Context, all []webhooks.Series) error {
	from, to := l.span.limits()
	for _, of := range all {
		n := 0
		for stored, err := range l.console.Inspector.Store.Range(ctx, of, from, to) {
			if err != nil {
				return err
			}
			own, ok := offsetOf(&stored.Sample)
			if ok && l.sawOffset(time.Unix(0, stored.Key.UnixNano).UTC(), own) {
				return nil
			}
			if n++; n == maxOffsetless {
				break
			}
		}
	}
	return nil
}

// add adds a sample to the reduction of its unit, or notes that it is no number.
func (one *loaded) add(l *loader, s *webhooks.Sample, at time.Time, offset time.Duration) {
	switch {
	case s.Systolic != 0 || s.Diastolic != 0:
		one.reduction(l, s.Unit).add(at, offset, s.Systolic, s.Diastolic)
	case s.HasValue:
		one.reduction(l, s.Unit).add(at, offset, s.Value)
	default:
		local := at.Add(offset)
		one.texts = one.texts || !local.Before(l.span.start()) && local.Before(l.span.day.AddDate(0, 0, 1))
	}
}

// reduction returns the reduction of a unit. Units beyond the limit share the last one.
func (one *loaded) reduction(l *loader, unit string) *reduction {
	for i, r := range one.reductions {
		if r.unit == unit || i == maxUnits-1 {
			return r
		}
	}
	r := newReduction(l.span, unit, l.now.Add(l.offset()).UTC())
	r.target = targetOf(one.of.Resource, unit)
	one.reductions = append(one.reductions, r)
	return r
}

// newPlot describes a reduction.
func newPlot(of webhooks.Series, source string, r *reduction, number int) plot {
	p := plot{
		ID: "plot-" + strconv.Itoa(number), Title: resourceName(of.Resource), Source: source, Unit: unitText(of.Resource, r.unit), Short: summed[of.Resource],
	}
	start := r.span.start().Unix()
	d := plotData{
		From: start, To: r.span.day.AddDate(0, 0, 1).Unix(), Step: int64(r.span.slot().Seconds()), Bars: p.Short,
		Usual: int64(max(r.usual(), r.span.slot()).Seconds()),
	}
	if now := r.end.Unix(); now > d.From && now < d.To {
		d.Now = now
	}
	var missing time.Duration
	for _, g := range r.gaps() {
		missing += time.Duration(g.to-g.from) * r.span.slot()
		d.Gaps = append(d.Gaps, [2]int64{start + int64(g.from)*d.Step, start + int64(g.to)*d.Step})
	}
	if p.Short {
		p.addBars(r, &d)
	} else {
		p.addLines(r, &d)
	}
	switch {
	case len(d.Gaps) > 0:
		p.Note = countOf(len(d.Gaps), "gap") + ", " + age(missing)
		p.Label += ", " + p.Note
	case p.Short && r.usual() > 0:
		p.Note = "every " + age(r.usual())
	}
	p.Data = d.json()
	return p
}

// json returns the data for the script, or nothing if a value is too large or too small to draw.
func (d *plotData) json() string {
	const largest, smallest = 1e100, 1e-100
	for _, values := range d.Y {
		for _, v := range values {
			if v != nil && (math.Abs(*v) > largest || *v != 0 && math.Abs(*v) < smallest) {
				return ""
			}
		}
	}
	b, err := json.Marshal(d)
	if err != nil {
		return ""
	}
	return string(b)
}

// addLines adds one or two lines of means, with the values of each slot from low to high.
func (p *plot) addLines(r *reduction, d *plotData) {
	all, second := r.lines[0].all, slot{}
	low, high := all.low, all.high
	if len(r.lines) == 2 {
		second = r.lines[1].all
		low, high = min(low, second.low), max(high, second.high)
	}
	if r.target[1] != 0 {
		low, high = min(low, r.target[0]), max(high, r.target[1])
		d.Target = r.target[:]
	}
	decimals := decimalsOf(low, high, 4)
	text := func(a, b float64) string {
		if len(r.lines) == 1 {
			return readable(decimal(a, decimals))
		}
		return readable(decimal(a, decimals)) + "/" + readable(decimal(b, decimals))
	}
	banded := false
	d.Y = make([][]*float64, 3*len(r.lines))
	gaps := r.gaps()
	for i, first := range r.lines[0].slots {
		if len(gaps) > 0 && i >= gaps[0].from && i > 0 { // ends the line
			gaps = gaps[1:]
			d.add(i, make([]*float64, len(d.Y)))
		}
		if first.n == 0 {
			continue
		}
		var values []*float64
		for _, l := range r.lines {
			s := l.slots[i]
			banded = banded || s.high > s.low
			for _, v := range []float64{s.mean, s.low, s.high} {
				values = append(values, new(round(v, decimals)))
			}
		}
		d.add(i, values)
		var other slot
		if len(r.lines) == 2 {
			other = r.lines[1].slots[i]
		}
		p.addRow(r.span, i, text(first.low, other.low), text(first.mean, other.mean), text(first.high, other.high), number(first.n))
	}
	p.Columns = []string{"Low", "Mean", "High", "Samples"}
	p.Big = text(all.mean, second.mean)
	p.Facts = []string{"low " + text(all.low, second.low), "high " + text(all.high, second.high)}
	p.BigNote = strings.TrimSpace(p.Unit + " mean")
	switch {
	case r.target[1] != 0:
		p.Optional = "usual " + readable(decimal(r.target[0], decimals)) + "–" + readable(decimal(r.target[1], decimals)) + " shaded"
		p.Facts = append(p.Facts, fmt.Sprintf("in range %d %%", r.inRange*100/all.n))
	case banded:
		p.BigNote += ", low to high shaded"
	}
	p.Label = strings.TrimSpace(readable(decimal(all.low, decimals)) + " to " + readable(decimal(all.high, decimals)) + " " + p.Unit)
}

// add adds the values of a slot, at its middle.
func (d *plotData) add(slot int, values []*float64) {
	d.X = append(d.X, d.From+int64(slot)*d.Step+d.Step/2)
	for i, v := range values {
		d.Y[i] = append(d.Y[i], v)
	}
}

// addRow adds the values of a slot to the table.
func (p *plot) addRow(s span, i int, texts ...string) {
	local := s.start().Add(time.Duration(i) * s.slot())
	p.Rows = append(p.Rows, valueRow{shortDay(local), local.Format("15:04"), texts})
}

// addBars adds the sum of each slot. Slots are as long as the usual time between samples.
func (p *plot) addBars(r *reduction, d *plotData) {
	group := 1
	if usual := int(r.usual() / r.span.slot()); usual > 1 && usual <= 24 && r.span.slots()%usual == 0 {
		group = usual
	}
	bars := make([]slot, r.span.slots()/group)
	for i, s := range r.lines[0].slots {
		bars[i/group].merge(s)
	}
	low, high := 0.0, 0.0
	for _, b := range bars {
		low, high = min(low, b.sum), max(high, b.sum)
	}
	decimals := decimalsOf(low, high, 3)
	text := func(v float64) string { return readable(decimal(v, decimals)) }
	p.Columns = []string{"Sum", "Samples"}
	d.Step *= int64(group)
	d.Y = make([][]*float64, 1)
	for i, b := range bars {
		if b.n == 0 {
			d.add(i, []*float64{nil})
			continue
		}
		d.add(i, []*float64{new(round(b.sum, decimals))})
		p.addRow(r.span, i*group, text(b.sum), number(b.n))
	}
	decimals = min(2, decimals)
	p.Big, p.BigNote = text(r.lines[0].all.sum), p.Unit
	p.Label = strings.TrimSpace(p.Big + " " + p.Unit)
}
