package webhooks

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// The payload types as the interface specification and the public API reference give them, typed by
// hand and never from the Go code: JSON name, Go field, Go type and a JSON value that fits. An
// asterisk marks fields that are always written.
const payloadFields = `
# Activity
*id             | ID             | uuid.UUID                    | "0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31"
user_id         | UserID         | uuid.UUID                    | "0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31"
source          | Source         | webhooks.Source              | {"slug":"oura"}
*calendar_date  | CalendarDate   | labhealth.Date               | "2026-01-31"
date            | Date           | time.Time                    | "2026-01-31T00:00:00+00:00"
timezone_offset | TimezoneOffset | *int64                       | 3600
time_zone       | TimeZone       | *string                      | "Europe/Berlin"
calories_active | CaloriesActive | *float64                     | 1.5
calories_total  | CaloriesTotal  | *float64                     | 1.5
daily_movement  | DailyMovement  | *float64                     | 1.5
distance        | Distance       | *float64                     | 1.5
floors_climbed  | FloorsClimbed  | *float64                     | 1.5
steps           | Steps          | *float64                     | 1.5
high            | High           | *float64                     | 1.5
medium          | Medium         | *float64                     | 1.5
low             | Low            | *float64                     | 1.5
heart_rate      | HeartRate      | *webhooks.ActivityHeartRate  | {"avg_bpm":71}
wheelchair_use  | WheelchairUse  | *bool                        | true
wheelchair_push | WheelchairPush | *float64                     | 1.5
created_at      | CreatedAt      | time.Time                    | "2026-01-31T00:00:00Z"
updated_at      | UpdatedAt      | time.Time                    | "2026-01-31T00:00:00Z"

# ActivityHeartRate
avg_bpm         | AvgBPM         | *float64                     | 71
min_bpm         | MinBPM         | *float64                     | 48
max_bpm         | MaxBPM         | *float64                     | 155
resting_bpm     | RestingBPM     | *float64                     | 52.5
avg_walking_bpm | AvgWalkingBPM  | *float64                     | 95

# Source
name            | Name           | string                       | "Oura"
slug            | Slug           | string                       | "oura"
logo            | Logo           | string                       | "https://example.com/oura.png"
provider        | Provider       | string                       | "oura"
type            | Type           | webhooks.SourceType          | "ring"
app_id          | AppID          | *string                      | "com.example.app"
device_id       | DeviceID       | *string                      | "0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31"
sport           | Sport          | *string                      | "running"
workout_id      | WorkoutID      | *string                      | "0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31"

# Summary
*id             | ID             | uuid.UUID                    | "0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31"
user_id         | UserID         | uuid.UUID                    | "0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31"
source          | Source         | webhooks.Source              | {"slug":"oura"}
calendar_date   | CalendarDate   | labhealth.Date               | "2026-01-31"
created_at      | CreatedAt      | time.Time                    | "2026-01-31T00:00:00Z"
updated_at      | UpdatedAt      | time.Time                    | "2026-01-31T00:00:00Z"

# WorkoutStreamNotice
*workout_id     | WorkoutID      | uuid.UUID                    | "0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31"
user_id         | UserID         | uuid.UUID                    | "0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31"
source          | Source         | webhooks.Source              | {"slug":"oura"}
*provider_id    | ProviderID     | string                       | "1234"
*sport          | Sport          | webhooks.Sport               | {"id":1,"name":"Running","slug":"running"}
message         | Message        | string                       | "read the stream"

# Sport
*id             | ID             | int64                        | 1
*name           | Name           | string                       | "Running"
slug            | Slug           | string                       | "running"

# ProviderConnection
user_id               | UserID               | uuid.UUID                                | "0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31"
source                | Source               | *webhooks.Source                         | {"slug":"oura"}
provider              | Provider             | *webhooks.Source                         | {"slug":"oura"}
external_user_id      | ExternalUserID       | *string                                  | "abc"
resource_availability | ResourceAvailability | map[string]labhealth.ResourceAvailability | {"sleep":{"status":"available"}}

# HistoricalPull
user_id         | UserID         | uuid.UUID                    | "0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31"
*start_date     | StartDate      | time.Time                    | "2026-01-31T00:00:00Z"
*end_date       | EndDate        | time.Time                    | "2026-01-31T00:00:00Z"
*provider       | Provider       | string                       | "oura"
*is_final       | IsFinal        | bool                         | true

# samplesForm
user_id         | UserID         | uuid.UUID                    | "0b7d3c52-6f0a-4f7e-9d0c-2f1d8a5e6b31"
source          | Source         | webhooks.Source              | {"slug":"oura"}
source_id       | SourceID       | int64                        | 7
provider        | Provider       | *webhooks.Source             | {"slug":"oura"}
data            | Data           | json.RawMessage              | [{"unit":"mmol/L"}]

# sampleForm
timestamp       | Timestamp      | time.Time                    | "2026-01-31T00:00:00Z"
timezone_offset | TimezoneOffset | webhooks.integer             | 3600
type            | Type           | webhooks.enum                | "automatic"
*unit           | Unit           | webhooks.enum                | "mmol/L"
value           | Value          | webhooks.number              | 5.5
systolic        | Systolic       | webhooks.number              | 120
diastolic       | Diastolic      | webhooks.number              | 80
start           | Start          | time.Time                    | "2026-01-31T00:00:00Z"
end             | End            | time.Time                    | "2026-01-31T00:00:00Z"
`

