package webhooks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// alikeBatch returns a batch of samples of which most differ in few values from the one before.
func alikeBatch(r *rand.Rand) []byte {
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	values := map[string]func() string{
		"timestamp": func() string {
			return pick(`"2025-03-01T12:00:`+fmt.Sprintf("%02d", r.IntN(60))+pick("", ".5", ".123456", ".12345678", ".1234567891")+`Z"`, "null", `"2025-03-01"`)
		},
		"start":           func() string { return pick(`"2025-03-01T12:00:00+02:00"`, `"0001-01-01T02:00:00+02:00"`, "null") },
		"end":             func() string { return pick(`"2025-03-01T12:00:00Z"`, "null") },
		"timezone_offset": func() string { return pick("0", "3600", "4294970896", "null") },
		"type":            func() string { return pick(`"automatic"`, `"manual_scan"`, `"x\u00e9"`, `""`, "null") },
		"unit":            func() string { return pick(`"mmol/L"`, `"mg/dL"`, `""`, "null") },
		"value":           func() string { return pick("1", "12", "0", "5.4", "39.518054167148996", "null", `"note"`, "1e2") },
		"systolic":        func() string { return pick("0", "120", "null") },
		"diastolic":       func() string { return pick("0", "80", "null") },
		"id":              func() string { return pick("null", "1", `{"data":[{}]}`) },
		"more":            func() string { return pick("null", "null", "true") },
	}
	var names []string
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	shuffle := func() { r.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] }) }
	shuffle()
	count := 1 + r.IntN(len(names))
	now := map[string]string{}
	for _, name := range names {
		now[name] = values[name]()
	}
	changing := names[:1+r.IntN(3)]
	changing = slices.Clone(changing)
	comma, colon, between := pick(",", " ,", ", "), pick(":", ": "), pick(",", ",\n", " , ")
	var samples []string
	for range r.IntN(40) {
		for _, name := range changing {
			now[name] = values[name]()
		}
		switch r.IntN(25) {
		case 0:
			shuffle()
		case 1:
			count = 1 + r.IntN(len(names))
		case 2:
			name := names[r.IntN(len(names))]
			now[name] = values[name]()
		}
		var fields []string
		for _, name := range names[:count] {
			fields = append(fields, `"`+name+`"`+colon+now[name])
		}
		samples = append(samples, pick("{", "{", "{", "{ ")+strings.Join(fields, comma)+"}")
	}
	list := []byte("[" + strings.Join(samples, between) + "]")
	if len(list) > 2 && r.IntN(4) == 0 { // invalid or of another kind
		list[1+r.IntN(len(list)-2)] = `0"}],:x{ \`[r.IntN(10)]
	}
	return wrap(1, DailyGlucoseCreated, `{"source":`+namedSource+`,"data":`+string(list)+`}`)
}

// Samples that are read at once are read as the decoder reads them.
func TestAlikeSamples(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 1))
	for range 3000 {
		if body := alikeBatch(r); !t.Run("", func(t *testing.T) { checkPaths(t, body) }) {
			t.Fatalf("%s", body)
		}
	}
}
