package console

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestDiffLines checks that the runs turn one list into the other, for random lists with many equal
// lines.
func TestDiffLines(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		make := func() []string {
			lines := make([]string, random.IntN(12))
			for i := range lines {
				lines[i] = string(rune('a' + random.IntN(6)))
			}
			return lines
		}
		old, now := make(), make()
		x, y := 0, 0
		for _, r := range diffLines(old, now) {
			if r.same > 0 && !slices.Equal(old[x:x+r.same], now[y:y+r.same]) {
				t.Fatalf("%v to %v: %v are not equal", old, now, r)
			}
			x, y = x+r.same+r.del, y+r.same+r.ins
		}
		if x != len(old) || y != len(now) {
			t.Fatalf("%v to %v: %v", old, now, diffLines(old, now))
		}
	}
}

// samplesBody is an event with one sample every five minutes.
func samplesBody(values ...int) string {
	var b strings.Builder
	b.WriteString(`{"event_type":"daily.data.glucose.updated","user_id":"19cf0ec1-8b15-42d0-b786-6cff8cd8464d","client_user_id":"member-0192","data":{"source":{"provider":"freestyle_libre","type":"cgm"},"data":[`)
	for i, v := range values {
		if i > 0 {
			b.WriteString(",")
		}
		at := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC).Add(time.Duration(i) * 5 * time.Minute)
		fmt.Fprintf(&b, `{"timestamp":"%s","value":%d,"unit":"mg/dL"}`, at.Format("2006-01-02T15:04:05Z"), v)
	}
	b.WriteString(`]}}`)
	return b.String()
}

func diffText(v diffView) string {
	var b strings.Builder
	for _, line := range v.Lines {
		b.WriteString(map[string]string{"del": "-", "ins": "+", "": " ", "fold": "~"}[line.Op])
		b.WriteString(line.Text)
		for _, token := range line.Tokens {
			if token.Mark {
				b.WriteString("«" + token.Text + "»")
			} else {
				b.WriteString(token.Text)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestViewDiff(t *testing.T) {
	before := make([]int, 95)
	for i := range before {
		before[i] = 100 + i%10
	}
	after := slices.Clone(before)
	after[91], after[93] = 121, 114
	after = append(after, 109)
	got := diffText(viewDiff([]byte(samplesBody(before...)), []byte(samplesBody(after...)), false))
	want := ` {
   "event_type": "daily.data.glucose.updated",
   "user_id": "19cf0ec1-8b15-42d0-b786-6cff8cd8464d",
   "client_user_id": "member-0192",
   "data": {
     "source": {"provider": "freestyle_libre", "type": "cgm"},
     "data": [
       {"timestamp": "2026-11-21T06:00:00Z", "value": 100, "unit": "mg/dL"},
~87 lines are the same
       {"timestamp": "2026-11-21T13:20:00Z", "value": 108, "unit": "mg/dL"},
       {"timestamp": "2026-11-21T13:25:00Z", "value": 109, "unit": "mg/dL"},
       {"timestamp": "2026-11-21T13:30:00Z", "value": 100, "unit": "mg/dL"},
-      {"timestamp": "2026-11-21T13:35:00Z", "value": «101», "unit": "mg/dL"},
+      {"timestamp": "2026-11-21T13:35:00Z", "value": «121», "unit": "mg/dL"},
       {"timestamp": "2026-11-21T13:40:00Z", "value": 102, "unit": "mg/dL"},
-      {"timestamp": "2026-11-21T13:45:00Z", "value": «103», "unit": "mg/dL"},
+      {"timestamp": "2026-11-21T13:45:00Z", "value": «114», "unit": "mg/dL"},
       {"timestamp": "2026-11-21T13:50:00Z", "value": 104, "unit": "mg/dL"},
+      {"timestamp": "2026-11-21T13:55:00Z", "value": 109, "unit": "mg/dL"}
     ]
   }
 }
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestViewDiffHidden checks that a change of a hidden value is seen, and the value is not.
func TestViewDiffHidden(t *testing.T) {
	v := viewDiff([]byte(`{"patient_details":{"first_name":"Ada"},"status":"new"}`), []byte(`{"patient_details":{"first_name":"Eve"},"status":"new"}`), false)
	got := diffText(v)
	if strings.Contains(got, "Ada") || strings.Contains(got, "Eve") || !strings.Contains(got, `-  "patient_details": {"first_name": «"•••••"»}`) || !v.Hidden {
		t.Errorf("got %+v\n%s", v.Hidden, got)
	}
	if got := diffText(viewDiff([]byte(`{"dob":"1990-01-01"}`), []byte(`{"dob":"1991-01-01"}`), true)); !strings.Contains(got, `«"1991-01-01"»`) {
		t.Errorf("revealed:\n%s", got)
	}
}

// TestViewDiffLarge checks the time of large bodies, and that what is shown is bounded.
func TestViewDiffLarge(t *testing.T) {
	t.Parallel()
	before := make([]int, 10_000)
	after := make([]int, 10_000)
	for i := range after {
		before[i], after[i] = i%50, (i+1)%50
	}
	all := viewDiff([]byte(samplesBody(before...)), []byte(samplesBody(after...)), false)
	if len(all.Lines) != maxDiffShown+1 || all.More < 19_000 {
		t.Errorf("all samples differ: %d lines, %d more", len(all.Lines), all.More)
	}
	repeated := strings.Repeat(`{"a":[1,2,{"b":{"c":[3]}}]},`, 8000)
	start := time.Now()
	viewDiff([]byte("["+repeated+"1]"), []byte("[0,"+repeated[28:]+"2]"), false)
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("equal lines took %v", took)
	}
	for _, body := range []string{"", "no JSON", "\xff", strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), `"` + strings.Repeat("a", 5<<20) + `"`} {
		viewDiff([]byte(body), []byte(samplesBody(1)), false)
	}
}
