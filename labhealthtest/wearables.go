// Wearable data of users, and the events that deliver it.

package labhealthtest

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// wearables is the wearable data of a user.
type wearables struct {
	summaries map[string][]*storedSummary // by resource, sorted by date
	samples   map[string][]*storedSample  // by resource as the API names it, sorted by key
	changes   int                         // how often data was added, so that each version differs
	person    uint64                      // differs between users, so that their days do
}

type storedSummary struct {
	id                   uuid.UUID
	date                 string // YYYY-MM-DD
	provider, sourceType string
	createdAt            timestamp
	data                 json.RawMessage
}

// sampleKey identifies a sample of a resource.
type sampleKey struct {
	at                   int64 // nanoseconds since 1970
	provider, sourceType string
}

func (k sampleKey) compare(other sampleKey) int {
	return cmp.Or(cmp.Compare(k.at, other.at), cmp.Compare(k.provider, other.provider), cmp.Compare(k.sourceType, other.sourceType))
}

type storedSample struct {
	sampleKey
	source json.RawMessage
	data   json.RawMessage
}

// SourceShape is the shape of the source in wearable data.
type SourceShape int

// The shapes of a source. Applications must read all of them.
const (
	// SourceComplete has the fields of both other shapes. It is the default.
	SourceComplete SourceShape = iota
	// SourceNamed has the fields of the interface specification: name, slug and logo.
	SourceNamed
	// SourceTyped has the fields that replace them: provider, type, app_id, device_id, sport and
	// workout_id. Source: public API reference only.
	SourceTyped
)

// A DataOption configures [Server.AddSummary], [Server.AddSamples] and [Server.SendEvent].
type DataOption func(*dataOptions)

type dataOptions struct {
	provider, sourceType string
	shape                SourceShape
	start                time.Time
	undelivered          bool
	action               string // empty for created or updated, whichever it is
}

// FromSource sets the source of the data, such as "fitbit" and "watch". The default is "oura" and
// "ring".
func FromSource(provider, sourceType string) DataOption {
	return func(o *dataOptions) { o.provider, o.sourceType = provider, sourceType }
}

// WithSourceShape sets the shape of the source.
func WithSourceShape(shape SourceShape) DataOption {
	return func(o *dataOptions) { o.shape = shape }
}

// StartingAt sets the day of a summary, or the time of the first sample. The default is the current
// time of the server, or for samples as long before it as they take.
func StartingAt(t time.Time) DataOption {
	return func(o *dataOptions) { o.start = t }
}

// Undelivered makes the server store the data without sending its event, as if the delivery was
// lost.
func Undelivered() DataOption {
	return func(o *dataOptions) { o.undelivered = true }
}

func newDataOptions(opts []DataOption) *dataOptions {
	o := &dataOptions{provider: "oura", sourceType: "ring"}
	for _, opt := range opts {
		if opt != nil {
			opt(o)
		}
	}
	return o
}

// source returns the JSON of the source.
func (o *dataOptions) source() json.RawMessage {
	fields := map[string]any{}
	if o.shape != SourceTyped {
		src := sourceOf(o.provider)
		fields["name"], fields["slug"], fields["logo"] = src.Name, src.Slug, src.Logo
	}
	if o.shape != SourceNamed {
		fields["provider"], fields["type"] = o.provider, o.sourceType
		for _, name := range []string{"app_id", "device_id", "sport", "workout_id"} {
			fields[name] = nil
		}
	}
	return encode(fields)
}

// addData calls add for the wearable data of a user.
func (s *Server) addData(userID uuid.UUID, add func(u *user, w *wearables) error) error {
	return s.withUser(userID, func(u *user) error {
		if u.wearables == nil {
			u.wearables = &wearables{
				summaries: map[string][]*storedSummary{}, samples: map[string][]*storedSample{}, person: binary.LittleEndian.Uint64(userID[:]),
			}
		}
		u.wearables.changes++
		return add(u, u.wearables)
	})
}

// AddSummary adds an invented summary of a day of a user and returns its ID. The resource is
// activity, body, electrocardiogram, meal, menstrual_cycle, profile, sleep, sleep_cycle or
// workouts. If the source, such as the watch of a provider, has a summary of that day, or any
// profile, AddSummary replaces it by another version with the same ID. It sends the event
// daily.data.<resource>.created or .updated.
//
// Sleeps and workouts have a stream, which the API returns for the ID of the summary.
//
// AddSummary returns an error if the user does not exist or the resource is unknown.
func (s *Server) AddSummary(userID uuid.UUID, resource string, opts ...DataOption) (id uuid.UUID, err error) {
	o := newDataOptions(opts)
	err = s.addData(userID, func(u *user, w *wearables) error {
		id, err = s.addSummary(u, w, resource, o)
		return err
	})
	return id, err
}

