// Which version and which results an order has, and when to read the results again.

package sqlstore

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/newest"
)

// nanoseconds returns t in nanoseconds since 1970, and 0 if it is unknown.
func nanoseconds(t time.Time) int64 {
	n, _ := newest.UnixNano(t)
	if t.IsZero() {
		return 0
	}
	return n
}

// timeOf is the inverse of nanoseconds.
func timeOf(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// updatedAt returns the time of a version of an order by the service's clock: the latest that it
// mentions. It is 0 if it mentions none, as in the response of an update.
func updatedAt(o *labhealth.Order) int64 {
	at := max(nanoseconds(o.UpdatedAt), nanoseconds(o.LastEvent.CreatedAt))
	for i := range o.Events {
		at = max(at, nanoseconds(o.Events[i].CreatedAt))
	}
	return at
}

// transitionsOf returns the entries of the timeline that a version of an order of a user has.
func transitionsOf(user uuid.UUID, o *labhealth.Order) []Transition {
	all := make([]Transition, 0, len(o.Events)+1)
	for _, events := range [][]labhealth.OrderEvent{o.Events, {o.LastEvent}} {
		for i := range events {
			e := &events[i]
			if e.Status == "" {
				continue
			}
			t := Transition{UserID: user, OrderID: o.ID, ID: strconv.FormatInt(e.ID, 10), At: timeOf(nanoseconds(e.CreatedAt)), Status: e.Status}
			if e.ID == 0 {
				// A list may have the time of an event with fewer digits.
				t.ID = string(e.Status) + "@" + strconv.FormatInt(nanoseconds(e.CreatedAt.Truncate(time.Microsecond)), 10)
			}
			if e.StatusDetail != nil {
				t.Detail = *e.StatusDetail
			}
			all = append(all, t)
		}
	}
	return all
}

// compareContent orders different entries with one ID: the greater one is stored.
func (t *Transition) compareContent(other *Transition) int {
	return cmp.Or(t.At.Compare(other.At), cmp.Compare(t.Status, other.Status), cmp.Compare(t.Detail, other.Detail))
}

// compareTransitions orders a timeline. Of entries with the same time, that with the greater number
// is the later one.
func compareTransitions(a, b Transition) int {
	x, errX := strconv.ParseInt(a.ID, 10, 64)
	y, errY := strconv.ParseInt(b.ID, 10, 64)
	if (errX == nil) != (errY == nil) { // those without a number are first
		x, y = 0, 0
		if errX == nil {
			x = 1
		} else {
			y = 1
		}
	}
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(x, y), cmp.Compare(a.ID, b.ID))
}

func sortedTimeline(timeline map[string]Transition) []Transition {
	return slices.SortedFunc(maps.Values(timeline), compareTransitions)
}

// currentEvent returns the current status of an order and when it was reached. A version without
// events, such as the response of an update, has that of the timeline.
func currentEvent(o *labhealth.Order, timeline map[string]Transition) (status labhealth.OrderStatus, since int64) {
	if o.LastEvent.Status != "" {
		return o.LastEvent.Status, nanoseconds(o.LastEvent.CreatedAt)
	}
	var last labhealth.OrderEvent
	for i := range o.Events { // as Order.CurrentStatus does
		if e := &o.Events[i]; e.Status != "" && !e.CreatedAt.Before(last.CreatedAt) {
			last = *e
		}
	}
	if last.Status != "" {
		return last.Status, nanoseconds(last.CreatedAt)
	}
	if all := sortedTimeline(timeline); len(all) > 0 {
		return all[len(all)-1].Status, nanoseconds(all[len(all)-1].At)
	}
	return "", 0
}

// topLevelOf returns the top-level part of the current status, which a version without events has
// in the deprecated field.
func topLevelOf(o *labhealth.Order, status labhealth.OrderStatus) labhealth.OrderTopLevelStatus {
	//lint:ignore SA1019 it is all that such a version has
	if topLevel := o.Status; status == "" && topLevel != nil {
		return *topLevel
	}
	return status.TopLevel()
}

// reports returns which results an order has that reached a status.
func reports(status labhealth.OrderStatus) ResultsState {
	switch status.LowLevel() {
	case labhealth.LowLevelCorrected:
		return ResultsCorrected
	case labhealth.LowLevelCompleted:
		return ResultsFinal
	case labhealth.LowLevelPartialResults:
		return ResultsPartial
	}
	if status.TopLevel() == labhealth.TopLevelCompleted {
		return ResultsFinal
	}
	return ResultsNone
}

// resultsRank orders the states of results.
var resultsRank = map[ResultsState]int{ResultsNone: 0, ResultsPartial: 1, ResultsFinal: 2, ResultsCorrected: 3}

