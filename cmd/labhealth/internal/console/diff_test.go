package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

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

// bodiesDiff compares two bodies, of which the same is hidden.
func bodiesDiff(before, after string, reveal bool) jsonView {
	return viewDiff([]byte(before), []byte(after), jsonOptions{Reveal: reveal}, jsonOptions{Reveal: reveal})
}

func diffText(v jsonView) string {
	var b strings.Builder
	for _, line := range v.Lines {
		b.WriteString(map[string]string{"del": "-", "ins": "+", "": " ", "fold": "~"}[line.Op])
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
	got := diffText(bodiesDiff(samplesBody(before...), samplesBody(after...), false))
	want := `~95 lines the same
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
	v := bodiesDiff(`{"patient_details":{"first_name":"Ada"},"status":"new"}`, `{"patient_details":{"first_name":"Eve"},"status":"new"}`, false)
	got := diffText(v)
	if strings.Contains(got, "Ada") || strings.Contains(got, "Eve") || !strings.Contains(got, `-  "patient_details": {"first_name": «"•••••"»}`) || !v.Hidden {
		t.Errorf("got %+v\n%s", v.Hidden, got)
	}
	if got := diffText(bodiesDiff(`{"dob":"1990-01-01"}`, `{"dob":"1991-01-01"}`, true)); !strings.Contains(got, `«"1991-01-01"»`) {
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
	all := bodiesDiff(samplesBody(before...), samplesBody(after...), false)
	if last := all.Lines[len(all.Lines)-1]; len(all.Lines) != maxDiffShown || all.More == 0 {
		t.Errorf("all samples differ: %d lines, the last is %v", len(all.Lines), last)
	}
	repeated := strings.Repeat(`{"a":[1,2,{"b":{"c":[3]}}]},`, 8000)
	start := time.Now()
	bodiesDiff("["+repeated+"1]", "[0,"+repeated[28:]+"2]", false)
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("equal lines took %v", took)
	}
	for _, body := range []string{"", "no JSON", "\xff", strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), `"` + strings.Repeat("a", 5<<20) + `"`} {
		bodiesDiff(body, samplesBody(1), false)
	}
}
