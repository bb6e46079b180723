package jsonread

import (
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Documents built to exhaust time or memory are decoded or rejected within bounds. The bounds are
// generous: they are there to tell linear from quadratic, on a slow machine and with the race
// detector.
func TestHostileDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	const million, many = 1_000_000, 100_000
	tests := []struct {
		name   string
		text   string
		reason string // of the error, empty if it is read
	}{
		{"deep arrays", strings.Repeat("[", million), tooDeep},
		{"deep objects", strings.Repeat(`{"main":`, million), tooDeep},
		{"deep in a member of any shape", `{"free":` + strings.Repeat("[", million), tooDeep},
		{"a million unknown members", `{` + strings.Repeat(`"u":1,`, million) + `"u":1}`, ""},
		{"a million known members", `{` + strings.Repeat(`"name":"x",`, million) + `"name":"x"}`, ""},
		{"many malformed members", `{` + strings.Repeat(`"name":1,`, many) + `"name":"x"}`, ""},
		{"many lists", `{` + strings.Repeat(`"tags":["a","b"],`, many) + `"name":"x"}`, ""},
		{"a million empty objects", `{"parts":[` + strings.Repeat(`{},`, million) + `{}]}`, tooLarge},
		{"a million empty objects with texts of their own", `{"own":[` + strings.Repeat(`{},`, million) + `{}]}`, tooLarge},
		{"a million empty objects in a map", `{"by_name":{` + strings.Repeat(`"":{},`, million) + `"":{}}}`, tooLarge},
		{"many objects in an object of no known shape", `{"free":[` + strings.Repeat(`{},`, many) + `{}]}`, ""},
		{"a million elements that do not fit", `{"parts":[` + strings.Repeat(`0,`, million) + `0]}`, tooLarge},
		{"many texts", `{"tags":[` + strings.Repeat(`"abcdefgh",`, many) + `""]}`, ""},
		{"many numbers", `{"tags":[` + strings.Repeat(`12345678,`, many) + `""]}`, ""},
		{"a long integer", `{"count":` + strings.Repeat("9", million) + `}`, ""},
		{"a long fraction", `{"size":0.` + strings.Repeat("9", million) + `}`, ""},
		{"a long number of money", `{"price":` + strings.Repeat("9", million) + `}`, ""},
		{"a huge exponent", `{"count":1e` + strings.Repeat("9", million) + `,"size":1e` + strings.Repeat("9", million) + `}`, ""},
		{"long escapes", `{"name":"` + strings.Repeat(`\u00e9`, many) + `"}`, ""},
		{"long escapes in names", `{"` + strings.Repeat(`\u00e9`, many) + `":1}`, ""},
		{"many escaped names", `{` + strings.Repeat(`"n\u0061me":"x",`, many) + `"name":"x"}`, ""},
		{"a long date-time", `{"at":"2025-01-01T00:00:00.` + strings.Repeat("9", million) + `Z"}`, ""},
		{"many unions before their kinds", `{` + strings.Repeat(`"payload":{"data":{},"type":"letter"},`, many) + `"name":"x"}`, ""},
		{"one union with many kinds", `{"payload":{"data":{"text":"x"}` + strings.Repeat(`,"type":"letter"`, many) + `}}`, ""},
		{"one union with many values", `{"payload":{"type":"letter"` + strings.Repeat(`,"data":{"text":"x"}`, many) + `}}`, ""},
		{"many lists of their own that are not the rest", `{` + strings.Repeat(`"own":[{},{}],`, many) + `"name":"x"}`, tooLarge},
		{"many lists of numbers", `{` + strings.Repeat(`"beats":[0,0,0,0,0,0,0,0,0],`, many) + `"name":"x"}`, ""},
		{"lists of alternating length", `{` + strings.Repeat(`"tags":[`+strings.Repeat(`"",`, 63)+`""],"tags":[""],`, many/100) + `"name":"x"}`, ""},
		{"spaces", `{"name"` + strings.Repeat(" \n", million) + `:"x"}`, ""},
	}
	for _, test := range tests {
		text := []byte(test.text)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		var v Thing
		err := Unmarshal(text, &v)
		took := time.Since(start)
		runtime.ReadMemStats(&after)

		var e *SyntaxError
		if errors.As(err, &e) && e.Reason != test.reason || err == nil && test.reason != "" {
			t.Errorf("%s: %v", test.name, err)
		}
		allocated := after.TotalAlloc - before.TotalAlloc
		if limit := uint64(32*len(text) + 16<<20); allocated > limit {
			t.Errorf("%s: %d MB allocated for a text of %d MB", test.name, allocated>>20, len(text)>>20)
		}
		if took > time.Minute {
			t.Errorf("%s: took %v", test.name, took)
		}
		if err != nil {
			continue
		}
		start = time.Now()
		b, err := Marshal(&v)
		if err != nil || string(b) != test.text {
			t.Errorf("%s: not written as it came: %v", test.name, err)
		}
		v.Limit = new(int64(1))
		if _, err := Marshal(&v); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		wrote := time.Since(start)
		if wrote > time.Minute {
			t.Errorf("%s: writing took %v", test.name, wrote)
		}
		if testing.Verbose() {
			t.Logf("%-50s %9d bytes, %9d allocated, read in %v, written twice in %v", test.name, len(text), allocated, took, wrote)
		}
	}
}

