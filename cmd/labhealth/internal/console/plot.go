package console

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks"
)

// plotSet is what the template plots shows: the series of a user within a span.
type plotSet struct {
	ID     string // of the element
	UserID uuid.UUID
	Span   span
	Title  string // such as 14 to 20 November 2026
	Week   bool
	Zone   string // whose times they are
	Days   string // of the span, for the script
	Axis   []axisLabel
	Offset time.Duration // of the user from UTC

	Plots  []plot
	Texts  []texts // series without numbers
	More   int     // series that are not shown
	Capped bool    // not all samples were read

	Earlier, Later, DayPath, WeekPath string
	ValuesPath, PlotsPath             string
	AsValues                          bool
	Nearest                           *nearest // if there is nothing to show
}

// nearest is a day with samples beside one without.
type nearest struct {
	Resource, Day, Path string
}

// plot is what the template plot shows. All numbers are computed here.
type plot struct {
	ID, Title, Source, Note, Label string
	Short                          bool
	Height                         string
	Grid                           []string // y of the ticks
	Ticks                          []string // labels, the highest first
	Target                         *shape
	Gaps                           []gapShape
	Bands, Lines, Dots             []string // paths
	Bars                           string   // path
	Now                            string   // x, or empty
	Unit, Values                   string   // for the script
	Facts                          []string // such as low 50
	Optional                       string   // left out on phones
	Big, BigNote                   string

	Columns []string // of the values as a table
	Rows    []valueRow
}

type shape struct{ X, Y, Width, Height string }

type gapShape struct{ X, Width, Edge string }

type valueRow struct {
	Day  string // if it differs from that of the row before
	Time string
	Text []string
}

// texts are samples that are no numbers.
type texts struct {
	Title, Source string
	Rows          []valueRow
	More          int
}

// Limits of a page.
const (
	maxSeries  = 60      // series that are shown
	maxUnits   = 4       // plots of one series
	maxSamples = 700_000 // that are read: a week with one each second
	maxTexts   = 100     // of a series
)

// plotWidth is the width of the view box. The width in pixels is that of the window.
const plotWidth = 864.0

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
	texts      texts
	assumed    time.Duration // offset of samples that have none
	assuming   bool          // there are such samples
}

// loadPlots reads the series of a user within a span.
func (c *Console) loadPlots(ctx context.Context, userID uuid.UUID, s span) (*plotSet, error) {
	all, err := c.Inspector.Store.Series(ctx, userID)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b webhooks.Series) int { return rank(a.Resource) - rank(b.Resource) })
	set := c.newPlotSet(userID, s)
	if len(all) > maxSeries {
		set.More, all = len(all)-maxSeries, all[:maxSeries]
	}
	l := &loader{console: c, span: s, now: c.Now(), kinds: map[[2]string]int{}}
	found, err := l.loadAll(ctx, all)
	if err != nil {
		return nil, err
	}
	set.Capped = l.read >= maxSamples
	set.Zone, set.Offset = l.zone(), l.offset()
	for _, one := range found {
		for _, r := range one.reductions {
			r.end = l.now.Add(l.offset()).UTC() // the offset was found while the samples were read
			if r.lines != nil {
				set.Plots = append(set.Plots, newPlot(one.of, one.texts.Source, r, len(set.Plots)))
			}
		}
		if len(one.texts.Rows) > 0 {
			set.Texts = append(set.Texts, one.texts)
		}
	}
	if len(set.Plots) == 0 && len(set.Texts) == 0 {
		set.Nearest = c.nearestDay(ctx, userID, s)
	}
	return set, nil
}

