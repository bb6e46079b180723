// Reads wearable data from the API, as the events that deliver it.

package webhooks

// Source of this file: public API reference only.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/pagetime"
)

// ReadSummaries reads summaries of a user from the API and returns an iterator over them, each as
// the event that delivers it. The event has the data as received, the type
// daily.data.<resource>.updated and the user ID. TeamID and ClientUserID, which the API does not
// return, are zero. [Latest.Apply] and package sqlstore store the event as if it had been
// delivered: use it to recover what was lost while a receiver was not available.
//
// There is one profile: of the Provider in params or, if it is empty, of any one of the user's
// providers, whose names Users.ConnectedProviders returns. The error for a provider without a
// profile matches [labhealth.ErrNotFound].
//
// ReceivedAt is the time just before the request. The response is at least as new as every version
// that was received before that time, and replaces it. A version that is received later replaces
// the response, because it may be newer. Data can therefore be read while events are received, in
// any order and more than once, if the same clock sets both times. Data that the service has
// deleted remains stored.
//
// A period is that of the data, not of its delivery, and sources deliver data that is days old:
// start days before the gap, and months before it for menstrual cycles, which are updated for
// weeks. An end of tomorrow includes today in every time zone. A long period is read in several
// requests that overlap, so a summary may occur twice. For profiles, name a provider: the service
// returns one.
//
// A summary whose JSON differs from that of the event, such as in the order of its fields, counts
// as updated when it is applied.
//
// The iterator can be used more than once, and requests the data each time. It returns the first
// error and stops.
func ReadSummaries(ctx context.Context, client *labhealth.Client, userID uuid.UUID, resource labhealth.SummaryResource, params labhealth.ListSummariesParams, opts ...labhealth.CallOption) iter.Seq2[*Event, error] {
	eventType := EventType(dailyPrefix + string(resource) + ".updated")
	client = orZero(client)
	return func(yield func(*Event, error) bool) {
		for period := range periods(resource, params, time.Now()) {
			receivedAt := time.Now()
			page, err := client.Wearables.Summaries(ctx, userID, resource, period, opts...)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, data := range page.Data {
				if event, err := eventOf(eventType, userID, receivedAt, data); !yield(event, err) || err != nil {
					return
				}
			}
		}
	}
}

// orZero returns client, or a client whose methods return an error if it is nil.
func orZero(client *labhealth.Client) *labhealth.Client { return cmp.Or(client, new(labhealth.Client)) }

const (
	// periodDays is the length of the periods in which summaries are read. In half a year, the
	// summaries of meals, which are the largest, have a few megabytes.
	periodDays = 180
	// overlapDays is how many days of a period the next one repeats. Whether a period includes its
	// last day, or a summary that starts before its first, is not documented.
	overlapDays = 2
)

// periods splits the dates of params. A menstrual cycle is longer than the overlap, and a profile
// has no dates: both are read in one request.
func periods(resource labhealth.SummaryResource, params labhealth.ListSummariesParams, now time.Time) iter.Seq[labhealth.ListSummariesParams] {
	return func(yield func(labhealth.ListSummariesParams) bool) {
		last := labhealth.DateOf(now.UTC().AddDate(0, 0, 1)) // today in every time zone
		if !params.EndDate.IsZero() && params.EndDate.Compare(last) < 0 {
			last = params.EndDate
		}
		whole := resource == labhealth.SummaryProfile || resource == labhealth.SummaryMenstrualCycle || params.StartDate.IsZero()
		for period := params; ; period.StartDate = addDays(period.EndDate, -overlapDays) {
			period.EndDate = addDays(period.StartDate, periodDays)
			if whole || period.EndDate.Compare(last) >= 0 {
				period.EndDate = params.EndDate
				yield(period)
				return
			}
			if !yield(period) {
				return
			}
		}
	}
}

func addDays(d labhealth.Date, days int) labhealth.Date {
	return labhealth.DateOf(time.Date(d.Year, d.Month, d.Day+days, 0, 0, 0, 0, time.UTC))
}

