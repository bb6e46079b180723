package jsonread

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// defaults returns the Thing that an empty object decodes to.
func defaults() Thing { return Thing{Colour: "red", On: true, Maybe: new(true)} }

func problems(k RawObject) (list []string) {
	for _, p := range ref(k).Problems() {
		list = append(list, strings.Join(p.Path, ".")+" "+p.Want)
	}
	return list
}

func TestDecodeFields(t *testing.T) {
	id := uuid.MustParse("9c0f2d52-3a3e-4a64-9b5e-1f2d3c4b5a69")
	tests := []struct {
		text string
		want func(*Thing)
		odd  []string // path and wanted type of what does not fit
	}{
		// Valid values of each kind.
		{`{}`, func(v *Thing) {}, nil},
		{`{"id":"9c0f2d52-3a3e-4a64-9b5e-1f2d3c4b5a69"}`, func(v *Thing) { v.ID = id }, nil},
		{`{"id":"9C0F2D52-3A3E-4A64-9B5E-1F2D3C4B5A69"}`, func(v *Thing) { v.ID = id }, nil},
		{`{"other":"9c0f2d52-3a3e-4a64-9b5e-1f2d3c4b5a69"}`, func(v *Thing) { v.Other = &id }, nil},
		{`{"name":"Ada \"Example\" \u00e9\ud83d\ude00\/"}`, func(v *Thing) { v.Name = `Ada "Example" é😀/` }, nil},
		{`{"name":"\ud800x"}`, func(v *Thing) { v.Name = "\uFFFDx" }, nil},
		{`{"name":""}`, func(v *Thing) {}, nil},
		{`{"note":""}`, func(v *Thing) { v.Note = new("") }, nil},
		{`{"colour":"sky blue"}`, func(v *Thing) { v.Colour = "sky blue" }, nil},
		{`{"count":1234567890251}`, func(v *Thing) { v.Count = 1234567890251 }, nil},
		{`{"count":-9223372036854775808,"limit":9223372036854775807}`, func(v *Thing) { v.Count, v.Limit = -1<<63, new(int64(1<<63-1)) }, nil},
		{`{"count":-0,"limit":3.0}`, func(v *Thing) { v.Limit = new(int64(3)) }, nil},
		{`{"count":9007199254740993.0,"limit":1e18}`, func(v *Thing) { v.Count, v.Limit = 9007199254740993, new(int64(1e18)) }, nil},
		{`{"count":-92233720368547758080e-1,"limit":0.00e99999999999999999999}`, func(v *Thing) { v.Count, v.Limit = -1<<63, new(int64(0)) }, nil},
		{`{"count":3e2,"limit":-120.50e1}`, func(v *Thing) { v.Count, v.Limit = 300, new(int64(-1205)) }, nil},
		{`{"size":237}`, func(v *Thing) { v.Size = 237 }, nil},
		{`{"size":39.518054167148996}`, func(v *Thing) { v.Size = 39.518054167148996 }, nil},
		{`{"price":45.00}`, func(v *Thing) { v.Price = "45.00" }, nil},
		{`{"price":0.1e-400}`, func(v *Thing) { v.Price = "0.1e-400" }, nil},
		{`{"on":false,"maybe":false}`, func(v *Thing) { v.On, v.Maybe = false, new(false) }, nil},
		{`{"at":"2025-03-01T12:00:00.123456+02:00"}`, func(v *Thing) { v.At = time.Date(2025, 3, 1, 10, 0, 0, 123456000, time.UTC) }, nil},
		{`{"until":"2025-03-01T12:00:00"}`, func(v *Thing) { v.Until = new(time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)) }, nil},
		{`{"at":"2025-03-01"}`, func(v *Thing) { v.At = time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC) }, nil},
		{`{"day":"2025-03-01","due":"2025-03-02"}`, func(v *Thing) { v.Day, v.Due = Day{"2025-03-01"}, &Day{"2025-03-02"} }, nil},
		{`{"tags":[],"codes":["a","b"]}`, func(v *Thing) { v.Tags, v.Codes = []string{}, []Colour{"a", "b"} }, nil},
		{`{"beats":[60,null,0]}`, func(v *Thing) { v.Beats = []Perhaps[int64]{{Value: 60}, {Null: true}, {}} }, nil},
		{`{"parts":[{"id":1},{"id":2,"name":"x"}]}`, func(v *Thing) { v.Parts = []Part{{ID: 1}, {ID: 2, Name: new("x")}} }, nil},
		{`{"own":[{"id":1},{}]}`, func(v *Thing) { v.Own = []Part{{ID: 1}, {}} }, nil},
		{`{"free":{"a": [1]}}`, func(v *Thing) { v.Free = json.RawMessage(`{"a": [1]}`) }, nil},
		{`{"extra":{"a":1,"b":null,"a":2}}`, func(v *Thing) { v.Extra = map[string]json.RawMessage{"a": []byte("2"), "b": nil} }, nil},
		{`{"by_name":{"a":{"id":1},"b":null}}`, func(v *Thing) { v.ByName = map[string]Part{"a": {ID: 1}, "b": {}} }, nil},
		{`{"by_name":{}}`, func(v *Thing) { v.ByName = map[string]Part{} }, nil},
		{`{"main":{"id":5,"maker":{"city":"Springfield"}}}`, func(v *Thing) { v.Main = Part{ID: 5, Maker: &Maker{City: "Springfield"}} }, nil},
		{`{"spare":{}}`, func(v *Thing) { v.Spare = &Part{} }, nil},
		{" {\n\"name\" :\t\"x\" ,\r\"count\" : 1 } ", func(v *Thing) { v.Name, v.Count = "x", 1 }, nil},

		// Null is never malformed and reads as absent, but for the pointer with a default.
		{`{"id":null,"other":null,"name":null,"note":null,"colour":null,"count":null,"limit":null,"size":null,"price":null,"on":null,
		   "at":null,"until":null,"day":null,"due":null,"tags":null,"codes":null,"beats":null,"parts":null,"own":null,"free":null,
		   "extra":null,"by_name":null,"main":null,"spare":null,"payload":null}`, func(v *Thing) {}, nil},
		{`{"maybe":null}`, func(v *Thing) { v.Maybe = nil }, nil},
		{`{"tags":["a",null],"parts":[null,{"id":2}],"own":[null]}`, func(v *Thing) {
			v.Tags, v.Parts, v.Own = []string{"a", ""}, []Part{{}, {ID: 2}}, []Part{{}}
		}, nil},
		{`{"payload":{"type":null,"data":null}}`, func(v *Thing) {}, nil},

		// Names are matched exactly, escaped or not. Unknown names are stepped over.
		{`{"Name":"x","NAME":"y","naMe":"z","nam":"a","name ":"b","":"c"}`, func(v *Thing) {}, nil},
		{`{"\u006eame":"x","n\u0061me\u0020":"y"}`, func(v *Thing) { v.Name = "x" }, nil},
		{`{"unknown":{"name":["x",{"count":1}]},"count":2}`, func(v *Thing) { v.Count = 2 }, nil},

		// Duplicate names: the last value counts, also where the first was malformed.
		{`{"name":"a","name":"b"}`, func(v *Thing) { v.Name = "b" }, nil},
		{`{"name":"a","name":null}`, func(v *Thing) {}, nil},
		{`{"colour":"blue","colour":null,"on":false,"on":null}`, func(v *Thing) {}, nil},
		{`{"tags":["a","b"],"tags":["c"]}`, func(v *Thing) { v.Tags = []string{"c"} }, nil},
		{`{"spare":{"id":1},"spare":{"name":"x"}}`, func(v *Thing) { v.Spare = &Part{Name: new("x")} }, nil},
		{`{"main":{"id":1},"main":{"name":"x"}}`, func(v *Thing) { v.Main = Part{Name: new("x")} }, nil},
		{`{"count":"x","count":2}`, func(v *Thing) { v.Count = 2 }, nil},
		{`{"count":2,"count":"x"}`, func(v *Thing) {}, []string{"count integer"}},
		{`{"count":"x","count":"y"}`, func(v *Thing) {}, []string{"count integer"}},
		{`{"on":5,"parts":[{"id":"x"}],"own":["x",{"id":"x"}],"parts":[{"id":1}],"own":[{"id":"y"}]}`, func(v *Thing) {
			v.On, v.Parts, v.Own = false, []Part{{ID: 1}}, []Part{{}}
		}, []string{"on boolean", "own.0.id integer"}},
		{`{"by_name":{"a":5,"b":{"id":"x"},"a":{"id":1},"b":null}}`, func(v *Thing) { v.ByName = map[string]Part{"a": {ID: 1}, "b": {}} }, nil},
		{`{"payload":{"type":"parcel","data":{"weight":1},"type":"letter"}}`, func(v *Thing) { v.Payload = Payload{Type: "letter", Data: &Letter{}} }, nil},
		{`{"payload":{"type":"letter","data":5,"type":"parcel","data":{"weight":1},"type":"parcel"}}`, func(v *Thing) {
			v.Payload = Payload{Type: "parcel", Data: &Parcel{Weight: 1}}
		}, nil},

		// What does not fit is left zero and named; everything beside it is read.
		{`{"id":"482gh249-3a3e-4a64-9b5e-1f2d3c4b5a69","name":"x"}`, func(v *Thing) { v.Name = "x" }, []string{"id uuid"}},
		{`{"id":"{9c0f2d52-3a3e-4a64-9b5e-1f2d3c4b5a69}"}`, func(v *Thing) {}, []string{"id uuid"}},
		{`{"id":"urn:uuid:9c0f2d52-3a3e-4a64-9b5e-1f2d3c4b5a69"}`, func(v *Thing) {}, []string{"id uuid"}},
		{`{"id":"9c0f2d523a3e4a649b5e1f2d3c4b5a69","other":""}`, func(v *Thing) {}, []string{"id uuid", "other uuid"}},
		{`{"id":"9c0f2d52-3a3e-4a64-9b5e-1f2d3c4b5a6"}`, func(v *Thing) {}, []string{"id uuid"}},
		{`{"id":"(9c0f2d52-3a3e-4a64-9b5e-1f2d3c4b5a69)"}`, func(v *Thing) {}, []string{"id uuid"}},
		{`{"id":12,"other":{}}`, func(v *Thing) {}, []string{"id uuid", "other uuid"}},
		{`{"name":5,"note":false,"colour":["red"]}`, func(v *Thing) { v.Colour = "" }, []string{"name string", "note string", "colour string"}},
		{`{"count":"5","limit":1.5}`, func(v *Thing) {}, []string{"count integer", "limit integer"}},
		{`{"count":9223372036854775808,"limit":1e400}`, func(v *Thing) {}, []string{"count integer", "limit integer"}},
		{`{"count":9007199254740992.5,"limit":1e-400}`, func(v *Thing) {}, []string{"count integer", "limit integer"}},
		{`{"count":0.99999999999999999999,"limit":1e19}`, func(v *Thing) {}, []string{"count integer", "limit integer"}},
		{`{"count":1e-99999999999999999999,"limit":1e99999999999999999999}`, func(v *Thing) {}, []string{"count integer", "limit integer"}},
		{`{"size":"1.5"}`, func(v *Thing) {}, []string{"size number"}},
		{`{"size":1e999}`, func(v *Thing) {}, []string{"size number"}},
		{`{"price":"45.00"}`, func(v *Thing) {}, []string{"price number"}},
		{`{"on":"true","maybe":0}`, func(v *Thing) { v.On, v.Maybe = false, nil }, []string{"on boolean", "maybe boolean"}},
		{`{"at":"2024-15-01T00:00:00Z","until":"yesterday"}`, func(v *Thing) {}, []string{"at date-time", "until date-time"}},
		{`{"at":1700000000,"until":[]}`, func(v *Thing) {}, []string{"at date-time", "until date-time"}},
		{`{"day":"2024-15-","due":20240101}`, func(v *Thing) {}, []string{"day day", "due day"}},
		{`{"tags":"a","parts":{"id":1},"own":5}`, func(v *Thing) {}, []string{"tags array", "parts array", "own array"}},
		{`{"beats":[60,"x",{},1.5]}`, func(v *Thing) { v.Beats = []Perhaps[int64]{{Value: 60}, {}, {}, {}} },
			[]string{"beats.1 integer", "beats.2 integer", "beats.3 integer"}},
		{`{"extra":[1],"by_name":"x"}`, func(v *Thing) {}, []string{"extra object", "by_name object"}},
		{`{"main":"x","spare":[{}]}`, func(v *Thing) {}, []string{"main object", "spare object"}},

		// One element does not take the list with it.
		{`{"tags":["a",5,"b",{"x":[1]}]}`, func(v *Thing) { v.Tags = []string{"a", "", "b", ""} }, []string{"tags.1 string", "tags.3 string"}},
		{`{"parts":[{"id":1},[{"id":2}],"x",7,{"id":"3","name":"c"}]}`, func(v *Thing) {
			v.Parts = []Part{{ID: 1}, {}, {}, {}, {Name: new("c")}}
		}, []string{"parts.1 object", "parts.2 object", "parts.3 object", "parts.4.id integer"}},
		{`{"own":[7,{"id":2,"maker":{"city":3}}]}`, func(v *Thing) { v.Own = []Part{{}, {ID: 2, Maker: &Maker{}}} },
			[]string{"own.0 object", "own.1.maker.city string"}},
		{`{"by_name":{"a":1,"b":{"id":"x"},"c":{"id":3}}}`, func(v *Thing) { v.ByName = map[string]Part{"a": {}, "b": {}, "c": {ID: 3}} },
			[]string{"by_name.a object", "by_name.b.id integer"}},

		// Unions.
		{`{"payload":{"type":"letter","data":{"text":"hi"}}}`, func(v *Thing) { v.Payload = Payload{Type: "letter", Data: &Letter{Text: "hi"}} }, nil},
		{`{"payload":{"data":{"weight":7},"type":"parcel"}}`, func(v *Thing) { v.Payload = Payload{Type: "parcel", Data: &Parcel{Weight: 7}} }, nil},
		{`{"payload":{"data":{"weight":7},"x":[{}],"type":"letter","y":1},"name":"x"}`, func(v *Thing) {
			v.Payload, v.Name = Payload{Type: "letter", Data: &Letter{}}, "x"
		}, nil},
		{`{"payload":{"type":"pigeon","data":{"wings":2}}}`, func(v *Thing) { v.Payload = Payload{Type: "pigeon", Data: &Unknown{}} }, nil},
		{`{"payload":{"data":[1,2]}}`, func(v *Thing) { v.Payload = Payload{Data: &Unknown{}} }, nil},
		{`{"payload":{"data":"text","type":7}}`, func(v *Thing) { v.Payload = Payload{Data: &Unknown{}} }, []string{"payload.type string"}},
		{`{"payload":{"type":"letter","data":"text"}}`, func(v *Thing) { v.Payload = Payload{Type: "letter"} }, []string{"payload.data object"}},
		{`{"payload":{"data":[],"type":"parcel"}}`, func(v *Thing) { v.Payload = Payload{Type: "parcel"} }, []string{"payload.data object"}},
		{`{"payload":{"type":"parcel","data":{"weight":"7"}}}`, func(v *Thing) { v.Payload = Payload{Type: "parcel", Data: &Parcel{}} },
			[]string{"payload.data.weight integer"}},
		{`{"payload":{"type":"letter","data":null}}`, func(v *Thing) { v.Payload = Payload{Type: "letter"} }, nil},
		{`{"payload":{"type":"letter"}}`, func(v *Thing) { v.Payload = Payload{Type: "letter"} }, nil},
		{`{"payload":{"type":"letter","data":{"text":"a"},"data":{"text":"b"}}}`, func(v *Thing) {
			v.Payload = Payload{Type: "letter", Data: &Letter{Text: "b"}}
		}, nil},
		{`{"payload":{"data":{"weight":1},"type":"letter","data":{"text":"b"}}}`, func(v *Thing) {
			v.Payload = Payload{Type: "letter", Data: &Letter{Text: "b"}}
		}, nil},
		{`{"payload":[]}`, func(v *Thing) {}, []string{"payload object"}},
	}
	for _, test := range tests {
		want := defaults()
		test.want(&want)
		got := Thing{Name: "what was there before is gone"}
		if err := Unmarshal([]byte(test.text), &got); err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", test.text, diff)
		}
		if odd := problems(got.RawObject); !slices.Equal(odd, test.odd) {
			t.Errorf("%s: problems %q, want %q", test.text, odd, test.odd)
		}
		if raw := ref(got.RawObject).Raw(); string(raw) != strings.Trim(test.text, " \n\t\r") {
			t.Errorf("%s: kept %s", test.text, raw)
		}
		b, err := Marshal(&got)
		if err != nil || string(b) != strings.Trim(test.text, " \n\t\r") {
			t.Errorf("%s: written as %s, %v", test.text, b, err)
		}
	}
}