// loadAll reads several series.
func (l *loader) loadAll(ctx context.Context, all []webhooks.Series) (found []*loaded, err error) {
	for _, of := range all {
		l.kinds[[2]string{of.Resource, of.Provider}]++
	}
	for _, of := range all {
		one, err := l.load(ctx, of)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	for i, one := range found { // the offset may have been found after the series was read
		if one.assuming && l.offset() != one.assumed && l.read < maxSamples {
			if found[i], err = l.load(ctx, one.of); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
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
		names[i] = offsetName(offset)
	}
	return "times of the user, " + strings.Join(names, ", then ")
}

// offsetName formats an offset as UTC−8 or UTC+5:30.
func offsetName(offset time.Duration) string {
	if offset == 0 {
		return "UTC"
	}
	sign := "+"
	if offset < 0 {
		sign, offset = "−", -offset
	}
	name := fmt.Sprintf("UTC%s%d", sign, int(offset.Hours()))
	if minutes := int(offset.Minutes()) % 60; minutes != 0 {
		name += fmt.Sprintf(":%02d", minutes)
	}
	return name
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
	one := &loaded{of: of, assumed: l.offset(), texts: texts{Title: resourceName(of.Resource), Source: l.source(of)}}
	from, to := l.span.limits()
	offset := one.assumed
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
			if within := at.Add(own).Sub(l.span.start()); within >= 0 && within < time.Duration(l.span.days())*24*time.Hour {
				l.sawOffset(own)
			}
		} else {
			one.assuming = true
		}
		one.add(l, &stored.Sample, at, offset)
	}
	return one, nil
}

// maxOffsets is the number of offsets that are named.
const maxOffsets = 4

func (l *loader) sawOffset(offset time.Duration) {
	if !slices.Contains(l.offsets, offset) && len(l.offsets) < maxOffsets {
		l.offsets = append(l.offsets, offset)
	}
}

