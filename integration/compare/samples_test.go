package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/bytedance/sonic"
	"github.com/go-faster/jx"
	gojson "github.com/goccy/go-json"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/plain"
	"github.com/labhealth/labhealth-go/webhooks"
)

func TestMain(m *testing.M) {
	for _, v := range []any{plain.Event{}, flatEvent{}, plain.IDs{}, plain.OrderPage{}} {
		if err := sonic.Pretouch(reflect.TypeOf(v)); err != nil {
			panic(err)
		}
	}
	if os.Getenv(serving) != "" {
		serve()
	}
	if sonic.APIKind == sonic.UseSonicJSON {
		fmt.Println("sonic: as its own machine code")
	} else {
		fmt.Println("sonic: as encoding/json, because it does not know this Go version or processor")
	}
	os.Exit(m.Run())
}

// flatEvent is an event whose values are values: null and absent look like zero. It costs no allocations where a pointer does.
type (
	flatEvent struct {
		plain.IDs
		Data flatBatch `json:"data"`
	}
	flatBatch struct {
		UserID   uuid.UUID    `json:"user_id"`
		Source   plain.Source `json:"source"`
		SourceID int          `json:"source_id"`
		Data     []flatSample `json:"data"`
	}
	flatSample struct {
		Timestamp      time.Time `json:"timestamp"`
		Start          time.Time `json:"start"`
		End            time.Time `json:"end"`
		TimezoneOffset int       `json:"timezone_offset"`
		Type           string    `json:"type"`
		Unit           string    `json:"unit"`
		Value          float64   `json:"value"`
	}
)

// flat returns what an event has in common with all forms of it.
func flat(v any) flatEvent {
	var e flatEvent
	switch v := v.(type) {
	case *flatEvent:
		return *v
	case *plain.Event:
		e.IDs, e.Data.UserID, e.Data.Source, e.Data.SourceID = v.IDs, v.Data.UserID, v.Data.Source, v.Data.SourceID
		for _, s := range v.Data.Data {
			f := flatSample{Timestamp: s.Timestamp, Start: s.Start, End: s.End, Unit: s.Unit, Value: s.Value}
			if s.TimezoneOffset != nil {
				f.TimezoneOffset = *s.TimezoneOffset
			}
			if s.Type != nil {
				f.Type = *s.Type
			}
			e.Data.Data = append(e.Data.Data, f)
		}
	case *webhooks.Event:
		e.IDs = plain.IDs{EventType: string(v.Type), TeamID: v.TeamID, UserID: v.UserID, ClientUserID: v.ClientUserID}
		b := v.Data.(*webhooks.Samples)
		e.Data.UserID, e.Data.SourceID = b.UserID, int(b.SourceID)
		e.Data.Source = plain.Source{Name: b.Source.Name, Slug: b.Source.Slug, Logo: b.Source.Logo}
		for _, s := range b.Data {
			e.Data.Data = append(e.Data.Data, flatSample{s.Timestamp, s.Start, s.End, int(s.TimezoneOffset), s.Type, s.Unit, s.Value})
		}
	}
	return e
}

// reader is a way to read a text.
type reader struct {
	name string
	read func(text []byte) (any, error)
}

// readers are the ways to read an event with samples. The first is the measure of the others.
var readers = []reader{
	{"encoding", func(text []byte) (any, error) {
		e, err := plain.ReadEvent(text)
		return &e, err
	}},
	{"ours", func(text []byte) (any, error) { return webhooks.Parse(text) }},
	{"goccy", func(text []byte) (any, error) {
		e := new(plain.Event)
		return e, gojson.Unmarshal(text, e)
	}},
	{"goccy-values", func(text []byte) (any, error) {
		e := new(flatEvent)
		return e, gojson.Unmarshal(text, e)
	}},
	{"sonic", func(text []byte) (any, error) {
		e := new(plain.Event)
		return e, sonic.ConfigFastest.Unmarshal(text, e)
	}},
	{"sonic-values", func(text []byte) (any, error) {
		e := new(flatEvent)
		return e, sonic.ConfigFastest.Unmarshal(text, e)
	}},
	{"jx", func(text []byte) (any, error) { return readJX(text) }},
}

