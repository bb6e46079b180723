package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/console"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/webhooks"
)

func newEvents(a *app) *cobra.Command {
	return group("events", "Read events offline", newEventsShow(a))
}

const maxEvents = 256 << 20

func newEventsShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE",
		Short: "Show what the library reads from the body of a webhook",
		Long: `Show what the library reads from the body of a webhook: the type, the IDs, the keys of what it stores,
the fields that are malformed, and the fields that the library does not have. Nothing is sent. - reads
stdin. Several events can be JSON Lines or a list. Values are not shown, and the names of fields that
the library does not have, which may be data, only with --show-patient.

The exit code is 1 if a part of an event cannot be read, and 2 if it is no event.
With --json, each line is one event: type, team_id, user_id, order_id, keys, malformed, unknown and
error.`,
		Example: `  labhealth events show body.json
  labhealth events show - < deliveries.jsonl --json | jq .malformed`,
		Args: exactArgs("a file, or - for stdin"),
		RunE: func(_ *cobra.Command, args []string) error {
			body, err := a.readInput(args[0])
			if err != nil {
				return err
			}
			events := splitEvents(body)
			if len(events) == 0 {
				return usagef("%s has no events", args[0])
			}
			code := exitDone
			for i, event := range events {
				if i > 0 && !a.json {
					fmt.Fprintln(a.out)
				}
				shown := a.describeEvent(event)
				code = max(code, shown.code)
				if err := a.printShownEvent(shown); err != nil {
					return err
				}
			}
			switch code {
			case exitUsage:
				return &exitError{code, "there is something that is not an event"}
			case exitFailed:
				return &exitError{code, "an event has parts that cannot be read"}
			}
			return nil
		},
	}
}

// readInput reads a file, or stdin.
func (a *app) readInput(name string) ([]byte, error) {
	input := a.in
	if name == "-" {
		name = "stdin"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, usagef("%v", pathError(err))
		}
		defer file.Close()
		input = file
	}
	body, err := io.ReadAll(io.LimitReader(input, maxEvents+1))
	switch {
	case err != nil:
		return nil, usagef("%v", pathError(err))
	case len(body) > maxEvents:
		return nil, usagef("%s is larger than 256 MiB", name)
	case len(bytes.TrimSpace(body)) == 0:
		return nil, usagef("%s is empty", name)
	}
	return body, nil
}

// splitEvents returns the events of a body: one document, a list, or one document per line. What is
// no JSON is one event.
func splitEvents(body []byte) (events [][]byte) {
	var list []json.RawMessage
	first, _, _ := bytes.Cut(body, []byte("\n"))
	if json.Unmarshal(body, &list) != nil && (json.Valid(body) || !json.Valid(first)) {
		return [][]byte{body}
	}
	for _, event := range list {
		events = append(events, event)
	}
	if list != nil {
		return events
	}
	for line := range bytes.Lines(body) {
		if len(bytes.TrimSpace(line)) > 0 {
			events = append(events, line)
		}
	}
	return events
}

// shownEvent is what is known of an event without its values.
type shownEvent struct {
	Type      webhooks.EventType `json:"type"`
	Data      string             `json:"data,omitzero"` // the type of the library
	TeamID    uuid.UUID          `json:"team_id,omitzero"`
	UserID    uuid.UUID          `json:"user_id,omitzero"`
	OrderID   uuid.UUID          `json:"order_id,omitzero"`
	Status    string             `json:"status,omitzero"` // of the order
	Keys      *eventKeys         `json:"keys,omitzero"`
	Malformed []malformedField   `json:"malformed"`
	Unknown   []string           `json:"unknown"` // paths of the fields that the library does not have
	Error     string             `json:"error,omitzero"`

	code int // the exit code
}

// eventKeys are the keys of the summary or of the samples of an event.
type eventKeys struct {
	Resource string    `json:"resource"`
	ID       string    `json:"id,omitzero"`      // of a summary
	Samples  int       `json:"samples,omitzero"` // their number
	Unkeyed  int       `json:"unkeyed,omitzero"` // samples without a readable time
	First    time.Time `json:"first,omitzero"`   // time of the earliest sample
	Last     time.Time `json:"last,omitzero"`    // time of the latest sample
}

type malformedField struct {
	Path string `json:"path"`
	Want string `json:"want"`
}