// Every tag of a payload type names a field of the specification or the reference, every field of
// theirs has its Go field and is read into it, and no Go field is left over.
func TestPayloadFieldsMatchTheSpecification(t *testing.T) {
	types := map[string]reflect.Type{}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[Activity](), reflect.TypeFor[ActivityHeartRate](), reflect.TypeFor[Source](), reflect.TypeFor[Summary](),
		reflect.TypeFor[WorkoutStreamNotice](), reflect.TypeFor[Sport](), reflect.TypeFor[ProviderConnection](),
		reflect.TypeFor[HistoricalPull](), reflect.TypeFor[sampleForm](),
		reflect.TypeFor[samplesForm[json.RawMessage]](),
	} {
		name, _, _ := strings.Cut(typ.Name(), "[")
		types[name] = typ
	}
	rows := 0
	for section := range strings.SplitSeq(strings.TrimPrefix(payloadFields, "\n# "), "\n# ") {
		name, table, _ := strings.Cut(section, "\n")
		typ, ok := types[name]
		if !ok {
			t.Fatalf("no type %s", name)
		}
		delete(types, name)
		left := map[string]bool{}
		for field := range typ.Fields() {
			if field.Name != "RawObject" && field.Name != "Redacted" {
				left[field.Name] = true
			}
		}
		for line := range strings.Lines(strings.TrimSpace(table)) {
			columns := strings.Split(strings.TrimSpace(line), "|")
			for i := range columns {
				columns[i] = strings.TrimSpace(columns[i])
			}
			key, always := strings.CutPrefix(columns[0], "*")
			rows++
			t.Run(name+"."+key, func(t *testing.T) {
				delete(left, columns[1])
				field, ok := typ.FieldByName(columns[1])
				if !ok {
					t.Fatalf("no field %s", columns[1])
				}
				// Go 1.27 makes json.RawMessage an alias of another name.
				if got := strings.ReplaceAll(field.Type.String(), reflect.TypeFor[json.RawMessage]().String(), "json.RawMessage"); got != columns[2] {
					t.Errorf("the type is %s, want %s", got, columns[2])
				}
				tag := key
				if !always {
					tag += ",omitzero"
				}
				if got := field.Tag.Get("json"); got != tag {
					t.Errorf("the tag is %s, want %s", got, tag)
				}
				value := reflect.New(typ)
				if err := jsonread.Unmarshal(fmt.Appendf(nil, `{%q:%s}`, key, columns[3]), value.Interface()); err != nil {
					t.Fatal(err)
				}
				if value.Elem().FieldByName(columns[1]).IsZero() {
					t.Error("the value was not read")
				}
				if bad := value.Interface().(interface{ Malformed() []labhealth.Malformed }).Malformed(); bad != nil {
					t.Errorf("malformed: %v", bad)
				}
			})
		}
		for field := range left {
			t.Errorf("%s.%s is in neither the specification nor the reference", name, field)
		}
	}
	for name := range types {
		t.Errorf("%s has no table", name)
	}
	t.Logf("%d fields", rows)
}