func BenchmarkParse(b *testing.B) {
	for _, form := range []string{"uniform", "mixed"} {
		for _, n := range []int{1, 10, 100, 1000, 10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", form, n), func(b *testing.B) { compare(b, eventOf(n, form)) })
		}
	}
}

// TestReaders checks that what is measured is the same work.
func TestReaders(t *testing.T) {
	for _, form := range []string{"uniform", "mixed", "spaced"} {
		eventOf(100, form).check(t)
	}
	routeOf(100).check(t)
	orderPage(t).check(t)
}

// eventOf is reading an event with samples.
func eventOf(n int, form string) work[flatEvent] {
	return work[flatEvent]{plain.EventText(n, form), readers, flat, func(a, b flatEvent) bool {
		return a.IDs == b.IDs && a.Data.UserID == b.Data.UserID && a.Data.Source == b.Data.Source && a.Data.SourceID == b.Data.SourceID &&
			len(a.Data.Data) == n && slices.EqualFunc(a.Data.Data, b.Data.Data, sameSample)
	}}
}

func sameSample(a, b flatSample) bool {
	return a.Timestamp.Equal(b.Timestamp) && a.Start.Equal(b.Start) && a.End.Equal(b.End) && a.TimezoneOffset == b.TimezoneOffset &&
		a.Type == b.Type && a.Unit == b.Unit && a.Value == b.Value
}

// work is a text and ways to read it. What they read is the same once norm has put it into one form.
type work[T any] struct {
	text    []byte
	readers []reader
	norm    func(any) T
	same    func(a, b T) bool
}

// check checks that all readers read the same as the first.
func (w work[T]) check(t testing.TB) {
	t.Helper()
	var want T
	for i, r := range w.readers {
		v, err := r.read(bytes.Clone(w.text))
		if err != nil {
			t.Fatal(r.name, err)
		}
		if got := w.norm(v); i == 0 {
			want = got
		} else if !w.same(want, got) {
			t.Fatalf("%s and %s read different things", w.readers[0].name, r.name)
		}
	}
}

// compare measures each reader.
func compare[T any](b *testing.B, w work[T]) {
	w.check(b)
	for _, r := range w.readers {
		b.Run(r.name, func(b *testing.B) {
			b.SetBytes(int64(len(w.text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.read(w.text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRoute reads what an event is and whose, and nothing of its data.
func BenchmarkRoute(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { compare(b, routeOf(n)) })
	}
}

func routeOf(n int) work[plain.IDs] {
	ids := func(unmarshal func([]byte, any) error) func([]byte) (any, error) {
		return func(text []byte) (any, error) {
			v := new(plain.IDs)
			return v, unmarshal(text, v)
		}
	}
	readers := []reader{
		{"encoding", func(text []byte) (any, error) {
			var v plain.Envelope
			err := json.Unmarshal(text, &v)
			return &v.IDs, err
		}},
		{"ours", func(text []byte) (any, error) {
			e, err := webhooks.ParseEnvelope(text)
			return &e, err
		}},
		{"goccy", ids(gojson.Unmarshal)},
		{"sonic", ids(sonic.ConfigFastest.Unmarshal)},
		{"jx", func(text []byte) (any, error) {
			v := new(plain.IDs)
			return v, jx.DecodeBytes(text).ObjBytes(func(d *jx.Decoder, key []byte) error { return idsJX(v, d, key) })
		}},
	}
	return work[plain.IDs]{plain.EventText(n, "uniform"), readers, func(v any) plain.IDs {
		if e, ok := v.(*webhooks.Envelope); ok {
			return plain.IDs{EventType: string(e.Type), TeamID: e.TeamID, UserID: e.UserID, ClientUserID: e.ClientUserID}
		}
		return *v.(*plain.IDs)
	}, func(a, b plain.IDs) bool { return a == b && a.EventType != "" }}
}