// What a list takes in memory is what was charged for it, with the room that it has left.
func TestListsStayInTheirBudget(t *testing.T) {
	text := []byte(`{"parts":[` + strings.Repeat(`{},`, 99) + `{}]}`)
	size := int(reflect.TypeFor[Part]().Size())
	refused, read := 0, 0
	for budget := 90 * size; budget < 200*size; budget += size / 4 {
		var v Thing
		if NewDocument(text).Read(Span{0, uint32(len(text))}, &v, budget) != nil {
			refused++
			continue
		}
		read++
		if taken := cap(v.Parts) * size; len(v.Parts) != 100 || taken > budget+budget/8 { // the runtime rounds up
			t.Fatalf("%d parts take %d bytes of %d", len(v.Parts), taken, budget)
		}
	}
	if refused == 0 || read == 0 {
		t.Errorf("%d refused, %d read", refused, read)
	}
}

// Answers that hold little beside what Go makes of it are read all the same.
func TestSmallObjects(t *testing.T) {
	for name, text := range map[string]string{
		"a page of empty things":   `{"things":[` + strings.Repeat(`{},`, 999) + `{}]}`,
		"a page of nulls":          `{"things":[` + strings.Repeat(`null,`, 999) + `null]}`,
		"things with nothing in":   `{"things":[` + strings.Repeat(`{"spare":{},"main":{},"payload":{"type":"letter","data":{}}},`, 499) + `{}]}`,
		"things with an id":        `{"things":[` + strings.Repeat(`{"id":"9c0f2d52-3a3e-4a64-9b5e-1f2d3c4b5a69"},`, 999) + `{}]}`,
		"one thing with its parts": `{"things":[{"parts":[` + strings.Repeat(`{"id":1},`, 9999) + `{}]}]}`,
	} {
		var page Page
		if err := Unmarshal([]byte(text), &page); err != nil || problems(page.RawObject) != nil {
			t.Errorf("%s: %v %q", name, err, problems(page.RawObject))
		}
	}
}

// Streams of measurements have many lists of small numbers, behind none of which there is room for
// what follows in the document.
func TestListsOfZeros(t *testing.T) {
	var v struct {
		A []int64    `json:"a"`
		B []*float64 `json:"b"`
		C []*float64 `json:"c"`
		D []*float64 `json:"d"`
		E []*float64 `json:"e"`
		F []*float64 `json:"f"`

		RawObject `json:"-"`
	}
	const length = 50_000
	list := "[" + strings.Repeat("0,", length-1) + "0]"
	text := `{"a":` + list + `,"b":` + list + `,"c":` + list + `,"d":` + list + `,"e":` + list + `,"f":` + list + `}`
	if err := Unmarshal([]byte(text), &v); err != nil || len(v.A) != length || len(v.F) != length {
		t.Error(err, len(v.A), len(v.F))
	}
}