func TestReadWrongKind(t *testing.T) {
	for _, text := range []string{`[]`, `"x"`, `5`, `true`, `[{"name":"x"}]`} {
		var v Thing
		if err := Unmarshal([]byte(text), &v); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got := problems(v.RawObject); !slices.Equal(got, []string{" object"}) {
			t.Errorf("%s: problems %q", text, got)
		}
		if b, _ := Marshal(v); string(b) != text {
			t.Errorf("%s: written as %s", text, b)
		}
	}
	var v Thing
	if err := Unmarshal([]byte(`null`), &v); err != nil || problems(v.RawObject) != nil {
		t.Error(err, problems(v.RawObject))
	}
	if Unmarshal([]byte(`{"name":"x"`), &v) == nil || Unmarshal([]byte(``), &v) == nil || Unmarshal([]byte("{\"name\":\"\xff\"}"), &v) == nil {
		t.Error("text that is not JSON is read")
	}
}

// A value in a value says what did not fit in it, with a path from itself.
func TestProblemPaths(t *testing.T) {
	text := `{"things":[
		{"name":"fits","parts":[{"id":1}]},
		{"id":"bad","parts":[{"id":1},{"id":"2","maker":{"city":7}}],"spare":{"maker":{"city":8}},
		 "own":[{"id":3},{"id":[],"maker":{"city":9}}],"by_name":{"k":{"id":false}},"payload":{"type":"letter","data":{"text":1}}},
		17
	],"total":"3"}`
	var page Page
	if err := Unmarshal([]byte(text), &page); err != nil {
		t.Fatal(err)
	}
	thing := page.Things[1]
	tests := []struct {
		of   string
		kept RawObject
		want []string
	}{
		{"page", page.RawObject, []string{
			"things.1.id uuid", "things.1.parts.1.id integer", "things.1.parts.1.maker.city string", "things.1.spare.maker.city string",
			"things.1.own.1.id integer", "things.1.own.1.maker.city string", "things.1.by_name.k.id integer", "things.1.payload.data.text string",
			"things.2 object", "total integer",
		}},
		{"things.0", page.Things[0].RawObject, nil},
		{"things.0.parts.0", page.Things[0].Parts[0].RawObject, nil},
		{"things.1", thing.RawObject, []string{
			"id uuid", "parts.1.id integer", "parts.1.maker.city string", "spare.maker.city string",
			"own.1.id integer", "own.1.maker.city string", "by_name.k.id integer", "payload.data.text string",
		}},
		{"things.1.parts.0", thing.Parts[0].RawObject, nil},
		{"things.1.parts.1", thing.Parts[1].RawObject, []string{"id integer", "maker.city string"}},
		{"things.1.parts.1.maker", thing.Parts[1].Maker.RawObject, []string{"city string"}},
		{"things.1.spare", thing.Spare.RawObject, []string{"maker.city string"}},
		{"things.1.own.0", thing.Own[0].RawObject, nil},
		{"things.1.own.1", thing.Own[1].RawObject, []string{"id integer", "maker.city string"}},
		{"things.1.own.1.maker", thing.Own[1].Maker.RawObject, []string{"city string"}},
		{"things.1.by_name.k", thing.ByName["k"].RawObject, []string{"id integer"}},
		{"things.1.payload", thing.Payload.RawObject, []string{"data.text string"}},
		{"things.1.payload.data", thing.Payload.Data.(*Letter).RawObject, []string{"text string"}},
		{"things.2", page.Things[2].RawObject, []string{" object"}},
		{"a value of the program's own", RawObject{}, nil},
	}
	for _, test := range tests {
		if got := problems(test.kept); !slices.Equal(got, test.want) {
			t.Errorf("%s:\n got %q\nwant %q", test.of, got, test.want)
		}
	}
	if raw := ref(thing.Own[1].Maker.RawObject).Raw(); string(raw) != `{"city":9}` {
		t.Errorf("kept %s", raw)
	}
	if raw := ref(RawObject{}).Raw(); raw != nil {
		t.Errorf("kept %s", raw)
	}
	// What is handed out are copies.
	list := ref(thing.RawObject).Problems()
	list[0].Path[0], list[1].Path[1] = "changed", "changed"
	ref(thing.RawObject).Raw()[1] = 'X'
	if got := problems(thing.RawObject); !slices.Equal(got, tests[3].want) || ref(thing.RawObject).Raw()[1] == 'X' {
		t.Errorf("a copy is not one: %q", got)
	}
}

