package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go/webhooks"
)

// A value that another one of its batch replaces is not stored, and the log says so.
func TestLogContainsReplacedSamples(t *testing.T) {
	var out bytes.Buffer
	log.SetOutput(&out)
	defer log.SetOutput(os.Stderr)
	const dose = `{"timestamp":"2025-03-01T12:00:00Z","start":"2025-03-01T12:00:00Z","end":"2025-03-01T12:00:00Z","unit":"unit","type":"rapid_acting","value":%d}`
	event, err := webhooks.Parse(fmt.Appendf(nil, `{"event_type":"daily.data.insulin_injection.created","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4",`+
		`"data":{"source":{"provider":"example_pump","type":"insulin_pump"},"data":[`+dose+`,`+dose+`]}}`, 4, 6))
	if err != nil {
		t.Fatal(err)
	}
	if err := new(receiver).apply(t.Context(), event); err != nil || !strings.HasSuffix(out.String(), "example_pump: 1 added, 0 changed, 0 unchanged, 1 replaced by a later one of the batch\n") {
		t.Errorf("%v, %s", err, out.String())
	}
}

// The log has the provider of each event, in both formats of a source.
func TestLogContainsProvider(t *testing.T) {
	var out bytes.Buffer
	log.SetOutput(&out)
	defer log.SetOutput(os.Stderr)
	for _, source := range []string{`{"name":"Example Ring","slug":"example_ring","logo":""}`, `{"provider":"example_ring","type":"ring"}`} {
		for eventType, data := range map[string]string{
			"daily.data.glucose.created":  `{"source":%s,"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"mmol/L","value":5.4}]}`,
			"daily.data.activity.created": `{"source":%s,"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11","calendar_date":"2025-03-01"}`,
			"daily.data.sleep.created":    `{"source":%s,"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c12"}`,
			"provider.connection.created": `{"source":%s}`,
		} {
			event, err := webhooks.Parse(fmt.Appendf(nil, `{"event_type":%q,"user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","data":%s}`, eventType, fmt.Sprintf(data, source)))
			if err != nil {
				t.Fatal(err)
			}
			out.Reset()
			if err := new(receiver).apply(t.Context(), event); err != nil || !strings.Contains(out.String(), "example_ring") {
				t.Errorf("%s with %s: %v, %s", eventType, source, err, out.String())
			}
		}
	}
}
