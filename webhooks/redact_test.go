package webhooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	labhealth "github.com/labhealth/labhealth-go"
)

// Values that hold health data print nothing of it, under any verb, as value, pointer, element or
// field, and in logs.
func TestRedaction(t *testing.T) {
	const canary = "canary-7731"
	f := 7731.25
	number := regexp.MustCompile(`\b7731\b`) // on its own: within other digits it may occur by chance
	at := time.Date(7731, 1, 1, 0, 0, 0, 0, time.UTC)
	sample := Sample{Timestamp: at, Value: f, HasValue: true, Text: canary, Type: canary, Unit: canary}
	source := Source{AppID: new(canary)}
	var came Event
	if err := json.Unmarshal([]byte(`{"event_type":"daily.data.note.created","client_user_id":"canary-7731","data":{"data":[{"value":"canary-7731"}]}}`), &came); err != nil {
		t.Fatal(err)
	}
	values := []any{
		came, *came.Data.(*Samples), came.Data.(*Samples).Data[0], came.Data.(*Samples).Data[0].RawSample,
		Event{Type: "a.b", ClientUserID: canary, Data: &Samples{Source: source, Data: []Sample{sample}}},
		Envelope{Type: "a.b", UserID: adaID, ClientUserID: canary},
		Samples{Source: source, Data: []Sample{sample}}, sample, source,
		Activity{ID: adaID, Steps: &f, TimeZone: new(canary)}, ActivityHeartRate{AvgBPM: &f},
		Summary{CreatedAt: at}, WorkoutStreamNotice{Message: canary}, ProviderConnection{ExternalUserID: new(canary)},
		HistoricalPull{Provider: canary}, Unknown{Raw: json.RawMessage(canary), Err: errNoObject}, Unknown{Raw: json.RawMessage(canary)},
		RawDelivery{ID: "a b", Body: []byte(canary)}, RawDelivery{ID: canary + "\n", Body: []byte("7731")},
		LabOrder{labhealth.Order{Notes: new(canary)}}, LabAppointment{labhealth.Appointment{ProviderID: canary}},
		ProviderDevice{labhealth.Device{DeviceModel: new(canary)}}, ContinuousQueryChanges{Tables: []ContinuousQueryResultTableChanges{{QuerySlug: canary}}},
		SampleDetails{SensorLocation: new(SensorLocation(canary))}, Event{Type: canary + " "},
	}
	for _, component := range payloadReference.Components { // received with the canary in every field
		data := reflect.New(reflect.TypeOf(component))
		if _, ok := data.Interface().(slog.LogValuer); !ok {
			continue
		}
		fields := []string{}
		for f := range reflect.TypeOf(component).Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
				fields = append(fields, fmt.Sprintf(`%q:"canary-7731"`, name))
			}
		}
		if err := json.Unmarshal([]byte("{"+strings.Join(fields, ",")+"}"), data.Interface()); err != nil {
			t.Fatal(err)
		}
		values = append(values, data.Elem().Interface())
	}
	for _, v := range values {
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, nil))
		jsonLogger := slog.New(slog.NewJSONHandler(&out, nil))
		forms := []any{v, &v, []any{v}, map[string]any{"k": v}, struct{ V any }{v}}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%T %v"} {
			for _, form := range forms {
				if strings.HasPrefix(verb, "%T") {
					fmt.Fprintf(&out, verb, 1, form)
				} else {
					fmt.Fprintf(&out, verb, form)
				}
			}
		}
		logger.Info("text", "v", v)
		jsonLogger.Info("json", "v", v)
		if number.MatchString(out.String()) {
			t.Errorf("%T prints 7731", v)
		}
		for _, secret := range []string{canary, fmt.Sprintf("%x", canary)} {
			if strings.Contains(out.String(), secret) {
				t.Errorf("%T prints %s", v, secret)
			}
		}
		if !strings.Contains(out.String(), "redacted") {
			t.Errorf("%T does not say that it is redacted", v)
		}
	}
	for want, v := range map[string]any{
		"webhooks.Event{daily.data.sleep.created 0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4, redacted}": &Event{Type: DailySleepCreated, UserID: adaID},
		"webhooks.Event{redacted}":                                        Event{},
		"webhooks.RawDelivery{msg_1, redacted}":                           RawDelivery{ID: "msg_1", Body: []byte("{}")},
		"webhooks.Unknown{webhooks: the data is not an object, redacted}": &Unknown{Err: errNoObject},
	} {
		if got := fmt.Sprint(v); got != want {
			t.Errorf("%s", got)
		}
	}
}

// A store prints nothing of what it holds.
func TestLatestIsNotPrinted(t *testing.T) {
	event, err := Parse([]byte(`{"event_type":"daily.data.sleep.created","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4",
		"data":{"id":"1d1f4e0a-7a3c-4f0e-9f5b-6a7c8d9e0f11","note":"canary"}}`))
	if err != nil {
		t.Fatal(err)
	}
	store := &Latest{}
	if _, err := store.Apply(Delivery{Event: event}); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		if got := fmt.Sprintf(verb, store); got != "webhooks.Latest{redacted}" {
			t.Errorf("%s prints %s", verb, got)
		}
	}
}

// A delivery is logged as its event, also by the handler that encodes structs to JSON.
func TestDeliveryIsRedacted(t *testing.T) {
	event, err := Parse([]byte(`{"event_type":"labtest.order.updated","user_id":"3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01","client_user_id":"Kanarie",` +
		`"data":{"id":"0b5e7f3a-1c2d-4e3f-8a9b-0c1d2e3f4a5b","patient_details":{"first_name":"Kanarie"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	logger.Info("m", "delivery", Delivery{Event: event, ID: "msg_1"}, "none", Delivery{})
	const want = `"delivery":"webhooks.Delivery{labtest.order.updated 3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01, redacted}","none":"webhooks.Delivery{redacted}"`
	if !strings.Contains(log.String(), want) {
		t.Error(log.String())
	}
}
