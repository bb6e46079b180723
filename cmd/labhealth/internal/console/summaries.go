package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
	Fields        []scalar // in place of a big number
	MoreFields    int
	Version       string
	Delivery      int64 // 0 if it is not kept

	order int
}

type keyItem struct{ Class, Text string }

// mini is a small picture. Its numbers are those of the data: the browser scales the box.
type mini struct {
	Label         string
	X             float64 // where the box begins
	Width, Height float64
	Rects         []miniRect
	Points        string // of a line
}

type miniRect struct {
	Class               string
	X, Y, Width, Height float64
}

// Limits of the summaries of a page.
const (
	maxSummaries = 20_000 // that are read
	maxCards     = 24
	maxFields    = 9
	maxPoints    = 500 // of a small picture
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
	for _, s := range found.shown[:min(len(found.shown), maxCards)] {
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
		one = activityCard(v, f.activities, day)
	case *webhooks.Workout:
		one = workoutCard(v)
	case *webhooks.Body:
		one = bodyCard(v, f.weights, day)
	default:
		one = fieldCard(s.Data)
	}
	one.Title = resourceName(s.Key.Resource)
	source, _ := inspect.FieldOf[webhooks.Source](s.Data, "Source")
	updated, _ := inspect.FieldOf[time.Time](s.Data, "UpdatedAt")
	one.Source = firstChars(source.ProviderSlug(), 40)
	versions, number, err := c.Inspector.Versions(ctx, s)
	one.Delivery = number
	if versions > 0 {
		one.Version = "Version " + strconv.Itoa(versions)
	}
	if !updated.IsZero() {
		one.Version = strings.TrimPrefix(one.Version+", "+updated.UTC().Add(f.offset).Format("2 Jan 15:04"), ", ")
	}
	return one, err
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

// hours formats seconds as 7:05.
func hours(seconds int64) string {
	return fmt.Sprintf("%d:%02d", seconds/3600, max(seconds/60%60, -(seconds/60%60)))
}

// sleepCard shows a sleep with its stages: over the night if its cycle is stored, or else how long
// each was.
func sleepCard(v *webhooks.Sleep, cycle *webhooks.SleepCycle) summaryCard {
	one := summaryCard{order: 1, Big: strings.Replace(hours(v.Total), ":", " h ", 1), BigNote: "min", Mini: hypnogram(cycle)}
	shares := &mini{Label: "Length of the stages", Height: 26}
	for i, seconds := range []int64{v.Awake, v.REM, v.Light, v.Deep} {
		one.Key = append(one.Key, keyItem{stages[i].class, stages[i].name + " " + hours(seconds)})
		if seconds > 0 {
			shares.Rects = append(shares.Rects, miniRect{stages[i].class, shares.Width, 8, float64(seconds), 10})
			shares.Width += float64(seconds)
		}
	}
	if v.Score != nil {
		one.Key = append(one.Key, keyItem{"", fmt.Sprintf("score %d", *v.Score)})
	}
	if one.Mini == nil && shares.Width > 0 {
		one.Mini = shares
	}
	return one
}

// hypnogram draws the stages of a sleep one after the other.
func hypnogram(cycle *webhooks.SleepCycle) *mini {
	if cycle == nil {
		return nil
	}
	from, to := cycle.StageStartOffsetSecond, cycle.StageEndOffsetSecond
	n := min(len(cycle.StageType), len(from), len(to))
	if n == 0 || n > maxPoints {
		return nil
	}
	m := &mini{Label: "Stages over the night", X: float64(slices.Min(from[:n])), Height: 26}
	m.Width = float64(slices.Max(to[:n])) - m.X
	for i, number := range cycle.StageType[:n] {
		at := slices.IndexFunc(stages, func(s stage) bool { return s.number == number })
		if at >= 0 && to[i] > from[i] {
			m.Rects = append(m.Rects, miniRect{stages[at].class, float64(from[i]), stages[at].y, float64(to[i] - from[i]), 5})
		}
	}
	if m.Width <= 0 {
		return nil
	}
	return m
}

// bars draws numbers side by side.
func bars(label string, values []float64) *mini {
	if len(values) == 0 || len(values) > 20 || slices.Max(values) <= 0 {
		return nil
	}
	m := &mini{Label: label, Width: float64(len(values)), Height: slices.Max(values)}
	for i, v := range values {
		if v > 0 {
			v = max(v, m.Height/26) // a pixel
			m.Rects = append(m.Rects, miniRect{"bar", float64(i), m.Height - v, 0.87, v})
		}
	}
	return m
}

// curve draws points from left to right.
func curve(label string, x, y []float64) *mini {
	if len(y) < 2 || len(y) > maxPoints {
		return nil
	}
	low, high := slices.Min(y), slices.Max(y)
	m := &mini{Label: label, X: x[0], Width: x[len(x)-1] - x[0], Height: max(high-low, 1)}
	for i := range y {
		m.Points += fmt.Sprintf("%g,%g ", x[i], high-y[i])
	}
	if m.Width <= 0 || !isFinite(m.Height) {
		return nil
	}
	return m
}

// activityCard shows the steps of a day, and those of the days before.
func activityCard(v *webhooks.Activity, steps map[string]float64, day time.Time) summaryCard {
	one := summaryCard{order: 2, Big: "no", BigNote: "steps"}
	if v.Steps != nil {
		one.Big = readable(decimal(*v.Steps, 0))
	}
	one.addKey(v.Distance, 0.001, 1, "km")
	one.addKey(v.CaloriesActive, 1, 0, "kcal active")
	one.addKey(v.CaloriesTotal, 1, 0, "kcal total")
	one.addKey(v.FloorsClimbed, 1, 0, "floors")
	var week []float64
	for i := range 7 {
		week = append(week, steps[day.AddDate(0, 0, i-6).Format(time.DateOnly)])
	}
	one.Mini = bars("Steps of the last seven days", week)
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
	seconds := int64(v.TimeEnd.Sub(v.TimeStart) / time.Second)
	if v.MovingTime != nil && *v.MovingTime >= 0 && *v.MovingTime < 1e9 {
		seconds = *v.MovingTime
	}
	one := summaryCard{order: 3, Big: hours(seconds * 60), BigNote: "min"}
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
	var zones []float64
	for _, seconds := range v.HRZones {
		zones = append(zones, float64(seconds))
	}
	one.Mini = bars("Time in each zone of the heart rate, from low to high", zones)
	return one
}

// bodyCard shows the weight, and that of the 30 days before.
func bodyCard(v *webhooks.Body, weights map[string]float64, day time.Time) summaryCard {
	one := summaryCard{order: 4, Big: "no", BigNote: "weight"}
	if v.Weight != nil {
		one.Big, one.BigNote = readable(decimal(*v.Weight, 1)), "kg"
	}
	one.addKey(v.Fat, 1, 1, "% fat")
	one.addKey(v.BodyMassIndex, 1, 1, "BMI")
	one.addKey(v.MuscleMassPercentage, 1, 1, "% muscle")
	var x, y []float64
	for i := range 30 {
		if weight, ok := weights[day.AddDate(0, 0, i-29).Format(time.DateOnly)]; ok {
			x, y = append(x, float64(i)), append(y, weight)
		}
	}
	one.Mini = curve("Weight over 30 days", x, y)
	return one
}

// unshown are fields that every summary has, or that the card shows in another way.
var unshown = set("id", "user_id", "source", "calendar_date", "date", "created_at", "updated_at", "source_provider", "source_type",
	"source_app_id", "source_device_id", "source_id", "priority_id", "provider_id", "sleep_id")

// fieldCard shows the fields of a summary of another resource.
func fieldCard(p webhooks.Payload) summaryCard {
	one := summaryCard{order: 5}
	for _, field := range scalars(p.RawJSON()) {
		name, _, _ := strings.Cut(field.Name, ".")
		switch {
		case unshown[name] || field.Text == "null":
		case len(one.Fields) == maxFields:
			one.MoreFields++
		default:
			one.Fields = append(one.Fields, field)
		}
	}
	return one
}

// scalar is a field of an object that is no object and no array.
type scalar struct{ Name, Text string }

const maxScalars = 500

// scalars returns the fields of an object and of the objects in it, without those in arrays. Values
// of patients are hidden.
func scalars(raw []byte) (all []scalar) {
	var add func(prefix, parent string, raw json.RawMessage, depth int)
	add = func(prefix, parent string, raw json.RawMessage, depth int) {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			value := string(fields[name])
			switch hidden := hidesKey(name) || hidesName(parent, name) || hidesText(name, value); {
			case len(all) == maxScalars || value[0] == '[':
			case value[0] == '{':
				if depth < 3 && !hidden {
					add(prefix+name+".", name, fields[name], depth+1)
				}
			default:
				text := mask
				if !hidden || value == "null" {
					text = firstChars(strings.Trim(value, `"`), 60)
				}
				all = append(all, scalar{firstChars(HideNames(prefix+name, mask), 80), text})
			}
		}
	}
	add("", "", raw, 0)
	return all
}
