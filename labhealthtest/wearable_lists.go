// Lists of wearable data, with their filters and pages.

package labhealthtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// WithSamplesPerPage sets how many samples a page has at most. The default is 1,000.
func WithSamplesPerPage(n int) Option {
	return func(s *Server) { s.samplePage = max(n, 1) }
}

var notFound = reject(http.StatusNotFound, "Not Found")

// period returns the start and end of a list of wearable data. A date includes the whole day. A
// list without an end has no limit.
func (r *request) period() (start, end time.Time) {
	start, _, _ = r.queryTime("start_date")
	end, isDate, ok := r.queryTime("end_date")
	switch {
	case !ok:
		end = time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)
	case isDate:
		end = end.AddDate(0, 0, 1).Add(-1)
	}
	return start, end
}

// fromProvider returns the condition that the parameter provider sets. It can be empty.
func (r *request) fromProvider() func(provider string) bool {
	want := r.queryOne("provider")
	return func(provider string) bool { return want == "" || provider == want }
}

// listSummaries responds with a list, which for meals has the name meals, or with a profile.
func (s *Server) listSummaries(r *request, u *user) (any, error) {
	resource := r.vars["resource"]
	first, last := "", "9999-12-31"
	if resource != "profile" {
		start, end := r.period()
		first, last = start.UTC().Format(time.DateOnly), end.UTC().Format(time.DateOnly)
	}
	matches := r.fromProvider()
	list := []json.RawMessage{}
	if u.wearables != nil {
		for _, v := range u.wearables.summaries[resource] {
			if matches(v.provider) && first <= v.date && v.date <= last {
				list = append(list, v.data)
			}
		}
	}
	switch {
	case resource == "meal":
		return map[string]any{"meals": list}, nil
	case resource != "profile":
		return map[string]any{resource: list}, nil
	case len(list) == 0:
		return nil, reject(http.StatusNotFound, "Profile not found")
	default:
		return list[0], nil
	}
}

// sampleGroup has the samples of one source.
type sampleGroup struct {
	Source json.RawMessage   `json:"source"`
	Data   []json.RawMessage `json:"data"`
}

// listSamples responds with a page of samples in the order of time, grouped by provider and source.
// Its cursor identifies the last sample.
func (s *Server) listSamples(r *request, u *user) (any, error) {
	resource := r.vars["resource"]
	start, end := r.period()
	matches := r.fromProvider()
	var list []*storedSample
	if u.wearables != nil {
		list = selectFunc(u.wearables.samples[resource], func(v *storedSample) bool {
			at := time.Unix(0, v.at)
			return matches(v.provider) && !at.Before(start) && !at.After(end)
		})
	}
	list, err := afterCursor(r, list)
	if err != nil {
		return nil, err
	}
	var next *string
	if len(list) > s.samplePage {
		list = list[:s.samplePage]
		last := list[len(list)-1]
		next = encodeCursor(string(encode([]any{last.at, last.provider, last.sourceType})))
	}
	return struct {
		Groups     map[string][]*sampleGroup `json:"groups"`
		Next       *string                   `json:"next"`
		NextCursor *string                   `json:"next_cursor"`
	}{groupSamples(list), next, next}, nil
}

// afterCursor returns the samples after the one that the cursor identifies, which need not exist.
func afterCursor(r *request, list []*storedSample) ([]*storedSample, error) {
	cursor, ok := r.cursor()
	if !ok {
		return list, nil
	}
	var last sampleKey
	text, err := decodeCursor(cursor)
	if jsonErr := json.Unmarshal([]byte(text), &[]any{&last.at, &last.provider, &last.sourceType}); err != nil || jsonErr != nil {
		return nil, errInvalidCursor
	}
	i, found := slices.BinarySearchFunc(list, last, func(v *storedSample, key sampleKey) int { return v.compare(key) })
	if found {
		i++
	}
	return list[i:], nil
}

func groupSamples(list []*storedSample) map[string][]*sampleGroup {
	groups := map[string][]*sampleGroup{}
	bySource := map[string]*sampleGroup{}
	for _, v := range list {
		group := bySource[string(v.source)]
		if group == nil {
			group = &sampleGroup{Source: v.source}
			bySource[string(v.source)] = group
			groups[v.provider] = append(groups[v.provider], group)
		}
		group.Data = append(group.Data, v.data)
	}
	return groups
}

func (s *Server) getSleepStream(r *request) (any, error) {
	if stream := s.sleeps[r.pathUUID("sleep_id")]; stream != nil {
		return &response{statusCode: http.StatusOK, body: stream}, nil
	}
	return nil, reject(http.StatusNotFound, "Sleep not found")
}
