package webhooks

import (
	"runtime"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// hostile are bodies that are made to exhaust whoever reads them, of about size bytes.
func hostile(size int) map[string]string {
	fill := func(before, each, after string) string {
		return before + strings.Repeat(each, max(1, (size-len(before)-len(after))/len(each))) + after
	}
	const glucose = `{"event_type":"daily.data.glucose.created","data":{"data":`
	const activity = `{"event_type":"daily.data.activity.created","data":{`
	return map[string]string{
		"empty samples":           fill(glucose+`[`, `{},`, `{}]}}`),
		"samples that are 0":      fill(glucose+`[`, `0,`, `0]}}`),
		"samples that are arrays": fill(glucose+`[`, `[],`, `[]]}}`),
		"one member each":         fill(glucose+`[`, `{"a":1},`, `{}]}}`),
		"bad times":               fill(glucose+`[`, `{"timestamp":1},`, `{}]}}`),
		"shortest samples":        fill(glucose+`[`, `{"timestamp":"2025-03-01T12:00:00Z","unit":"","value":1},`, `{"value":1}]}}`),
		"braces in a string":      glucose + `[{"unit":"` + strings.Repeat("{", size) + `"}]}}`,
		"braces in extra members": fill(glucose+`[`, `{"timestamp":"2025-03-01T12:00:00Z","unit":"bpm","a":[{},{},{},{},{},{},{},{}]},`, `{"value":1}]}}`),
		"units that differ":       glucose + `[{"unit":"a` + strings.Join(numbered(size/40), `"},{"value":1,"unit":"unit `) + `"}]}}`,
		"times that differ":       fill(glucose+`[`, `{"timestamp":"2025-03-01T12:00:00+01:01"},{"timestamp":"2025-03-01T12:00:00-02:03"},`, `{}]}}`),
		"a million members":       fill(activity, `"a":1,`, `"steps":1}}`),
		"the same member":         fill(activity, `"source":{"name":"a"},`, `"steps":1}}`),
		"members that do not fit": fill(activity, `"steps":"a",`, `"steps":1}}`),
		"orders with events":      fill(`{"event_type":"labtest.order.created","data":{"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","events":[`, `{},`, `{}]}}`),
		"orders with codes":       fill(`{"event_type":"labtest.order.created","data":{"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","icd_codes":[`, `"",`, `""]}}`),
		"orders of orders":        fill(`{"event_type":"labtest.order.created","data":{"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5",`, `"events":[{},{}],"order_transaction":{"orders":[{}]},`, `"a":1}}`),
		"resources":               `{"event_type":"provider.connection.created","data":{"resource_availability":{"a` + strings.Join(numbered(size/12), `":{},"`) + `":{}}}}`,
		"entries of a cycle":      fill(`{"event_type":"daily.data.menstrual_cycle.created","data":{"menstrual_flow":[`, `{},`, `{}]}}`),
		"parts of a meal":         `{"event_type":"daily.data.meal.created","data":{"data":{"a` + strings.Join(numbered(size/12), `":{},"`) + `":{}}}}`,
		"results of a report":     fill(`{"event_type":"lab_report.parsing_job.created","data":{"data":{"results":[`, `{},`, `{}]}}}`),
		"tables":                  fill(`{"event_type":"continuous_query.result_table.changed","data":[`, `{},`, `{}]}`),
		"values of a table":       fill(`{"event_type":"continuous_query.result_table.changed","data":[{"data":{"a":[`, `0,`, `0]}}]}`),
		"an envelope of members":  fill(`{"event_type":"a.b",`, `"team_id":1,`, `"data":1}`),
		"a long client id":        `{"client_user_id":"` + strings.Repeat("a", size) + `"}`,
		"an escaped client id":    `{"client_user_id":"\n` + strings.Repeat("a", size) + `"}`,
		"a long type":             `{"event_type":"` + strings.Repeat("a.", size/2) + `"}`,
		"a long name":             `{"` + strings.Repeat("a", size) + `":1}`,
		"an escaped name":         `{"\n` + strings.Repeat("a", size) + `":1}`,
		"a long number":           glucose + `[{"value":1` + strings.Repeat("0", size) + `}]}}`,
		"a long note":             glucose + `[{"value":"` + strings.Repeat("a", size) + `"}]}}`,
		"an escaped note":         glucose + `[{"value":"` + strings.Repeat(`\n`, size/2) + `"}]}}`,
		"notes":                   fill(glucose+`[`, `{"value":"`+strings.Repeat("a", 100)+`"},`, `{"value":""}]}}`),
		"arrays in arrays":        `{"data":` + strings.Repeat("[", size) + strings.Repeat("]", size) + `}`,
		"objects in objects":      glucose + strings.Repeat(`[{"data":`, size/9) + "1" + strings.Repeat("}]", size/9) + `}}`,
		"objects with models":     glucose + `[` + strings.Repeat(strings.Repeat(`[{"a":1},{"a":`, 300)+`1`+strings.Repeat(`,"b":1}]`, 300)+`,`, size/6902) + `{}]}}`,
		"objects that go on":      glucose + `[` + strings.Repeat(strings.Repeat(`[{"a":1},{"a":`, 300)+`1`+strings.Repeat(`},{"a":1}]`, 300)+`,`, size/7502) + `{}]}}`,
		"deep and closed":         glucose + `[` + strings.Repeat(strings.Repeat(`[`, 900)+strings.Repeat(`]`, 900)+`,`, size/1801) + `{}]}}`,
		"bad UTF-8":               `{"data":"` + strings.Repeat("\xc3\x28", size/2) + `"}`,
		"spaces":                  `{` + strings.Repeat(" ", size) + `}`,
		"braces":                  strings.Repeat("{", size),
		"quotes":                  `{"data":` + strings.Repeat(`"`, size) + `}`,
		"backslashes":             `{"data":"` + strings.Repeat(`\`, size) + `"}`,
	}
}

func numbered(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = strings.Repeat(string(rune('a'+i%26)), 1+i%3) + strings.ToUpper(string(rune('a'+i/26%26))) + string(rune('a'+i/676%26)) + string(rune('a'+i/17576%26))
	}
	return list
}

// Parsing any body takes no more than four times its size, all memory counted that was
// taken at any time.
func TestHostileBodies(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for name, text := range hostile(1 << 20) {
		t.Run(name, func(t *testing.T) {
			body := []byte(text)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			e, err := Parse(body)
			runtime.ReadMemStats(&after)
			taken := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(body))
			if taken > 4.1 {
				t.Errorf("%.1f times the size of the body (%v)", taken, err)
			}
			t.Logf("%.2f times", taken)
			runtime.KeepAlive(e)
			if valid := jsonread.Valid(body) == nil; valid != (err == nil) {
				t.Errorf("valid %v: %v", valid, err)
			}
			if _, err2 := ParseEnvelope(body); (err == nil) != (err2 == nil) {
				t.Errorf("ParseEnvelope: %v", err2)
			}
		})
	}
	// What is small is read as it is, however odd.
	for name, text := range hostile(300) {
		t.Run("small "+name, func(t *testing.T) { checkPaths(t, []byte(text)) })
	}
	e := mustParse(t, []byte(hostile(1 << 20)["empty samples"]))
	if u, ok := e.Data.(*Unknown); !ok || u.Err != errTooLarge {
		t.Errorf("empty samples: %v", e.Data)
	}
	e = mustParse(t, []byte(hostile(1 << 20)["shortest samples"]))
	if _, ok := e.Data.(*Samples); !ok {
		t.Errorf("shortest samples: %v", e.Data)
	}
}

// A body that is cut at any byte is rejected, and one with a byte that does not belong
// never panics.
func TestCutAndChangedBodies(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	var bodies []string
	for n, source := range sources {
		bodies = append(bodies,
			string(wrap(n, DailyGlucoseCreated, `{"data":[{"timestamp":"2025-03-01T12:00:00.123456+02:00","unit":"°C","value":-1.5e3,"type":"\u00b0"},{"timestamp":"2025-03-01T12:00:00Z","unit":"°C","value":1}],"source":`+source.text+`}`)),
			string(wrap(n, DailyActivityCreated, `{"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11","source":`+source.text+`,"steps":1}`)))
	}
	for _, body := range bodies {
		end := len(strings.TrimRight(body, "\n"))
		for i := range end {
			if _, err := Parse([]byte(body[:i])); err == nil {
				t.Fatalf("cut at %d: no error", i)
			} else if e := err.(*ParseError); e.Offset > i {
				t.Fatalf("cut at %d: %v", i, err)
			}
		}
		for i := range end {
			for _, c := range []byte{' ', '"', '\\', '}', ',', '0', 0xff} {
				changed := []byte(body)
				changed[i] = c
				checkPaths(t, changed)
			}
		}
	}
}