func TestProblemsEnd(t *testing.T) {
	text := `{"tags":[` + strings.Repeat("1,", 5000) + `1],"own":[` + strings.Repeat(`{"id":"x"},`, 5000) + `{"id":"x"}]}`
	var v Thing
	if err := Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if n := len(ref(v.RawObject).Problems()); n != maxProblems {
		t.Errorf("%d problems", n)
	}
	if got := problems(v.Own[5000].RawObject); !slices.Equal(got, []string{"id integer"}) {
		t.Errorf("problems %q", got)
	}
	if b, err := Marshal(v); err != nil || string(b) != text {
		t.Error("not written as it came", err)
	}
}

// An element of a list that keeps its own bytes does not keep the page.
func TestOwnDocuments(t *testing.T) {
	text := `{"things":[{"name":"a","own":[{"id":1}]},{"name":"b"}],"total":2,"unknown":"` + strings.Repeat("x", 4000) + `"}`
	var page Page
	if err := Unmarshal([]byte(text), &page); err != nil {
		t.Fatal(err)
	}
	a, b := ref(page.Things[0].RawObject), ref(page.Things[1].RawObject)
	if a.doc.in.data != `{"name":"a","own":[{"id":1}]}` || b.doc.in.data != `{"name":"b"}` {
		t.Errorf("documents %s, %s", a.doc.in.data, b.doc.in.data)
	}
	if own := ref(page.Things[0].Own[0].RawObject); own.doc.in.data != `{"id":1}` {
		t.Errorf("document %s", own.doc.in.data)
	}
}