func (a *app) describeEvent(body []byte) *shownEvent {
	shown := &shownEvent{Malformed: []malformedField{}, Unknown: []string{}}
	event, err := webhooks.Parse(body)
	if err != nil {
		shown.Error, shown.code = errorText(err), exitUsage
		return shown
	}
	shown.Type, shown.Data, shown.TeamID, shown.UserID = event.Type, strings.TrimPrefix(fmt.Sprintf("%T", event.Data), "*"), event.TeamID, event.UserID
	shown.Unknown = a.unknownFields(event)
	if order, ok := event.Data.(*webhooks.LabOrder); ok {
		shown.OrderID, shown.Status = order.ID, string(order.CurrentStatus())
	}
	for _, m := range event.Malformed() {
		shown.Malformed = append(shown.Malformed, malformedField{a.fieldPath(m.Path), m.Want})
	}
	keys, err := event.Keys()
	shown.Keys = describeKeys(keys)
	err = errors.Join(event.Err(), err)
	if unknown, ok := event.Data.(*webhooks.Unknown); ok && unknown.Err != nil {
		err = unknown.Err
	}
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		shown.Error, shown.code = errorText(errors.New(first)), exitFailed
	}
	return shown
}

func describeKeys(keys webhooks.Keys) *eventKeys {
	if keys.Summary != (webhooks.SummaryKey{}) {
		return &eventKeys{Resource: keys.Summary.Resource, ID: fmt.Sprint(keys.Summary.ID)}
	}
	if len(keys.Samples) == 0 {
		return nil
	}
	shown := &eventKeys{Samples: len(keys.Samples)}
	var times []time.Time
	for _, key := range keys.Samples {
		if key == (webhooks.SampleKey{}) {
			shown.Unkeyed++
			continue
		}
		shown.Resource = key.Resource
		times = append(times, time.Unix(0, key.UnixNano).UTC())
	}
	if len(times) > 0 {
		shown.First, shown.Last = slices.MinFunc(times, time.Time.Compare), slices.MaxFunc(times, time.Time.Compare)
	}
	return shown
}

func (a *app) printShownEvent(s *shownEvent) error {
	switch {
	case a.json:
		return a.printJSON(s)
	case s.code == exitUsage:
		fmt.Fprintf(a.out, "%s %s\n", a.paint(red, "no event:"), s.Error)
		return nil
	}
	id := func(id uuid.UUID) string {
		if id == uuid.Nil {
			return ""
		}
		return id.String()
	}
	lines := [][2]string{
		{"type", clean(string(s.Type))}, {"data", s.Data}, {"team", id(s.TeamID)}, {"user", id(s.UserID)}, {"order", id(s.OrderID)},
		{"status", clean(s.Status)}, {"keys", s.Keys.String()},
	}
	for _, m := range s.Malformed {
		lines = append(lines, [2]string{"malformed", a.paint(yellow, fmt.Sprintf("%s: not a valid %s", clean(m.Path), m.Want))})
	}
	for _, path := range s.Unknown {
		lines = append(lines, [2]string{"unknown", clean(path)})
	}
	if s.Error != "" {
		lines = append(lines, [2]string{"error", a.paint(red, s.Error)})
	}
	a.fields(lines...)
	return nil
}

func (k *eventKeys) String() string {
	switch {
	case k == nil:
		return ""
	case k.Samples == 0:
		return k.Resource + " " + clean(k.ID)
	}
	text := fmt.Sprintf("%d samples of %s, %s to %s", k.Samples, k.Resource, stamp(k.First), stamp(k.Last))
	if k.Unkeyed > 0 {
		text += fmt.Sprintf("; %d without a readable time", k.Unkeyed)
	}
	return text
}

// maxUnknown is how many unknown fields are listed.
const maxUnknown = 100

var listIndex = regexp.MustCompile(`\.\d+\b`)

// unknownFields returns the paths of the fields that the types of the library do not have, each
// once for all elements of a list, whose indexes are replaced by *.
func (a *app) unknownFields(event *webhooks.Event) []string {
	found := []string{}
	for _, path := range inspect.UnknownFields(event) {
		path = a.fieldPath(listIndex.ReplaceAllString(path, ".*"))
		if !slices.Contains(found, path) && len(found) < maxUnknown {
			found = append(found, path)
		}
	}
	return found
}

// fieldPath returns the path of a field. Names that the library does not have may be data.
func (a *app) fieldPath(path string) string {
	if a.showPatient {
		return path
	}
	return console.HideNames(path, hidden)
}
