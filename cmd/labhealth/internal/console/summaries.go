package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// summaryCard is what the template summary shows.
type summaryCard struct {
	Title, Source string
	Big, BigNote  string
	Mini          *mini
	Key           []keyItem
	Fields        []field // in place of a big number
	MoreFields    int
	Version       string
	Delivery      int64 // 0 if it is not kept

	order int
}

type keyItem struct{ Class, Text string }

type field struct{ Name, Value string }

// mini is a small picture, 260 wide and 26 high.
type mini struct {
	Label string
	Rects []miniRect
	Path  string
}

type miniRect struct{ Class, X, Y, Width, Height string }

const (
	miniWidth  = 260.0
	miniHeight = 26.0
	miniMost   = 500 // rectangles
)

func newMiniRect(class string, x, y, width, height float64) miniRect {
	return miniRect{class, coordinate(x), coordinate(y), coordinate(width), coordinate(height)}
}

// Limits of the summaries of a page.
const (
	maxSummaries = 20_000 // that are read
	maxCards     = 24
	maxFields    = 9
)

// summaries are those that the cards of a day need.
type summaries struct {
	day        string
	offset     time.Duration // of the user from UTC
	shown      []sqlstore.StoredSummary
	activities map[string]float64 // steps, by day
	weights    map[string]float64 // by day
	cycles     map[uuid.UUID]*webhooks.SleepCycle
}

// summaryCards returns the summaries of a day.
func (c *Console) summaryCards(ctx context.Context, userID uuid.UUID, day time.Time, offset time.Duration) ([]summaryCard, error) {
	found := &summaries{
		day: day.Format(time.DateOnly), offset: offset, activities: map[string]float64{}, weights: map[string]float64{},
		cycles: map[uuid.UUID]*webhooks.SleepCycle{},
	}
	n := 0
	for s, err := range c.Inspector.Store.UserSummaries(ctx, userID, "") {
		if err != nil {
			return nil, err
		}
		if n++; n > maxSummaries {
			break
		}
		found.add(s)
	}
	var cards []summaryCard
	for _, s := range found.shown {
		if len(cards) == maxCards {
			break
		}
		one, err := c.cardOf(ctx, found, s, day)
		if err != nil {
			return nil, err
		}
		cards = append(cards, one)
	}
	slices.SortStableFunc(cards, func(a, b summaryCard) int { return cmp.Compare(a.order, b.order) })
	return cards, nil
}

// add keeps what is needed of a summary.
func (f *summaries) add(s sqlstore.StoredSummary) {
	switch v := s.Data.(type) {
	case *webhooks.Activity:
		if v.Steps != nil {
			f.activities[v.CalendarDate.String()] = *v.Steps
		}
	case *webhooks.Body:
		if v.Weight != nil {
			f.weights[v.CalendarDate.String()] = *v.Weight
		}
	case *webhooks.SleepCycle:
		f.cycles[v.SleepID] = v
	default: // needed for its own card only
	}
	if dayOf(s.Data) == f.day || s.Key.Resource == "profile" || f.duringCycle(s.Data) {
		f.shown = append(f.shown, s)
	}
}

// dayOf returns the day of a summary; empty if it has none.
func dayOf(p webhooks.Payload) string {
	if v, ok := p.(*webhooks.SleepCycle); ok {
		return v.SessionEnd.Format(time.DateOnly)
	}
	if v, ok := p.(*webhooks.Electrocardiogram); ok {
		return v.SessionStart.Format(time.DateOnly)
	}
	if date, ok := inspect.FieldOf[labhealth.Date](p, "CalendarDate"); ok {
		return date.String()
	}
	return ""
}

// duringCycle reports whether the day is in a menstrual cycle.
func (f *summaries) duringCycle(p webhooks.Payload) bool {
	v, ok := p.(*webhooks.MenstrualCycle)
	if !ok {
		return false
	}
	end := v.PeriodStart.String()
	for _, date := range []*labhealth.Date{v.PeriodEnd, v.CycleEnd} {
		if date != nil {
			end = max(end, date.String())
		}
	}
	return v.PeriodStart.String() <= f.day && f.day <= end
}