// The caller may change the data after Unmarshal.
func TestDataIsNotAliased(t *testing.T) {
	text := []byte(`{"id":"9c0f2d52-3a3e-4a64-9b5e-1f2d3c4b5a69","name":"abc","note":"a\u0062c","colour":"blue","price":12.50,"day":"2025-03-01",` +
		`"tags":["abc","def"],"codes":["x1"],"parts":[{"id":1,"name":"abc"}],"own":[{"name":"own"}],"free":{"k":"v"},"extra":{"key":"value"},` +
		`"by_name":{"key":{"name":"abc"}},"payload":{"type":"pigeon","data":{"a":"b"}},"unknown":"abc"}`)
	came := string(text)
	var v, want Thing
	if err := Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if err := Unmarshal([]byte(came), &want); err != nil {
		t.Fatal(err)
	}
	for i := range text {
		text[i] = '#'
	}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Error(diff)
	}
	if b, err := Marshal(v); err != nil || string(b) != came {
		t.Errorf("written as %s, %v", b, err)
	}
	if raw := ref(v.Payload.Data.(*Unknown).RawObject).Raw(); string(raw) != `{"a":"b"}` {
		t.Errorf("kept %s", raw)
	}
}

// Strings share allocations; none runs into another.
func TestStrings(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"tags":[""`)
	for n := range 3000 {
		fmt.Fprintf(&b, `,"%s"`, strings.Repeat(string(rune('a'+n%26)), n%400))
	}
	b.WriteString(`]}`)
	var v Thing
	if err := Unmarshal([]byte(b.String()), &v); err != nil {
		t.Fatal(err)
	}
	for n := range 3000 {
		if want := strings.Repeat(string(rune('a'+n%26)), n%400); v.Tags[n+1] != want {
			t.Fatalf("element %d is %q", n+1, v.Tags[n+1])
		}
	}
}

// A default belongs to the value that has it.
func TestDefaultsAreNotShared(t *testing.T) {
	var a, b Thing
	if Unmarshal([]byte(`{}`), &a) != nil {
		t.Fatal("not read")
	}
	*a.Maybe = false
	if Unmarshal([]byte(`{}`), &b) != nil || !*b.Maybe {
		t.Error("changing one value changed another")
	}
	if text, err := Marshal(a); err != nil || string(text) != `{"maybe":false}` {
		t.Errorf("written as %s, %v", text, err)
	}
}

func TestReflectDeepEqual(t *testing.T) {
	text := []byte(`{"things":[{"name":"a","at":"2025-03-01T12:00:00+02:00","own":[{"id":"x"}],"payload":{"type":"parcel","data":{"weight":1}}}]}`)
	var a, b Page
	if Unmarshal(text, &a) != nil || Unmarshal(text, &b) != nil || !reflect.DeepEqual(a, b) {
		t.Error("the same text gives different values")
	}
}

func TestParseTime(t *testing.T) {
	east := func(h int) *time.Location { return time.FixedZone("", h*3600) }
	read := map[string]time.Time{
		"2025-03-01T12:34:56Z":                time.Date(2025, 3, 1, 12, 34, 56, 0, time.UTC),
		"2025-03-01T12:34:56.123Z":            time.Date(2025, 3, 1, 12, 34, 56, 123000000, time.UTC),
		"2025-03-01T12:34:56.123456Z":         time.Date(2025, 3, 1, 12, 34, 56, 123456000, time.UTC),
		"2025-03-01T12:34:56.1234567899999Z":  time.Date(2025, 3, 1, 12, 34, 56, 123456789, time.UTC),
		"2025-03-01T12:34:56+00:00":           time.Date(2025, 3, 1, 12, 34, 56, 0, time.UTC),
		"2025-03-01T12:34:56-05:00":           time.Date(2025, 3, 1, 12, 34, 56, 0, east(-5)),
		"2025-03-01T12:34:56+0200":            time.Date(2025, 3, 1, 12, 34, 56, 0, east(2)),
		"2025-03-01T12:34:56+02":              time.Date(2025, 3, 1, 12, 34, 56, 0, east(2)),
		"2025-03-01 12:34:56":                 time.Date(2025, 3, 1, 12, 34, 56, 0, time.UTC),
		"2025-03-01t12:34:56z":                time.Date(2025, 3, 1, 12, 34, 56, 0, time.UTC),
		"2025-03-01T12:34:56":                 time.Date(2025, 3, 1, 12, 34, 56, 0, time.UTC),
		"2025-03-01":                          time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC),
		"2024-02-29":                          time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC),
		"0000-01-01":                          time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC),
		"9999-12-31T23:59:59.999999999-23:59": time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.FixedZone("", -(23*3600+59*60))),
	}
	for text, want := range read {
		got, ok := ParseTime([]byte(text))
		if !ok || !got.Equal(want) {
			t.Errorf("%s: %v %v", text, got, ok)
		}
		_, offset := got.Zone()
		if _, wantOffset := want.Zone(); offset != wantOffset {
			t.Errorf("%s: offset %d", text, offset)
		}
	}
	for _, text := range []string{
		"", "2025", "2025-3-1", "2025-03-01T", "2025-03-01T12:34", "2025-03-01T12:34:5", "2025-03-01X12:34:56", "2025-03-01T12:34:56.", "2025-03-01T12:34:56.Z",
		"2025-03-01T24:00:00Z", "2025-03-01T12:60:00Z", "2025-03-01T12:34:60Z", "2025-03-01T12:34:56+24:00", "2025-03-01T12:34:56+02:60", "2025-03-01T12:34:56+2",
		"2025-03-01T12:34:56+", "2025-03-01T12:34:56 Z", "2025-03-01T12:34:56Zx", "2025-02-29", "2025-13-01", "2025-00-01", "2025-01-00", "2025-04-31", "2024-15-",
		"2020-01-50", "18/08/1993", "2025-03-01T1a:34:56Z", "20250301T123456Z", "-025-03-01", "2025-03-01T12:34:56+0a:00", " 2025-03-01",
	} {
		if got, ok := ParseTime([]byte(text)); ok {
			t.Errorf("%s: read as %v", text, got)
		}
	}
}

// The Unix time of a date is that of package time, also around leap days and in the first year.
func TestMidnight(t *testing.T) {
	for day := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 10000; day = day.AddDate(0, 0, 1) {
		if got := midnight(day.Date()); got != day.Unix() {
			t.Fatalf("%s: %d, want %d", day.Format(time.DateOnly), got, day.Unix())
		}
	}
}

// Names are found whatever their length and order are, also near the end of the document.
func TestFieldNames(t *testing.T) {
	type names struct {
		A    string `json:"a"`
		Six  string `json:"a_name"`
		Most string `json:"name_of_21_characters"`
		One  string `json:"name_of_22_characters_1"`
		Two  string `json:"name_of_22_characters_2"`
		Long string `json:"name_of_22_characters_and_more"`
	}
	list := []string{"a", "a_name", "name_of_21_characters", "name_of_22_characters_1", "name_of_22_characters_2", "name_of_22_characters_and_more"}
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0))
		var fields []string
		for _, i := range random.Perm(len(list))[:random.IntN(len(list)+1)] {
			name := list[i]
			if random.IntN(4) == 0 {
				name = name[:len(name)-1] + "x" // unknown
			}
			fields = append(fields, fmt.Sprintf(`"%s"%s:%[2]s"%d"`, name, strings.Repeat(" ", random.IntN(2)), i))
		}
		text := "{" + strings.Join(fields, ",") + "}"
		var got, want names
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if err := Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestPlansOfUnsupportedTypes(t *testing.T) {
	for name, v := range map[string]any{
		"a channel": &struct {
			C chan int `json:"c"`
		}{},
		"an unknown union": &struct {
			C fmt.Stringer `json:"c"`
		}{},
		"a union without a kind": &struct {
			Data PayloadData `json:"data"`
		}{},
		"a default that is no number": &struct {
			N int64 `json:"n" default:"1"`
		}{},
		"a default that is no boolean": &struct {
			B bool `json:"b" default:"x"`
		}{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is accepted", name)
				}
			}()
			Unmarshal([]byte(`{}`), v)
		}()
	}
}

// With the mark text, a string in place of an object is left out, and stays in the encoding.
func TestTextInPlaceOfObject(t *testing.T) {
	type inner struct {
		ID int64 `json:"id"`

		RawObject `json:"-"`
	}
	type outer struct {
		Inner inner `json:"inner" jsonread:"text"`

		RawObject `json:"-"`
	}
	for text, want := range map[string]struct {
		id       int64
		problems int
	}{
		`{"inner":""}`: {}, `{"inner":"x"}`: {}, `{"inner":null}`: {}, `{"inner":{"id":7}}`: {id: 7}, `{"inner":{"id":"7"}}`: {problems: 1},
		`{"inner":7}`: {problems: 1}, `{"inner":[]}`: {problems: 1},
	} {
		var v outer
		if err := Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		encoded, err := Marshal(v)
		if v.Inner.ID != want.id || len(Ref(v.RawObject).Problems()) != want.problems || err != nil || string(encoded) != text {
			t.Errorf("%s: %d, %v, %s, %v", text, v.Inner.ID, Ref(v.RawObject).Problems(), encoded, err)
		}
	}
}

// TestNamesOfAnyLength decodes fields whose names have 1 to 60 bytes and differ in one of them, in
// both orders, with nulls between them, and near the end of the document or far from it.
func TestNamesOfAnyLength(t *testing.T) {
	number := reflect.TypeFor[*int64]()
	for length := 1; length <= 60; length++ {
		names := []string{strings.Repeat("n", length), strings.Repeat("n", length-1) + "o", "o" + strings.Repeat("n", length), strings.Repeat("n", length+1)}
		var fields []reflect.StructField
		for i, name := range names {
			fields = append(fields, reflect.StructField{Name: "F" + strconv.Itoa(i), Type: number, Tag: reflect.StructTag(`json:"` + name + `"`)})
		}
		typ := reflect.StructOf(fields)
		for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}} {
			for end := range 60 {
				for _, null := range []int{0, 1, 2, 3, 4} {
					var parts []string
					for _, n := range order {
						value := strconv.Itoa(n + 10)
						if n == null {
							value = "null"
						}
						parts = append(parts, `"`+names[n]+`":`+value)
					}
					text := "{" + strings.Join(parts, ",") + "}" + strings.Repeat(" ", end)
					v := reflect.New(typ)
					if err := Unmarshal([]byte(text), v.Interface()); err != nil {
						t.Fatal(text, err)
					}
					for n := range names {
						got := v.Elem().Field(n).Interface().(*int64)
						if (got == nil) != (n == null) || got != nil && *got != int64(n+10) {
							t.Fatalf("%s: field %d is %v", text, n, got)
						}
					}
				}
			}
		}
	}
}

// A name that differs from that of a field in one bit is another one.
func TestNamesDifferInAnyBit(t *testing.T) {
	var v struct {
		Name string `json:"abcdefghijklmnopqrstu"`
	}
	const name = "abcdefghijklmnopqrstu"
	space := strings.Repeat(" ", 100) // what is near the end of a document is compared otherwise
	for i := range name {
		for bit := range 7 {
			other := []byte(name)
			if other[i] ^= 1 << bit; other[i] < ' ' || other[i] == '"' || other[i] == '\\' {
				continue
			}
			if err := Unmarshal([]byte(`{"`+string(other)+`":"x"`+space+`}`), &v); err != nil || v.Name != "" {
				t.Errorf("%s: %q, %v", other, v.Name, err)
			}
		}
	}
	if err := Unmarshal([]byte(`{"`+name+`":"x"`+space+`}`), &v); err != nil || v.Name != "x" {
		t.Error(v.Name, err)
	}
}
