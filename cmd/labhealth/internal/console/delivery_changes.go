package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/webhooks"
)

// Limits of the table of changes.
const (
	maxChangesShown = 12
	maxChangesMore  = 500
	maxPrevious     = 4 // earlier deliveries that are searched for the replaced values
)

// storeView is the data of the partial "delivery-store".
type storeView struct {
	About string
	First string // header of the first column
	Times bool   // the rows have times instead of values
	Rows  []storeRow
	More  []storeRow // shown on demand
	Left  int        // rows that are not shown
}

// storeRow is something that a delivery has changed in the store.
type storeRow struct {
	Key, Was, Is, Unit, By string
	Time                   bool // Key is a time
}

// storeView returns what a delivery has changed in the store, or nil if nothing.
func (c *Console) storeView(ctx context.Context, d inspect.Delivery, event *webhooks.Event, previous *inspect.Delivery) (*storeView, error) {
	if event == nil || d.Verdict == inspect.Rejected || d.DuplicateOf > 0 || !d.Applied {
		return nil, nil
	}
	view := &storeView{}
	var err error
	switch data := event.Data.(type) {
	case *webhooks.Samples:
		err = c.sampleRows(ctx, view, d, event, data, previous)
	case *webhooks.LabOrder:
		view.orderRows(d, data, previous, c.zone())
	default:
		if d.Changes.Added+d.Changes.Updated > 0 {
			view.summaryRows(c, d, event, previous)
		}
	}
	if len(view.Rows) == 0 || err != nil {
		return nil, err
	}
	if len(view.Rows) > maxChangesShown {
		view.Rows, view.More = view.Rows[:maxChangesShown], view.Rows[maxChangesShown:]
	}
	return view, nil
}

// oldSample is the version of a sample that was replaced.
type oldSample struct {
	sample webhooks.Sample
	at     time.Time // when it was received
}

// sampleRows are the samples that were added or updated. Which they are follows from a comparison
// with the latest earlier deliveries of the series.
func (c *Console) sampleRows(ctx context.Context, view *storeView, d inspect.Delivery, event *webhooks.Event, data *webhooks.Samples, previous *inspect.Delivery) error {
	changed := d.Changes.Added + d.Changes.Updated
	keys, _ := event.Keys()
	if changed == 0 || len(keys.Samples) != len(data.Data) {
		return nil
	}
	latest := map[webhooks.SampleKey]int{} // of equal keys in a batch, the last one counts
	for i, key := range keys.Samples {
		latest[key] = i
	}
	known := d.Changes.Updated + d.Changes.Same + d.Changes.Older // samples that were stored before
	old, err := c.oldSamples(ctx, latest, known, previous)
	if err != nil {
		return err
	}
	view.First = "Measured"
	view.About = aboutSeries(d, event)
	for i, key := range keys.Samples {
		before, stored := old[key]
		if key == (webhooks.SampleKey{}) || latest[key] != i || stored && sameSample(before.sample, data.Data[i]) {
			continue
		}
		if len(view.Rows) == min(changed, maxChangesShown+maxChangesMore) {
			break
		}
		view.Rows = append(view.Rows, c.sampleRow(d, key, data.Data[i], before, stored, len(old) == known))
	}
	view.Left = changed - len(view.Rows)
	return nil
}

func (c *Console) sampleRow(d inspect.Delivery, key webhooks.SampleKey, s webhooks.Sample, before oldSample, stored, complete bool) storeRow {
	row := storeRow{Key: time.Unix(0, key.UnixNano).In(c.zone()).Format("Mon 2 Jan 15:04"), Time: true, Is: sampleText(s), Unit: visible(firstChars(s.Unit, 20)), By: "added"}
	switch {
	case stored:
		row.Was, row.By = sampleText(before.sample), "updated, was of "+c.timeOf(before.at)
		if row.Was == row.Is {
			row.By = "updated in other fields, was of " + c.timeOf(before.at)
		}
	case d.Changes.Added == 0:
		row.Was, row.By = "another", "updated"
	case !complete:
		row.By = "added or updated"
	}
	return row
}

func sameSample(a, b webhooks.Sample) bool {
	return bytes.Equal(a.RawJSON(), b.RawJSON())
}

// oldSamples returns the versions that the samples had, as far as the latest earlier deliveries of
// the series have them.
func (c *Console) oldSamples(ctx context.Context, want map[webhooks.SampleKey]int, known int, previous *inspect.Delivery) (map[webhooks.SampleKey]oldSample, error) {
	old := map[webhooks.SampleKey]oldSample{}
	for i := 0; previous != nil && i < maxPrevious && len(old) < known; i++ {
		addOldSamples(old, want, previous)
		earlier, ok, err := c.Inspector.Previous(ctx, previous.Number)
		if err != nil {
			return nil, err
		}
		if previous = nil; ok {
			previous = &earlier
		}
	}
	return old, nil
}