// add adds a sample to the reduction of its unit, or to the texts.
func (one *loaded) add(l *loader, s *webhooks.Sample, at time.Time, offset time.Duration) {
	switch {
	case s.Systolic != 0 || s.Diastolic != 0:
		one.reduction(l, s.Unit).add(at, offset, s.Systolic, s.Diastolic)
	case s.HasValue:
		one.reduction(l, s.Unit).add(at, offset, s.Value)
	default:
		text := s.Text
		if text == "" {
			text = string(s.Number())
		}
		if text == "" {
			text = "no value"
		}
		one.texts.add(l.span, at.Add(offset), text)
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

func (t *texts) add(s span, local time.Time, text string) {
	switch {
	case local.Before(s.start()) || !local.Before(s.day.AddDate(0, 0, 1)):
	case len(t.Rows) == maxTexts:
		t.More++
	default:
		shown := mask // what people wrote; the delivery shows it on demand
		if text == "" {
			shown = ""
		}
		t.Rows = append(t.Rows, valueRow{Day: shortDay(local), Time: local.Format("15:04"), Text: []string{shown}})
	}
}

// newPlot draws a reduction.
func newPlot(of webhooks.Series, source string, r *reduction, number int) plot {
	unit := unitText(of.Resource, r.unit)
	p := plot{
		ID: "plot-" + strconv.Itoa(number), Title: resourceName(of.Resource), Source: source,
		Unit: unit, Height: "120", Now: r.nowX(),
	}
	if sums(of.Resource) {
		p.drawBars(r)
	} else {
		p.drawLines(r)
	}
	p.drawGaps(r)
	if len(p.Gaps) == 0 && sums(of.Resource) && r.usual() > 0 {
		p.Note = "every " + lengthText(r.usual())
	}
	return p
}

// drawLines draws one or two lines of means, with the values of each slot between low and high.
func (p *plot) drawLines(r *reduction) {
	low, high := r.lines[0].all.low, r.lines[0].all.high
	for _, l := range r.lines[1:] {
		low, high = min(low, l.all.low), max(high, l.all.high)
	}
	if r.target[1] != 0 {
		low, high = min(low, r.target[0]), max(high, r.target[1])
	}
	s := scaleOf(low, high, 4)
	const height = 120.0
	p.setScale(s, height)
	banded := false
	for _, l := range r.lines {
		for _, part := range segments(l.slots, r.gaps()) {
			p.Lines = append(p.Lines, linePath(l.slots, part, s, height))
			if part.to == part.from+1 {
				p.Dots = append(p.Dots, p.Lines[len(p.Lines)-1])
				p.Lines = p.Lines[:len(p.Lines)-1]
			} else if spread(l.slots[part.from:part.to]) {
				banded = true
				p.Bands = append(p.Bands, bandPath(l.slots, part, s, height))
			}
		}
	}
	if r.target[1] != 0 {
		top, bottom := s.y(r.target[1], height), s.y(r.target[0], height)
		p.Target = &shape{"0", coordinate(top), coordinate(plotWidth), coordinate(bottom - top)}
	}
	p.describeLines(r, s, banded)
}

func (p *plot) setScale(s scale, height float64) {
	p.Height = coordinate(height)
	p.Ticks = s.labels()
	for _, tick := range slices.Backward(s.ticks) {
		p.Grid = append(p.Grid, coordinate(s.y(tick, height)))
	}
}

// describeLines sets the readout and the values.
func (p *plot) describeLines(r *reduction, s scale, banded bool) {
	all := r.lines[0].all
	p.BigNote = strings.TrimSpace(p.Unit + " mean")
	if banded {
		p.BigNote += ", low to high shaded"
	}
	p.Columns = []string{"Low", "Mean", "High", "Samples"}
	if len(r.lines) == 2 {
		second := r.lines[1].all
		p.Big = s.text(all.mean) + "/" + s.text(second.mean)
		p.Facts = []string{"low " + s.text(all.low) + "/" + s.text(second.low), "high " + s.text(all.high) + "/" + s.text(second.high)}
	} else {
		p.Big = s.text(all.mean)
		p.Facts = []string{"low " + s.text(all.low), "high " + s.text(all.high)}
	}
	if r.target[1] != 0 {
		p.Optional = "usual " + s.text(r.target[0]) + "–" + s.text(r.target[1]) + " shaded"
		p.BigNote = strings.TrimSpace(p.Unit + " mean")
		p.Facts = append(p.Facts, fmt.Sprintf("in range %d %%", r.inRange*100/all.n))
	}
	p.Label = fmt.Sprintf("%s to %s %s", s.text(all.low), s.text(all.high), p.Unit)
	values := make([]string, r.span.slots())
	for i := range values {
		first := r.lines[0].slots[i]
		if first.n == 0 {
			continue
		}
		row := valueRow{Text: []string{s.text(first.low), s.text(first.mean), s.text(first.high), number(first.n)}}
		values[i] = s.plain(first.mean)
		if len(r.lines) == 2 {
			second := r.lines[1].slots[i]
			values[i] += "/" + s.plain(second.mean)
			row.Text = []string{
				s.text(first.low) + "/" + s.text(second.low), s.text(first.mean) + "/" + s.text(second.mean),
				s.text(first.high) + "/" + s.text(second.high), number(first.n),
			}
		}
		p.addRow(r.span, i, row)
	}
	p.Values = strings.Join(values, ",")
}

// addRow adds the values of a slot.
func (p *plot) addRow(s span, i int, row valueRow) {
	local := s.start().Add(time.Duration(i) * s.slot())
	row.Day, row.Time = shortDay(local), local.Format("15:04")
	p.Rows = append(p.Rows, row)
}

// drawBars draws the sum of each slot. Slots are as long as the usual time between samples.
func (p *plot) drawBars(r *reduction) {
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
	if low == high {
		high = 1
	}
	s := scaleOf(low, high, 3)
	const height = 76.0
	p.Short = true
	p.setScale(s, height)
	width := plotWidth / float64(len(bars))
	var path strings.Builder
	values := make([]string, len(bars))
	p.Columns = []string{"Sum", "Samples"}
	for i, b := range bars {
		if b.n == 0 {
			continue
		}
		values[i] = s.plain(b.sum)
		p.addRow(r.span, i*group, valueRow{Text: []string{s.text(b.sum), number(b.n)}})
		if b.sum != 0 {
			fmt.Fprintf(&path, "M%s %sV%sh%sV%sz", coordinate((float64(i)+0.14)*width), coordinate(s.y(0, height)),
				coordinate(s.y(b.sum, height)), coordinate(0.72*width), coordinate(s.y(0, height)))
		}
	}
	p.Bars, p.Values = path.String(), strings.Join(values, ",")
	total := scale{decimals: min(2, s.decimals)}
	p.Big, p.BigNote = total.text(r.lines[0].all.sum), p.Unit
	p.Label = total.text(r.lines[0].all.sum) + " " + p.Unit
}

// drawGaps draws the gaps and counts them.
func (p *plot) drawGaps(r *reduction) {
	width := plotWidth / float64(r.span.slots())
	var length time.Duration
	for _, g := range r.gaps() {
		length += time.Duration(g.to-g.from) * r.span.slot()
		from, to := coordinate(float64(g.from)*width), coordinate(float64(g.to)*width)
		p.Gaps = append(p.Gaps, gapShape{from, coordinate(float64(g.to-g.from) * width), "M" + from + " 0V" + p.Height + "M" + to + " 0V" + p.Height})
	}
	switch len(p.Gaps) {
	case 0:
		return
	case 1:
		p.Note = "1 gap, " + lengthText(length)
	default:
		p.Note = fmt.Sprintf("%d gaps, %s", len(p.Gaps), lengthText(length))
	}
	p.Label += ", " + p.Note
}

// nowX returns the place of the current time, or nothing if it is not within the span.
func (r *reduction) nowX() string {
	since := r.end.Sub(r.span.start())
	whole := time.Duration(r.span.days()) * 24 * time.Hour
	if since <= 0 || since >= whole {
		return ""
	}
	return coordinate(plotWidth * since.Seconds() / whole.Seconds())
}

// part is a range of slots, to is not included. The first and the last have values.
type part struct{ from, to int }

// segments returns the parts between gaps. Slots without values that are no gap do not divide.
func segments(slots []slot, gaps []hole) []part {
	var parts []part
	open := false
	for i, s := range slots {
		if len(gaps) > 0 && i >= gaps[0].from {
			open, gaps = false, gaps[1:]
		}
		switch {
		case s.n == 0:
		case open:
			parts[len(parts)-1].to = i + 1
		default:
			parts, open = append(parts, part{i, i + 1}), true
		}
	}
	return parts
}

// spread reports whether a slot has values that differ.
func spread(slots []slot) bool {
	return slices.ContainsFunc(slots, func(s slot) bool { return s.high > s.low })
}

// linePath returns the path of the means.
func linePath(slots []slot, of part, s scale, height float64) string {
	b := make([]byte, 0, 12*(of.to-of.from))
	for i := of.from; i < of.to; i++ {
		if slots[i].n > 0 {
			b = appendPoint(b, i, len(slots), s.y(slots[i].mean, height))
		}
	}
	if of.to == of.from+1 {
		b = append(b, "h0"...) // a dot
	}
	return string(b)
}

// bandPath returns the outline of the values from low to high.
func bandPath(slots []slot, of part, s scale, height float64) string {
	b := make([]byte, 0, 24*(of.to-of.from))
	for i := of.from; i < of.to; i++ {
		if slots[i].n > 0 {
			b = appendPoint(b, i, len(slots), s.y(slots[i].high, height))
		}
	}
	for i := of.to - 1; i >= of.from; i-- {
		if slots[i].n > 0 {
			b = appendPoint(b, i, len(slots), s.y(slots[i].low, height))
		}
	}
	return string(append(b, 'Z'))
}

// appendPoint appends a point in the middle of a slot.
func appendPoint(b []byte, i, slots int, y float64) []byte {
	command := byte('L')
	if len(b) == 0 {
		command = 'M'
	}
	b = append(b, command)
	b = strconv.AppendFloat(b, round((float64(i)+0.5)*plotWidth/float64(slots), 2), 'f', -1, 64)
	b = append(b, ' ')
	return strconv.AppendFloat(b, round(y, 1), 'f', -1, 64)
}
