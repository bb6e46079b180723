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

	"github.com/labhealth/labhealth-go/integration/internal/cputime"
	"github.com/labhealth/labhealth-go/internal/plain"
	"github.com/labhealth/labhealth-go/webhooks"
)

func TestMain(m *testing.M) {
	types := []reflect.Type{reflect.TypeFor[plain.Event](), reflect.TypeFor[flatEvent](), reflect.TypeFor[plain.IDs]()}
	for _, p := range pages {
		types = append(types, p.plain)
	}
	for _, t := range types {
		if err := sonic.Pretouch(t); err != nil {
			panic(err)
		}
	}
	if os.Getenv(serving) != "" {
		serve()
	}
	if sonic.APIKind == sonic.UseSonicJSON {
		fmt.Println("sonic: with its own machine code")
	} else {
		fmt.Println("sonic: as encoding/json, because it does not support this Go version or processor")
	}
	os.Exit(m.Run())
}

// flatEvent is an event without pointers: it does not distinguish null and absent from zero, and
// allocates less.
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

// flat converts each form of an event.
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

// decoder is a decoder to be compared.
type decoder struct {
	name   string
	decode func(document []byte) (any, error)
}

// decoders decode an event with samples. The first is the reference.
var decoders = []decoder{
	{"encoding", func(document []byte) (any, error) {
		e, err := plain.DecodeEvent(document)
		return &e, err
	}},
	{"ours", func(document []byte) (any, error) { return webhooks.Parse(document) }},
	{"goccy", func(document []byte) (any, error) {
		e := new(plain.Event)
		return e, gojson.Unmarshal(document, e)
	}},
	{"goccy-values", func(document []byte) (any, error) {
		e := new(flatEvent)
		return e, gojson.Unmarshal(document, e)
	}},
	{"sonic", func(document []byte) (any, error) {
		e := new(plain.Event)
		return e, sonic.ConfigFastest.Unmarshal(document, e)
	}},
	{"sonic-values", func(document []byte) (any, error) {
		e := new(flatEvent)
		return e, sonic.ConfigFastest.Unmarshal(document, e)
	}},
	{"jx", func(document []byte) (any, error) { return decodeJX(document) }},
}

func BenchmarkParse(b *testing.B) {
	for _, form := range []string{"uniform", "mixed"} {
		for _, n := range []int{1, 10, 100, 1000, 10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", form, n), func(b *testing.B) { compare(b, eventOf(n, form)) })
		}
	}
}

// TestDecoders checks that all decoders return the same.
func TestDecoders(t *testing.T) {
	for _, form := range []string{"uniform", "mixed", "spaced"} {
		eventOf(100, form).check(t)
	}
	routeOf(100).check(t)
	for _, p := range pages {
		p.comparison(t).check(t)
	}
}

// eventOf compares the decoding of an event with samples.
func eventOf(n int, form string) comparison[flatEvent] {
	return comparison[flatEvent]{plain.EventJSON(n, form), decoders, flat, func(a, b flatEvent) bool {
		return a.IDs == b.IDs && a.Data.UserID == b.Data.UserID && a.Data.Source == b.Data.Source && a.Data.SourceID == b.Data.SourceID &&
			len(a.Data.Data) == n && slices.EqualFunc(a.Data.Data, b.Data.Data, sameSample)
	}}
}

func sameSample(a, b flatSample) bool {
	return a.Timestamp.Equal(b.Timestamp) && a.Start.Equal(b.Start) && a.End.Equal(b.End) && a.TimezoneOffset == b.TimezoneOffset &&
		a.Type == b.Type && a.Unit == b.Unit && a.Value == b.Value
}

// comparison compares decoders of a document. Their results are equal after normalize.
type comparison[T any] struct {
	document  []byte
	decoders  []decoder
	normalize func(any) T
	equal     func(a, b T) bool
}

// check checks that all decoders return the same as the first.
func (c comparison[T]) check(t testing.TB) {
	t.Helper()
	var want T
	for i, d := range c.decoders {
		v, err := d.decode(bytes.Clone(c.document))
		if err != nil {
			t.Fatal(d.name, err)
		}
		if got := c.normalize(v); i == 0 {
			want = got
		} else if !c.equal(want, got) {
			t.Fatalf("%s and %s decode different values", c.decoders[0].name, d.name)
		}
	}
}

// compare runs each decoder. Its time is that of the processor, not what other processes take.
func compare[T any](b *testing.B, c comparison[T]) {
	c.check(b)
	for _, d := range c.decoders {
		b.Run(d.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.document)))
			b.ReportAllocs()
			start := cputime.Now()
			for b.Loop() {
				if _, err := d.decode(c.document); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cputime.Now()-start)/float64(b.N), "ns/op")
		})
	}
}

// BenchmarkRoute decodes the type and the IDs of an event, without its data.
func BenchmarkRoute(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { compare(b, routeOf(n)) })
	}
}

func routeOf(n int) comparison[plain.IDs] {
	ids := func(unmarshal func([]byte, any) error) func([]byte) (any, error) {
		return func(document []byte) (any, error) {
			v := new(plain.IDs)
			return v, unmarshal(document, v)
		}
	}
	decoders := []decoder{
		{"encoding", func(document []byte) (any, error) {
			var v plain.Envelope
			err := json.Unmarshal(document, &v)
			return &v.IDs, err
		}},
		{"ours", func(document []byte) (any, error) {
			e, err := webhooks.ParseEnvelope(document)
			return &e, err
		}},
		{"goccy", ids(gojson.Unmarshal)},
		{"sonic", ids(sonic.ConfigFastest.Unmarshal)},
		{"jx", func(document []byte) (any, error) {
			v := new(plain.IDs)
			return v, jx.DecodeBytes(document).ObjBytes(func(d *jx.Decoder, key []byte) error { return idsJX(v, d, key) })
		}},
	}
	return comparison[plain.IDs]{plain.EventJSON(n, "uniform"), decoders, func(v any) plain.IDs {
		if e, ok := v.(*webhooks.Envelope); ok {
			return plain.IDs{EventType: string(e.Type), TeamID: e.TeamID, UserID: e.UserID, ClientUserID: e.ClientUserID}
		}
		return *v.(*plain.IDs)
	}, func(a, b plain.IDs) bool { return a == b && a.EventType != "" }}
}