func addOldSamples(old map[webhooks.SampleKey]oldSample, want map[webhooks.SampleKey]int, d *inspect.Delivery) {
	event, err := webhooks.Parse(d.Body)
	if err != nil {
		return
	}
	data, ok := event.Data.(*webhooks.Samples)
	keys, _ := event.Keys()
	if !ok || len(keys.Samples) != len(data.Data) {
		return
	}
	for i, key := range slices.Backward(keys.Samples) {
		_, wanted := want[key]
		if _, found := old[key]; wanted && !found {
			old[key] = oldSample{data.Data[i], d.ReceivedAt}
		}
	}
}

func sampleText(s webhooks.Sample) string {
	switch {
	case s.Text != "":
		return mask
	case s.Systolic != 0 || s.Diastolic != 0:
		return strconv.FormatFloat(s.Systolic, 'f', -1, 64) + "/" + strconv.FormatFloat(s.Diastolic, 'f', -1, 64)
	case s.HasValue:
		return string(s.Number())
	default:
		return "no number"
	}
}

// aboutSeries names the user, the resource and the provider.
func aboutSeries(d inspect.Delivery, event *webhooks.Event) string {
	return strings.Join(nonEmpty(userName(d), visible(firstChars(event.Type.Resource(), 40)), visible(firstChars(event.ProviderSlug(), 40))), ", ")
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return s == "" })
}

// orderRows are the entries of the timeline that the order did not have before.
func (v *storeView) orderRows(d inspect.Delivery, order *webhooks.LabOrder, previous *inspect.Delivery, zone *time.Location) {
	type entry struct {
		id     int64
		status string
		at     int64
	}
	known := map[entry]bool{}
	if previous != nil {
		if event, err := webhooks.Parse(previous.Body); err == nil {
			if before, ok := event.Data.(*webhooks.LabOrder); ok {
				for _, e := range before.Events {
					known[entry{e.ID, string(e.Status), e.CreatedAt.UnixNano()}] = true
				}
			}
		}
	}
	v.First, v.Times, v.About = "Status", true, whoOf(d)
	for _, e := range order.Events {
		status := visible(firstChars(string(e.Status), 120))
		if !known[entry{e.ID, string(e.Status), e.CreatedAt.UnixNano()}] && len(v.Rows) < d.Transitions {
			row := storeRow{Key: status, Is: e.CreatedAt.In(zone).Format("Mon 2 Jan 15:04:05"), By: "added to the timeline"}
			v.Rows = append(v.Rows, row)
		}
	}
	v.Rows = v.Rows[:min(len(v.Rows), maxChangesShown+maxChangesMore)]
}

// summaryRows are the fields that differ from the previous version.
func (v *storeView) summaryRows(c *Console, d inspect.Delivery, event *webhooks.Event, previous *inspect.Delivery) {
	v.First = "Field"
	v.About = aboutSeries(d, event)
	if previous == nil {
		v.Rows = []storeRow{{Key: "the summary", Is: "version 1", By: "added"}}
		return
	}
	before, err := webhooks.Parse(previous.Body)
	if err != nil {
		return
	}
	old, now := scalars(before.Data.RawJSON()), scalars(event.Data.RawJSON())
	by := "updated, was of " + c.timeOf(previous.ReceivedAt)
	for _, f := range now {
		i := slices.IndexFunc(old, func(o scalar) bool { return o.path == f.path })
		switch {
		case i < 0:
			v.Rows = append(v.Rows, storeRow{Key: f.name(), Is: f.text, By: "added"})
		case old[i].raw != f.raw:
			v.Rows = append(v.Rows, storeRow{Key: f.name(), Was: old[i].text, Is: f.text, By: by})
		}
	}
	if len(v.Rows) == 0 {
		v.Rows = []storeRow{{Key: "the summary", Is: "a new version", By: by}}
	}
}

// scalar is a field of a summary that is no object and no array.
type scalar struct{ path, text, raw string }

func (s scalar) name() string { return visible(firstChars(HideNames(s.path, mask), 80)) }

const maxScalars = 500

// scalars returns the fields of an object and of the objects in it, without those in arrays.
func scalars(raw []byte) []scalar {
	var all []scalar
	var add func(prefix string, raw json.RawMessage, depth int)
	add = func(prefix string, raw json.RawMessage, depth int) {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			value := fields[name]
			switch {
			case len(all) == maxScalars || value[0] == '[':
			case value[0] == '{':
				if depth < 3 && !hidesKey(name) {
					add(prefix+name+".", value, depth+1)
				}
			default:
				text := firstChars(visible(string(value)), 60)
				if hidesKey(name) || hidesName(strings.TrimSuffix(prefix, "."), name) || hidesText(name, string(value)) {
					text = mask
				}
				all = append(all, scalar{prefix + name, text, string(value)})
			}
		}
	}
	add("", raw, 0)
	return all
}

// countText returns how many rows a summary of hidden rows has.
func (v storeView) MoreText() string { return fmt.Sprintf("%s more", number(len(v.More))) }