// ReadSamples reads samples of a user from the API, page by page, and returns an iterator over
// them. There is one event for each source of a page. The events are like those of [ReadSummaries],
// and so are the rules for ReceivedAt, for periods and for the iterator. The resource is the name
// of the API or that of the events: body_weight or weight, body_fat or fat. The events have the
// latter.
//
// The source type is part of a sample's key. If delivered events have sources of the older shape,
// without type, and the API returns the newer one, a sample is stored under both keys: see
// [Source].
func ReadSamples(ctx context.Context, client *labhealth.Client, userID uuid.UUID, resource labhealth.SampleResource, params labhealth.ListSamplesParams, opts ...labhealth.CallOption) iter.Seq2[*Event, error] {
	resource, eventType := namesOf(resource)
	client = orZero(client)
	return func(yield func(*Event, error) bool) {
		var receivedAt time.Time
		ctx := pagetime.Store(ctx, &receivedAt)
		for page, err := range client.Wearables.SamplePages(ctx, userID, resource, params, opts...) {
			if err != nil {
				yield(nil, err)
				return
			}
			for provider, group := range groupsOf(page) {
				data := withProvider(group, provider)
				if event, err := eventOf(eventType, userID, receivedAt, data); !yield(event, err) || err != nil {
					return
				}
			}
		}
	}
}

// renamedResources are the resources that have other names in events than in the API.
var renamedResources = map[labhealth.SampleResource]string{"body_weight": "weight", "body_fat": "fat"}

// namesOf returns the resource of the API and the event type of a resource with either name.
func namesOf(resource labhealth.SampleResource) (labhealth.SampleResource, EventType) {
	name := string(resource)
	for ofAPI, ofEvents := range renamedResources {
		if resource == ofAPI || name == ofEvents {
			resource, name = ofAPI, ofEvents
		}
	}
	return resource, EventType(dailyPrefix + name + ".updated")
}

// groupsOf iterates over the groups of a page, with their providers. It leaves out groups that are
// null or whose list of samples is. What is in the place of a provider's list of groups is treated
// as a group.
func groupsOf(page *labhealth.SamplePage) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, provider := range slices.Sorted(maps.Keys(page.Groups)) {
			for _, group := range page.Groups[provider] {
				isNull := len(group) == 0 || string(jsonread.Lookup(group, "data")) == "null"
				if !isNull && !yield(provider, group) {
					return
				}
			}
		}
		if len(page.Malformed()) == 0 {
			return
		}
		for provider, value := range jsonread.Fields(jsonread.Lookup(page.RawJSON(), "groups")) {
			isList := value[0] == '[' || value[0] == 'n' // null is an empty list
			if !isList && !yield(string(provider), value) {
				return
			}
		}
	}
}

// withProvider returns a group of samples. If it does not name the provider, the result does so in
// the field provider, as older events do.
func withProvider(group json.RawMessage, provider string) []byte {
	if !isKnown(provider) || group[0] != '{' {
		return group
	}
	for _, name := range []string{"source", "provider"} {
		source := jsonread.Lookup(group, name)
		for _, name := range []string{"provider", "slug"} {
			if slug, _ := jsonread.String(jsonread.Lookup(source, name)); isKnown(slug) {
				return group
			}
		}
	}
	fields := bytes.TrimRight(group[:len(group)-1], " \t\r\n")
	if len(fields) > 1 {
		fields = append(slices.Clip(fields), ',')
	}
	source, _ := json.Marshal(map[string]any{"provider": map[string]string{"slug": provider}})
	return slices.Concat(fields, source[1:]) // of duplicate names the last value counts
}

// errOtherUser stops an iterator whose data would be stored as that of another user.
const errOtherUser = permanentError("webhooks: the response has data of another user")

// isOfOther reports whether data has the ID of another user, in any of the forms of a UUID.
func isOfOther(data []byte, userID uuid.UUID) bool {
	text, _ := jsonread.String(jsonread.Lookup(data, "user_id"))
	id, err := uuid.Parse(text)
	return err == nil && id != uuid.Nil && id != userID
}

// eventOf returns the event that delivers data, which is valid JSON.
func eventOf(eventType EventType, userID uuid.UUID, receivedAt time.Time, data []byte) (*Event, error) {
	if isOfOther(data, userID) {
		return nil, errOtherUser
	}
	name, _ := json.Marshal(string(eventType))
	event, err := parse(slices.Concat([]byte(`{"event_type":`), name, []byte(`,"data":`), data, []byte(`,"user_id":"`+userID.String()+`"}`)))
	if err != nil {
		return nil, err
	}
	event.ReceivedAt = receivedAt
	return event, nil
}
