package conformance

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/reference"
	"github.com/labhealth/labhealth-go/internal/reference/referencetest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// Every document that the tables allow as an event is parsed, has no malformed field, and is
// encoded again without a loss. The values of its fields are those of the Go value.
func TestReferenceEvents(t *testing.T) {
	documents := uint64(20)
	switch {
	case long:
		documents = 1000
	case testing.Short():
		documents = 4
	}
	var parsed, unknown atomic.Int64
	events := reference.Events()
	t.Run("types", func(t *testing.T) {
		for i, e := range events {
			t.Run(e.Type, func(t *testing.T) {
				t.Parallel()
				for seed := range documents {
					g := reference.NewGenerator(uint64(i)<<32 + seed)
					g.Plausible = seed == 0
					g.Fixed = map[string]any{"event_type": e.Type}
					document := g.Document("team", e.Envelope)
					parsed.Add(1)
					typed, ok := checkEvent(t, document)
					if !ok {
						t.Errorf("seed %d: %s", seed, document)
						return
					}
					if !typed && seed == 0 {
						unknown.Add(1)
					}
				}
			})
		}
	})
	t.Logf("%d event types, of which %d without a type of their own, %d documents", len(events), unknown.Load(), parsed.Load())
}

// checkEvent parses an event and reports whether its payload has a type, and whether nothing is
// lost.
func checkEvent(t *testing.T, document []byte) (typed, ok bool) {
	t.Helper()
	e, err := webhooks.Parse(document)
	if err != nil {
		t.Error(err)
		return false, false
	}
	payload, isUnknown := e.Data.(*webhooks.Unknown)
	if isUnknown && payload.Err != nil {
		t.Error(payload.Err)
		return false, false
	}
	encoded, err := json.Marshal(e)
	if err != nil {
		t.Error(err)
		return false, false
	}
	if equal(t, jsonData(t, string(document)), jsonData(t, string(encoded))); t.Failed() {
		return false, false
	}
	for _, value := range []any{e, e.Data} {
		if kept, ok := value.(interface{ Malformed() []labhealth.Malformed }); ok && len(kept.Malformed()) > 0 {
			t.Errorf("malformed: %v", kept.Malformed())
			return false, false
		}
	}
	if isUnknown {
		return !isUnknown, true
	}
	encoded, err = json.Marshal(referencetest.WithoutReceived(e.Data))
	if err != nil {
		t.Error(err)
		return true, false
	}
	data := jsonData(t, string(document)).(map[string]any)["data"]
	for _, lost := range referencetest.LostFields(data, jsonData(t, string(encoded))) {
		if !isReceivedOnly(lost) {
			t.Error(lost)
		}
	}
	return true, !t.Failed()
}

// isReceivedOnly reports whether a difference is intended: a field of no table, an empty string,
// which is as good as none, and the details of an order of a new type are in the received JSON
// only.
func isReceivedOnly(lost string) bool {
	return strings.Contains(lost, ".x_") || strings.HasSuffix(lost, ": <nil>, want ") ||
		strings.HasPrefix(lost, "$.source: <nil>, ") || strings.HasPrefix(lost, "$.details.data: <nil>, ")
}

// Every document that the tables allow as a page of summaries or samples is read as typed events
// without a malformed field.
func TestReferenceWearables(t *testing.T) {
	day := labhealth.Date{Year: 2026, Month: time.January, Day: 31}
	documents := uint64(10)
	if long {
		documents = 1000
	}
	read := 0
	for i, o := range reference.Operations() {
		resource, isSummary := strings.CutPrefix(o.Path, "/v2/summary/")
		resource, _, _ = strings.Cut(resource, "/")
		samples, isSamples := strings.CutSuffix(o.Path, "/grouped")
		if !isSummary && !isSamples {
			continue
		}
		for seed := range documents {
			g := reference.NewGenerator(uint64(i)<<32 + seed)
			g.Fixed = map[string]any{"user_id": userID, "next_cursor": nil, "next": nil}
			document := g.Document(o.API, o.Response)
			client, _ := respondingWith(t, 200, string(document))
			events := webhooks.ReadSummaries(t.Context(), client, userID, labhealth.SummaryResource(resource),
				labhealth.ListSummariesParams{StartDate: day, EndDate: day})
			if isSamples {
				name := labhealth.SampleResource(samples[strings.LastIndex(samples, "/")+1:])
				events = webhooks.ReadSamples(t.Context(), client, userID, name, labhealth.ListSamplesParams{StartDate: time.Unix(1, 0)})
			}
			for e, err := range events {
				if err != nil {
					t.Fatalf("%s: %v: %s", o, err, document)
				}
				read++
				payload, isUnknown := e.Data.(*webhooks.Unknown)
				kept, _ := e.Data.(interface{ Malformed() []labhealth.Malformed })
				if isUnknown || kept != nil && len(kept.Malformed()) > 0 {
					t.Fatalf("%s: unknown: %v, malformed: %v in %s", o, payload, kept, e.RawJSON())
				}
			}
		}
	}
	t.Logf("%d events", read)
}
