package console

import (
	"bytes"
	"fmt"
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

// storeView returns what a delivery has changed in the store, or nil if nothing. The fields of a
// summary that differ are in the difference of the bodies.
func (c *Console) storeView(d inspect.Delivery, event *webhooks.Event, previous *inspect.Delivery) *storeView {
	if event == nil || d.Verdict == inspect.Rejected || d.DuplicateOf > 0 || !d.Applied {
		return nil
	}
	view := &storeView{}
	switch data := event.Data.(type) {
	case *webhooks.Samples:
		c.sampleRows(view, d, event, data, previous)
	case *webhooks.LabOrder:
		view.orderRows(d, data, previous, c.zone())
	}
	if len(view.Rows) == 0 {
		return nil
	}
	if len(view.Rows) > maxChangesShown {
		view.Rows, view.More = view.Rows[:maxChangesShown], view.Rows[maxChangesShown:]
	}
	return view
}

// sampleRows are the samples that were added or updated. Which they are follows from a comparison
// with the earlier delivery of the series.
func (c *Console) sampleRows(view *storeView, d inspect.Delivery, event *webhooks.Event, data *webhooks.Samples, previous *inspect.Delivery) {
	changed := d.Changes.Added + d.Changes.Updated
	keys, _ := event.Keys()
	if changed == 0 || len(keys.Samples) != len(data.Data) {
		return
	}
	old, latest, found := samplesOf(previous), map[webhooks.SampleKey]int{}, 0
	for i, key := range keys.Samples { // of equal keys in a batch, the last one counts
		if _, ok := old[key]; ok {
			found++
		}
		latest[key] = i
	}
	complete := found == d.Changes.Updated+d.Changes.Same+d.Changes.Older // what was stored before is in the earlier delivery
	view.First, view.About = "Measured", aboutSeries(d, event)
	for i, key := range keys.Samples {
		sample := data.Data[i]
		before, stored := old[key]
		if key == (webhooks.SampleKey{}) || latest[key] != i || stored && bytes.Equal(before.RawJSON(), sample.RawJSON()) {
			continue
		}
		if len(view.Rows) == min(changed, maxChangesShown+maxChangesMore) {
			break
		}
		row := storeRow{Key: time.Unix(0, key.UnixNano).In(c.zone()).Format("Mon 2 Jan 15:04"), Time: true, Is: sampleText(sample), Unit: firstChars(sample.Unit, 20), By: "added"}
		if stored {
			row.Was, row.By = sampleText(before), "updated, was of "+c.timeOf(previous.ReceivedAt)
		} else if !complete {
			row.By = "added or updated"
		}
		view.Rows = append(view.Rows, row)
	}
	view.Left = changed - len(view.Rows)
}

// samplesOf returns the samples of a delivery.
func samplesOf(d *inspect.Delivery) map[webhooks.SampleKey]webhooks.Sample {
	all := map[webhooks.SampleKey]webhooks.Sample{}
	if d == nil {
		return all
	}
	event, err := webhooks.Parse(d.Body)
	if err != nil {
		return all
	}
	data, ok := event.Data.(*webhooks.Samples)
	keys, _ := event.Keys()
	if ok && len(keys.Samples) == len(data.Data) {
		for i, key := range keys.Samples {
			all[key] = data.Data[i]
		}
	}
	return all
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
	return strings.TrimSuffix(userName(d)+", "+firstChars(event.Type.Resource(), 40)+", "+firstChars(event.ProviderSlug(), 40), ", ")
}

// orderRows are the entries of the timeline that the order did not have before.
func (v *storeView) orderRows(d inspect.Delivery, order *webhooks.LabOrder, previous *inspect.Delivery, zone *time.Location) {
	known := map[string]bool{}
	if previous != nil {
		if event, err := webhooks.Parse(previous.Body); err == nil {
			if before, ok := event.Data.(*webhooks.LabOrder); ok {
				for _, e := range before.Events {
					known[fmt.Sprint(e.ID, e.Status, e.CreatedAt)] = true
				}
			}
		}
	}
	v.First, v.Times, v.About = "Status", true, whoOf(d)
	for _, e := range order.Events {
		if !known[fmt.Sprint(e.ID, e.Status, e.CreatedAt)] && len(v.Rows) < min(d.Transitions, maxChangesShown+maxChangesMore) {
			v.Rows = append(v.Rows, storeRow{Key: firstChars(string(e.Status), 120), Is: e.CreatedAt.In(zone).Format("Mon 2 Jan 15:04:05")})
		}
	}
}