// cardOf returns the card of a summary.
func (c *Console) cardOf(ctx context.Context, f *summaries, s sqlstore.StoredSummary, day time.Time) (one summaryCard, err error) {
	switch v := s.Data.(type) {
	case *webhooks.Sleep:
		one = sleepCard(v, f.cycles[v.ID])
	case *webhooks.Activity:
		one = activityCard(v, f, day)
	case *webhooks.Workout:
		one = workoutCard(v)
		if one.Mini == nil {
			one.Mini, err = c.workoutMini(ctx, s.Key.UserID, v)
		}
	case *webhooks.Body:
		one = bodyCard(v, f, day)
	default:
		one = fieldCard(s.Data)
	}
	if err != nil {
		return summaryCard{}, err
	}
	one.Title = resourceName(s.Key.Resource)
	source, updated := originOf(s.Data)
	one.Source = firstChars(source, 40)
	versions, number, err := c.Inspector.Versions(ctx, s)
	if err != nil {
		return summaryCard{}, err
	}
	one.Delivery = number
	if versions > 0 {
		one.Version = "Version " + strconv.Itoa(versions)
	}
	if !updated.IsZero() {
		one.Version = strings.TrimPrefix(one.Version+", "+updated.UTC().Add(f.offset).Format("2 Jan 15:04"), ", ")
	}
	return one, nil
}

// originOf returns the provider of a summary, and when it last changed.
func originOf(p webhooks.Payload) (provider string, updated time.Time) {
	source, _ := inspect.FieldOf[webhooks.Source](p, "Source")
	updated, _ = inspect.FieldOf[time.Time](p, "UpdatedAt")
	return source.ProviderSlug(), updated
}

// stage is how a stage of sleep is drawn. The numbers are those that the embedded service uses: no
// document gives them.
type stage struct {
	number int64
	class  string
	y      float64
	name   string
}

var stages = []stage{{4, "c", 0, "Awake"}, {3, "ac", 7, "REM"}, {2, "b", 14, "Light"}, {1, "a", 21, "Deep"}}

// sleepCard shows a sleep with its stages.
func sleepCard(v *webhooks.Sleep, cycle *webhooks.SleepCycle) summaryCard {
	one := summaryCard{order: 1, Big: fmt.Sprintf("%d h %02d", v.Total/3600, abs(v.Total/60%60)), BigNote: "min"}
	seconds := []int64{v.Awake, v.REM, v.Light, v.Deep}
	for i, s := range stages {
		one.Key = append(one.Key, keyItem{s.class, fmt.Sprintf("%s %d:%02d", s.name, seconds[i]/3600, abs(seconds[i]/60%60))})
	}
	if v.Score != nil {
		one.Key = append(one.Key, keyItem{"", fmt.Sprintf("score %d", *v.Score)})
	}
	one.Mini = hypnogram(sleepStages(v, cycle))
	if one.Mini == nil {
		one.Mini = sleepShares(seconds)
	}
	return one
}

func abs(n int64) int64 { return max(n, -n) }

// stagePart is a stage of sleep, in seconds.
type stagePart struct {
	number   int64
	from, to float64
}

// sleepStages returns the stages of a sleep, from its cycle or from its stream.
func sleepStages(v *webhooks.Sleep, cycle *webhooks.SleepCycle) (parts []stagePart) {
	if cycle != nil {
		n := min(len(cycle.StageType), len(cycle.StageStartOffsetSecond), len(cycle.StageEndOffsetSecond))
		for i := range n {
			parts = append(parts, stagePart{cycle.StageType[i], float64(cycle.StageStartOffsetSecond[i]), float64(cycle.StageEndOffsetSecond[i])})
		}
		return parts
	}
	stream := v.SleepStream //lint:ignore SA1019 deliveries may have it
	if stream == nil {
		return nil
	}
	for _, s := range stream.Hypnogram {
		if s.Start != nil && s.End != nil {
			parts = append(parts, stagePart{int64(s.Value), s.Start.Sub(v.BedtimeStart).Seconds(), s.End.Sub(v.BedtimeStart).Seconds()})
		}
	}
	return parts
}

// hypnogram draws stages one after the other.
func hypnogram(parts []stagePart) *mini {
	if len(parts) == 0 || len(parts) > miniMost {
		return nil
	}
	first, last := parts[0].from, parts[0].to
	for _, p := range parts {
		first, last = min(first, p.from), max(last, p.to)
	}
	if last <= first {
		return nil
	}
	m := &mini{Label: "Stages over the night"}
	for _, p := range parts {
		i := slices.IndexFunc(stages, func(s stage) bool { return s.number == p.number })
		if i >= 0 && p.to > p.from {
			x, to := (p.from-first)/(last-first)*miniWidth, (p.to-first)/(last-first)*miniWidth
			m.Rects = append(m.Rects, newMiniRect(stages[i].class, x, stages[i].y, max(1, to-x-1), 5))
		}
	}
	return m
}

// sleepShares draws how long each stage was.
func sleepShares(seconds []int64) *mini {
	var total float64
	for _, n := range seconds {
		if n < 0 {
			return nil
		}
		total += float64(n)
	}
	if total == 0 {
		return nil
	}
	m, x := &mini{Label: "Length of the stages"}, 0.0
	for i, n := range seconds {
		width := float64(n) / total * miniWidth
		if n > 0 {
			m.Rects = append(m.Rects, newMiniRect(stages[i].class, x, 8, max(1, width-1), 10))
		}
		x += width
	}
	return m
}