// resultsStateOf returns which results there are of an order with this top-level status and
// timeline. stored is the status of the stored results, empty if none are stored: the results of a
// canceled order count only if they are stored.
func resultsStateOf(top labhealth.OrderTopLevelStatus, timeline map[string]Transition, stored labhealth.ResultsStatus) ResultsState {
	if top == labhealth.TopLevelCancelled && stored == "" {
		return ResultsNone
	}
	state := ResultsNone
	raise := func(to ResultsState) {
		if resultsRank[to] > resultsRank[state] {
			state = to
		}
	}
	switch {
	case stored == labhealth.ResultsStatusPartial:
		raise(ResultsPartial)
	case stored != "":
		raise(ResultsFinal)
	}
	if top == labhealth.TopLevelCompleted {
		raise(ResultsFinal)
	}
	for id := range timeline {
		raise(reports(timeline[id].Status))
	}
	return state
}

const day = 24 * time.Hour

const (
	resultsTime = day      // from when the lab has a sample until there may be results
	resultsFor  = 90 * day // results that have not come by then are not looked for
	longestWait = 30 * day
)

// finalTimes is how long after the last status final results are read again: a lab can correct them
// without an event and without a change of the order.
var finalTimes = []time.Duration{day, 7 * day, 30 * day}

// finalAt returns when to read final results again that there are since a time; 0 for never.
func finalAt(since, now int64) int64 {
	for _, after := range finalTimes {
		if next := since + int64(after); next > now {
			return min(next, now+int64(longestWait))
		}
	}
	return 0
}

// nextCheck returns when to look for results again that have been missing since a time: when there
// may be some or, if that has passed, after half of the time that they have been missing.
func nextCheck(since, now int64) int64 {
	if since == 0 || since > now {
		since = now
	}
	if next := since + int64(resultsTime); next > now {
		return next
	}
	return now + min(max(int64(resultsTime), now-since)/2, int64(longestWait))
}

// resultsAt returns when to read the results of an order again that has had a status since a time,
// if there is no reason to read them now; 0 for never. pending says that the latest results that
// were read are partial.
func resultsAt(state ResultsState, pending bool, status labhealth.OrderStatus, since, now int64) int64 {
	switch {
	case since != 0 && now-since > int64(resultsFor):
		return 0
	case state == ResultsPartial, state != ResultsNone && pending, state == ResultsNone && mayHaveResults(status):
		return nextCheck(since, now)
	case state != ResultsNone:
		return finalAt(since, now)
	}
	return 0
}

// nextPoll returns when to read results again that were due and that the service does not have. The
// wait is a quarter of the time since the order reached its status, so that it doubles every third
// time.
func nextPoll(since, now int64) int64 {
	age := time.Duration(now - since)
	if age > resultsFor {
		return now + int64(longestWait)
	}
	return now + int64(min(max(age/4, time.Minute), day))
}

// mayHaveResults reports whether an order with a status may have results of which no event says so:
// a sample is with the lab, or the status is an unknown one.
func mayHaveResults(status labhealth.OrderStatus) bool {
	switch status.TopLevel() {
	case labhealth.TopLevelReceived, labhealth.TopLevelCollectingSample, labhealth.TopLevelCancelled, labhealth.TopLevelFailed, "":
		return status.LowLevel() == labhealth.LowLevelDrawCompleted
	}
	return true
}

// isSameOrder reports whether two documents of an order have the same content. The signed URL of
// the requisition is another one in each response.
func isSameOrder(a, b string) bool {
	if a == b {
		return true
	}
	if c := cutURL(a); len(c) > 0 && bytes.Equal(c, cutURL(b)) { // as usual
		return true
	}
	x, y := orderFields(a), orderFields(b)
	return x != nil && reflect.DeepEqual(x, y)
}

const requisitionURL = "requisition_form_url"

// cutURL returns the fields of a document without the URL, each after a comma, or nothing if the
// document is not an object.
func cutURL(document string) (fields []byte) {
	data := []byte(document)
	if jsonread.Valid(data) != nil {
		return nil
	}
	fields = make([]byte, 0, len(data))
	for name, value := range jsonread.Fields(data) {
		if string(name) != requisitionURL {
			fields = strconv.AppendQuote(append(fields, ','), string(name))
			fields = append(append(fields, ':'), value...)
		}
	}
	return fields
}

func orderFields(document string) (fields map[string]any) {
	d := json.NewDecoder(bytes.NewReader([]byte(document)))
	d.UseNumber()
	if d.Decode(&fields) != nil {
		return nil
	}
	delete(fields, requisitionURL)
	return fields
}