func (s *Server) addSummary(u *user, w *wearables, resource string, o *dataOptions) (uuid.UUID, error) {
	invent := inventedSummaries[resource]
	if invent == nil {
		return uuid.Nil, fmt.Errorf("labhealthtest: no resource %q with summaries", resource)
	}
	day := o.start
	if day.IsZero() {
		day = s.now()
	}
	date := day.UTC().Format(time.DateOnly)
	action := "updated"
	list := w.summaries[resource]
	i := slices.IndexFunc(list, func(v *storedSummary) bool {
		return v.provider == o.provider && v.sourceType == o.sourceType && (v.date == date || resource == "profile")
	})
	if i < 0 {
		action = "created"
		i = len(list)
		for i > 0 && list[i-1].date > date {
			i--
		}
		list = slices.Insert(list, i, &storedSummary{
			id: s.newID(), date: date, provider: o.provider, sourceType: o.sourceType, createdAt: timestamp(s.now()),
		})
		w.summaries[resource] = list
	}
	v := list[i]
	summary := &inventedSummary{id: v.id, day: day.UTC().Truncate(24 * time.Hour), date: date, change: w.changes, options: o, server: s, wearables: w}
	fields := invent(summary)
	fields["id"], fields["user_id"], fields["source"] = v.id, u.UserID, o.source()
	fields["created_at"], fields["updated_at"] = v.createdAt, timestamp(s.now())
	v.data = encode(fields)
	s.emitData(u, "daily.data."+resource+".", action, v.data, o)
	return v.id, nil
}

// emitData reports new data and sends its event.
func (s *Server) emitData(u *user, prefix, action string, data any, o *dataOptions) {
	s.reportUser(u)
	if !o.undelivered {
		s.emit(u, prefix+cmp.Or(o.action, action), data)
	}
}

// AddSamples adds n invented samples of a resource of a user, one for every five minutes. The
// resource is any with samples, such as glucose, with the name of the API or of the events:
// body_fat or fat. AddSamples replaces samples of the same source and time. It sends the event
// daily.data.<resource>.updated if it has replaced any, and .created otherwise.
//
// AddSamples returns an error if the user does not exist or the resource is unknown.
func (s *Server) AddSamples(userID uuid.UUID, resource string, n int, opts ...DataOption) error {
	o := newDataOptions(opts)
	return s.addData(userID, func(u *user, w *wearables) error { return s.addSamples(u, w, resource, n, o) })
}

func (s *Server) addSamples(u *user, w *wearables, resource string, n int, o *dataOptions) error {
	resource, event := resourceNames(resource)
	kind, ok := sampleKinds[event]
	if !ok {
		return fmt.Errorf("labhealthtest: no resource %q with samples", resource)
	}
	start := o.start.UTC().Truncate(time.Microsecond)
	if o.start.IsZero() {
		start = s.now().Truncate(time.Second).Add(-time.Duration(n) * sampleInterval)
	}
	action, source, sent := "created", o.source(), []json.RawMessage{}
	list := w.samples[resource]
	for i := range n {
		at := start.Add(time.Duration(i) * sampleInterval)
		v := &storedSample{sampleKey{at.UnixNano(), o.provider, o.sourceType}, source, encode(kind.invent(sampleContext{at, i, w.changes, w.person}, o.sourceType))}
		position, found := slices.BinarySearchFunc(list, v, func(a, b *storedSample) int { return a.compare(b.sampleKey) })
		if found {
			action, list[position] = "updated", v
		} else {
			list = slices.Insert(list, position, v)
		}
		sent = append(sent, v.data)
	}
	w.samples[resource] = list
	s.emitData(u, "daily.data."+event+".", action, struct {
		SourceID int               `json:"source_id"`
		UserID   uuid.UUID         `json:"user_id"`
		Source   json.RawMessage   `json:"source"`
		Data     []json.RawMessage `json:"data"`
	}{16, u.UserID, source, sent}, o)
	return nil
}

// resourceNames returns the names of a resource in the API and in events.
func resourceNames(resource string) (api, event string) {
	switch resource {
	case "weight", "body_weight":
		return "body_weight", "weight"
	case "fat", "body_fat":
		return "body_fat", "fat"
	default:
		return resource, resource
	}
}