// activityCard shows the steps of a day, and those of the days before.
func activityCard(v *webhooks.Activity, f *summaries, day time.Time) summaryCard {
	one := summaryCard{order: 2, Big: "no", BigNote: "steps"}
	if v.Steps != nil {
		one.Big = readable(decimal(*v.Steps, 0))
	}
	one.addKey(v.Distance, 0.001, 1, "km")
	one.addKey(v.CaloriesActive, 1, 0, "kcal active")
	one.addKey(v.CaloriesTotal, 1, 0, "kcal total")
	one.addKey(v.FloorsClimbed, 1, 0, "floors")
	var highest float64
	for i := range 7 {
		highest = max(highest, f.activities[day.AddDate(0, 0, -i).Format(time.DateOnly)])
	}
	if highest <= 0 {
		return one
	}
	one.Mini = &mini{Label: "Steps of the last seven days"}
	const width = miniWidth / 7
	for i := range 7 {
		class := "c"
		if i == 6 {
			class = "ac"
		}
		steps, ok := f.activities[day.AddDate(0, 0, i-6).Format(time.DateOnly)]
		if height := max(1, steps/highest*miniHeight); ok && steps >= 0 {
			one.Mini.Rects = append(one.Mini.Rects, newMiniRect(class, float64(i)*width, miniHeight-height, width-4.5, height))
		}
	}
	return one
}

// addKey adds a number with its unit, if there is one.
func (c *summaryCard) addKey(v *float64, factor float64, decimals int, unit string) {
	if v != nil {
		c.Key = append(c.Key, keyItem{"", readable(decimal(finite(*v*factor), decimals)) + " " + unit})
	}
}

// workoutCard shows the length of a workout.
func workoutCard(v *webhooks.Workout) summaryCard {
	length := v.TimeEnd.Sub(v.TimeStart)
	if v.MovingTime != nil && *v.MovingTime >= 0 && *v.MovingTime < 1e9 {
		length = time.Duration(*v.MovingTime) * time.Second
	}
	minutes := int64(length / time.Minute)
	one := summaryCard{order: 3, Big: fmt.Sprintf("%d:%02d", minutes, abs(int64(length/time.Second%60))), BigNote: "min"}
	if name := cmp.Or(v.Sport.Name, v.Sport.Slug); name != "" {
		one.BigNote += " " + strings.ToLower(firstChars(name, 40))
	}
	one.addKey(v.Distance, 0.001, 1, "km")
	if v.AverageHR != nil {
		one.Key = append(one.Key, keyItem{"", fmt.Sprintf("mean %d bpm", *v.AverageHR)})
	}
	if v.MaxHR != nil {
		one.Key = append(one.Key, keyItem{"", fmt.Sprintf("high %d bpm", *v.MaxHR)})
	}
	one.addKey(v.Calories, 1, 0, "kcal")
	return one
}

// workoutMini draws the heart rate during a workout, or how long it was in each zone.
func (c *Console) workoutMini(ctx context.Context, userID uuid.UUID, v *webhooks.Workout) (*mini, error) {
	length := v.TimeEnd.Sub(v.TimeStart)
	if length <= 0 || length > 24*time.Hour {
		return zonesMini(v.HRZones), nil
	}
	var slots [65]slot
	var all slot
	for s, err := range c.Inspector.Store.UserSamples(ctx, userID, "heartrate", v.TimeStart, v.TimeEnd) {
		if err != nil {
			return nil, err
		}
		i := int(float64(len(slots)) * float64(time.Unix(0, s.Key.UnixNano).Sub(v.TimeStart)) / float64(length))
		if s.Sample.HasValue && isFinite(s.Sample.Value) && i >= 0 && i < len(slots) {
			slots[i].add(s.Sample.Value)
			all.add(s.Sample.Value)
		}
		if all.n == 20_000 {
			break
		}
	}
	if all.n < 2 || all.high == all.low {
		return zonesMini(v.HRZones), nil
	}
	var path []byte
	for i, s := range slots {
		if s.n == 0 {
			continue
		}
		command := byte('L')
		if path == nil {
			command = 'M'
		}
		y := 1 + (miniHeight-2)*(1-(s.mean/2-all.low/2)/(all.high/2-all.low/2))
		path = fmt.Appendf(path, "%c%s %s", command, coordinate(float64(i)/float64(len(slots)-1)*miniWidth), coordinate(y))
	}
	return &mini{Label: "Heart rate during the workout", Path: string(path)}, nil
}

// zonesMini draws how long a workout was in each zone of the heart rate.
func zonesMini(zones []int64) *mini {
	var highest int64
	for _, n := range zones {
		highest = max(highest, n)
	}
	if highest == 0 || len(zones) > 20 {
		return nil
	}
	m, width := &mini{Label: "Time in each zone of the heart rate, from low to high"}, miniWidth/float64(len(zones))
	for i, n := range zones {
		if n > 0 {
			height := max(1, float64(n)/float64(highest)*miniHeight)
			m.Rects = append(m.Rects, newMiniRect("ac", float64(i)*width, miniHeight-height, width-4.5, height))
		}
	}
	return m
}

// bodyCard shows the weight, and that of the 30 days before.
func bodyCard(v *webhooks.Body, f *summaries, day time.Time) summaryCard {
	one := summaryCard{order: 4, Big: "no", BigNote: "weight"}
	if v.Weight != nil {
		one.Big, one.BigNote = readable(decimal(*v.Weight, 1)), "kg"
	}
	one.addKey(v.Fat, 1, 1, "% fat")
	if v.BodyMassIndex != nil {
		one.Key = append(one.Key, keyItem{"", "BMI " + readable(decimal(*v.BodyMassIndex, 1))})
	}
	one.addKey(v.MuscleMassPercentage, 1, 1, "% muscle")
	var all slot
	const days = 30
	for i := range days {
		if weight, ok := f.weights[day.AddDate(0, 0, -i).Format(time.DateOnly)]; ok {
			all.add(weight)
		}
	}
	if all.n < 2 {
		return one
	}
	var path []byte
	for i := range days {
		if weight, ok := f.weights[day.AddDate(0, 0, i+1-days).Format(time.DateOnly)]; ok {
			command := byte('L')
			if path == nil {
				command = 'M'
			}
			y := 1 + (miniHeight-2)*(1-(weight-all.low)/max(all.high-all.low, 1))
			path = fmt.Appendf(path, "%c%s %s", command, coordinate(float64(i)/(days-1)*miniWidth), coordinate(y))
		}
	}
	one.Mini = &mini{Label: "Weight over 30 days", Path: string(path)}
	return one
}

// unshown are fields that every summary has, or that the card shows in another way.
var unshown = map[string]bool{
	"id": true, "user_id": true, "source": true, "calendar_date": true, "date": true, "created_at": true, "updated_at": true,
	"source_provider": true, "source_type": true, "source_app_id": true, "source_device_id": true, "source_id": true, "priority_id": true,
	"provider_id": true, "sleep_id": true,
}

// personal are fields that describe a person. The console does not show them here.
var personal = map[string]bool{"birth_date": true, "gender": true, "sex": true}

// fieldCard shows the fields of a summary of another resource.
func fieldCard(p webhooks.Payload) summaryCard {
	one := summaryCard{order: 5}
	raw, ok := p.(interface{ RawJSON() json.RawMessage })
	if !ok {
		return one
	}
	decoder := json.NewDecoder(bytes.NewReader(raw.RawJSON()))
	if t, err := decoder.Token(); err != nil || t != json.Delim('{') {
		return one
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			break
		}
		key, _ := name.(string)
		text := valueText(value)
		switch {
		case unshown[key] || text == "":
			continue
		case len(one.Fields) == maxFields:
			one.MoreFields++
			continue
		case personal[key]:
			text = "not shown"
		}
		one.Fields = append(one.Fields, field{strings.ReplaceAll(firstChars(key, 40), "_", " "), text})
	}
	return one
}

// valueText formats a JSON value; empty if it is null.
func valueText(value json.RawMessage) string {
	switch value[0] {
	case 'n':
		return ""
	case '"':
		var text string
		if json.Unmarshal(value, &text) != nil {
			return ""
		}
		if t, err := time.Parse(time.RFC3339, text); err == nil {
			return t.Format("2 Jan 15:04")
		}
		return firstChars(text, 80)
	case '[':
		var all []json.RawMessage
		if json.Unmarshal(value, &all) != nil || len(all) == 0 {
			return ""
		}
		return countOf(len(all), "entry")
	case '{':
		var all map[string]json.RawMessage
		if json.Unmarshal(value, &all) != nil || len(all) == 0 {
			return ""
		}
		if v, ok := all["value"]; ok && v[0] != '{' && v[0] != '[' {
			return strings.TrimSpace(valueText(v) + " " + valueText(orNull(all["unit"])))
		}
		return countOf(len(all), "field")
	}
	return firstChars(string(value), 40)
}

func orNull(value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return json.RawMessage("null")
	}
	return value
}
