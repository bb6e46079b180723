package jsonread

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

const thingText = `{ "x0":[1, {"y":2}], "id" : "9c0f2d52-3a3e-4a64-9b5e-1f2d3c4b5a69","name":"a\u0062c","note":7,"colour":"blue","count":1.0,
"price":45.00,"at":"2025-03-01T12:00:00.000000+00:00","day":"2025-03-01","tags":["a",5,"b",null],"codes":null,
"parts":[{"id":1,"x1":"p"},7,{"id":"3","name":"c","x2":{}},null],"own":[{"id":4,"x3":1},[5]],"extra":{"k": {"v":1}},
"by_name":{"k":{"id":6,"x4":1},"l":8},"main":{"id":9,"x5":1,"maker":{"city":"S","x6":1}},"spare":{"id":10,"x7":[]},
"payload":{"data":{"weight":11,"x8":1},"type":"parcel","x9":null},"free":[ 1 ],"on":false,"x10":"é" }`

// A change leaves all other received fields as they were.
func TestMarshalChanges(t *testing.T) {
	replaced := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(thingText) }
	added := func(members string) string { return strings.TrimSuffix(thingText, " }") + members + "}" }
	tests := []struct {
		name   string
		change func(*Thing)
		want   string
	}{
		{"nothing", func(v *Thing) {}, thingText},
		{"a copy", func(v *Thing) { c := *v; *v = c }, thingText},
		{"set to the same", func(v *Thing) { v.Name, v.Tags = "abc", []string{"a", "", "b", ""} }, thingText},
		{"string", func(v *Thing) { v.Name = "<new> \"é\"" }, replaced(`"name":"a\u0062c"`, `"name":"\u003cnew\u003e \"é\""`)},
		{"string cleared", func(v *Thing) { v.Name = "" }, replaced(`"name":"a\u0062c"`, `"name":""`)},
		{"malformed replaced", func(v *Thing) { v.Note = new("n") }, replaced(`"note":7`, `"note":"n"`)},
		{"default changed", func(v *Thing) { v.Colour = "red" }, replaced(`"colour":"blue"`, `"colour":"red"`)},
		{"default that did not come", func(v *Thing) { v.Maybe = new(false) }, added(`,"maybe":false`)},
		{"default set to null", func(v *Thing) { v.Maybe = nil }, added(`,"maybe":null`)},
		{"integer", func(v *Thing) { v.Count = 2 }, replaced(`"count":1.0`, `"count":2`)},
		{"optional added", func(v *Thing) { v.Limit, v.Due = new(int64(0)), &Day{"2025-01-01"} }, added(`,"limit":0,"due":"2025-01-01"`)},
		{"number of money", func(v *Thing) { v.Price = "45.10" }, replaced(`45.00`, `45.10`)},
		{"date-time", func(v *Thing) { v.At = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 3600)) },
			replaced(`2025-03-01T12:00:00.000000+00:00`, `2026-01-02T03:04:05.000006+01:00`)},
		{"date", func(v *Thing) { v.Day = Day{"2026-01-01"} }, replaced(`"day":"2025-03-01"`, `"day":"2026-01-01"`)},
		{"optional cleared", func(v *Thing) { v.Spare, v.Extra, v.Own, v.Free = nil, nil, nil, nil },
			replaced(`"own":[{"id":4,"x3":1},[5]],"extra":{"k": {"v":1}},`, ``, `"spare":{"id":10,"x7":[]},`, ``, "\n\"by_name\"", `"by_name"`, "\n\"payload\"", `"payload"`, `,"free":[ 1 ]`, ``)},
		{"uuid", func(v *Thing) { v.ID = uuid.UUID{15: 1} }, replaced(`"id" : "9c0f2d52-3a3e-4a64-9b5e-1f2d3c4b5a69"`, `"id":"00000000-0000-0000-0000-000000000001"`)},
		{"any JSON", func(v *Thing) { v.Free = json.RawMessage(`{"a": 1}`) }, replaced(`"free":[ 1 ]`, `"free":{"a": 1}`)},

		{"list grown", func(v *Thing) { v.Tags = append(v.Tags, "c") }, replaced(`["a",5,"b",null]`, `["a",5,"b",null,"c"]`)},
		{"list shrunk at its beginning", func(v *Thing) { v.Tags = v.Tags[1:] }, replaced(`["a",5,"b",null]`, `[5,"b",null]`)},
		{"list shrunk at its end", func(v *Thing) { v.Tags = v.Tags[:2] }, replaced(`["a",5,"b",null]`, `["a",5]`)},
		{"list reordered", func(v *Thing) { v.Tags[0], v.Tags[1] = v.Tags[1], v.Tags[0] }, replaced(`["a",5,"b",null]`, `[5,"a","b",null]`)},
		{"malformed element replaced", func(v *Thing) { v.Tags[1] = "x" }, replaced(`["a",5,"b",null]`, `["a","x","b",null]`)},
		{"list emptied", func(v *Thing) { v.Tags = []string{} }, replaced(`["a",5,"b",null]`, `[]`)},
		{"required list cleared", func(v *Thing) { v.Tags = nil }, replaced(`["a",5,"b",null]`, `[]`)},
		{"nullable list cleared", func(v *Thing) { v.Parts = nil }, replaced(`[{"id":1,"x1":"p"},7,{"id":"3","name":"c","x2":{}},null]`, `null`)},
		{"null list set", func(v *Thing) { v.Codes = []Colour{"c"} }, replaced(`"codes":null`, `"codes":["c"]`)},

		{"objects grown", func(v *Thing) { v.Parts = append(v.Parts, Part{ID: 5}) }, replaced(`"x2":{}},null]`, `"x2":{}},null,{"id":5,"name":null}]`)},
		{"objects shrunk", func(v *Thing) { v.Parts = v.Parts[1:3] }, replaced(`[{"id":1,"x1":"p"},7,{"id":"3","name":"c","x2":{}},null]`, `[7,{"id":"3","name":"c","x2":{}}]`)},
		{"objects reordered", func(v *Thing) { v.Parts = []Part{v.Parts[3], v.Parts[2], v.Parts[1], v.Parts[0]} },
			replaced(`[{"id":1,"x1":"p"},7,{"id":"3","name":"c","x2":{}},null]`, `[null,{"id":"3","name":"c","x2":{}},7,{"id":1,"x1":"p"}]`)},
		{"object changed and moved", func(v *Thing) { v.Parts = []Part{v.Parts[2]}; v.Parts[0].Name = new("d") },
			replaced(`[{"id":1,"x1":"p"},7,{"id":"3","name":"c","x2":{}},null]`, `[{"id":"3","name":"d","x2":{}}]`)},
		{"malformed object set", func(v *Thing) { v.Parts[1].ID = 2 }, replaced(`"p"},7,{`, `"p"},{"id":2,"name":null},{`)},
		{"null object set", func(v *Thing) { v.Parts[3].ID = 2 }, replaced(`"x2":{}},null]`, `"x2":{}},{"id":2,"name":null}]`)},
		{"own object changed", func(v *Thing) { v.Own[0].ID = 44 }, replaced(`{"id":4,`, `{"id":44,`)},
		{"own objects reordered", func(v *Thing) { v.Own[0], v.Own[1] = v.Own[1], v.Own[0] }, replaced(`[{"id":4,"x3":1},[5]]`, `[[5],{"id":4,"x3":1}]`)},

		{"object within", func(v *Thing) { v.Main.ID = 99 }, replaced(`{"id":9,`, `{"id":99,`)},
		{"object within an object", func(v *Thing) { v.Main.Maker.City = "T" }, replaced(`"city":"S"`, `"city":"T"`)},
		{"object within cleared", func(v *Thing) { v.Main.Maker = nil }, replaced(`,"maker":{"city":"S","x6":1}`, ``)},
		{"object replaced", func(v *Thing) { v.Main = Part{ID: 1} }, replaced(`{"id":9,"x5":1,"maker":{"city":"S","x6":1}}`, `{"id":1,"name":null}`)},
		{"value moved to another parent", func(v *Thing) { v.Main, v.Spare = *v.Spare, &Part{ID: 3, Maker: v.Main.Maker} },
			replaced(`{"id":9,"x5":1,"maker":{"city":"S","x6":1}}`, `{"id":10,"x7":[]}`, `{"id":10,"x7":[]}`, `{"id":3,"name":null,"maker":{"city":"S","x6":1}}`)},
		{"value copied", func(v *Thing) { v.Parts[1] = v.Own[0] }, replaced(`"p"},7,{`, `"p"},{"id":4,"x3":1},{`)},
		{"value copied and changed", func(v *Thing) { p := v.Own[0]; p.ID = 40; v.Parts[1] = p }, replaced(`"p"},7,{`, `"p"},{"id":40,"x3":1},{`)},

		{"map changed", func(v *Thing) { v.Extra["a"] = json.RawMessage(`1`) }, replaced(`"extra":{"k": {"v":1}}`, `"extra":{"a":1,"k":{"v":1}}`)},
		{"map of objects changed", func(v *Thing) { v.ByName["m"] = Part{ID: 1} },
			replaced(`{"k":{"id":6,"x4":1},"l":8}`, `{"k":{"id":6,"x4":1},"l":8,"m":{"id":1,"name":null}}`)},
		{"map emptied", func(v *Thing) { clear(v.ByName) }, replaced(`{"k":{"id":6,"x4":1},"l":8}`, `{}`)},

		{"union changed", func(v *Thing) { v.Payload.Data.(*Parcel).Weight = 12 }, replaced(`"weight":11`, `"weight":12`)},
		{"union replaced", func(v *Thing) { v.Payload.Type, v.Payload.Data = "letter", &Letter{Text: "t"} },
			replaced(`{"data":{"weight":11,"x8":1},"type":"parcel"`, `{"data":{"text":"t"},"type":"letter"`)},
		{"union cleared", func(v *Thing) { v.Payload.Data = nil }, replaced(`{"weight":11,"x8":1}`, `null`)},
		{"union of the program's own unknown kind", func(v *Thing) { v.Payload.Data = &Unknown{} }, replaced(`{"weight":11,"x8":1}`, `null`)},
	}
	for _, test := range tests {
		var v Thing
		if err := Unmarshal([]byte(thingText), &v); err != nil {
			t.Fatal(err)
		}
		test.change(&v)
		b, err := Marshal(&v)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if compact(t, b) != compact(t, []byte(test.want)) {
			t.Errorf("%s:\n got %s\nwant %s", test.name, compact(t, b), compact(t, []byte(test.want)))
		}
	}
}

// compact drops spaces between fields, so that what remains compares byte for byte, escapes and
// digits included.
func compact(t *testing.T, text []byte) string {
	t.Helper()
	if err := Valid(text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var b strings.Builder
	for i, quoted := 0, false; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			b.WriteByte(c)
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && strings.IndexByte(" \t\r\n", c) >= 0:
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// A name that came twice stays so until its member is changed; then the new value stands where the
// last one stood.
func TestMarshalDuplicateNames(t *testing.T) {
	const text = `{"name":"a","tags":["x"],"name":"b","u":1,"tags":[7,"y"],"u":2}`
	tests := []struct {
		change func(*Thing)
		want   string
	}{
		{func(v *Thing) {}, text},
		{func(v *Thing) { v.Count = 1 }, `{"name":"a","tags":["x"],"name":"b","u":1,"tags":[7,"y"],"u":2,"count":1}`},
		{func(v *Thing) { v.Name = "c" }, `{"tags":["x"],"name":"c","u":1,"tags":[7,"y"],"u":2}`},
		{func(v *Thing) { v.Tags = append(v.Tags, "z") }, `{"name":"a","name":"b","u":1,"tags":[7,"y","z"],"u":2}`},
	}
	for _, test := range tests {
		var v Thing
		if err := Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		test.change(&v)
		if b, err := Marshal(v); err != nil || string(b) != test.want {
			t.Errorf("got %s, %v\nwant %s", b, err, test.want)
		}
	}
}

// An unchanged value gives its raw bytes, white space and earlier values of a name included.
func TestMarshalUnchanged(t *testing.T) {
	for _, text := range []string{
		`{"main": {"id":1}, "main": {"id":2,"id":3}}`,
		`{"parts":[], "parts":[ {"id":2,"name":"b","id":3} ]}`,
		`{"payload":{}, "payload":{"type":"parcel","data":{"weight":1,"weight":2}}}`,
		`{"any":[ 1 ], "any":[ null, 2 ]}`,
		`{"any":[ null, "null" ]}`,
	} {
		var v struct {
			Main    Part              `json:"main"`
			Parts   []Part            `json:"parts,omitzero"`
			Payload Payload           `json:"payload"`
			Any     []json.RawMessage `json:"any,omitzero"`

			RawObject
		}
		if err := Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if b, err := Marshal(v); err != nil || string(b) != text {
			t.Errorf("got %s, %v\nwant %s", b, err, text)
		}
	}
}

// Nil in a pointer with a default is null, because an absent field is decoded as the default.
func TestMarshalClearedDefault(t *testing.T) {
	for text, want := range map[string]string{
		`{"on":true,"maybe":false}`: `{"on":true,"maybe":null}`,
		`{"on":true,"x":1}`:         `{"on":true,"x":1,"maybe":null}`,
		`{"maybe":null,"on":true}`:  `{"maybe":null,"on":true}`,
	} {
		var v struct {
			On    bool  `json:"on"`
			Maybe *bool `json:"maybe,omitzero" default:"true"`

			RawObject
		}
		if err := Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		v.Maybe = nil
		if b, err := Marshal(v); err != nil || string(b) != want {
			t.Errorf("%s: %s, %v", text, b, err)
		}
	}
}

// A value that was not received as an object is written as an object once it is changed.
func TestMarshalNonObject(t *testing.T) {
	for _, text := range []string{`null`, `7`, `["x"]`} {
		var v Part
		if err := Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		v.ID = 1
		if b, err := Marshal(v); err != nil || string(b) != `{"id":1,"name":null}` {
			t.Errorf("%s: %s, %v", text, b, err)
		}
	}
}

func TestMarshalOwnValues(t *testing.T) {
	v := Thing{Name: "n", Parts: []Part{{ID: 1}}, Payload: Payload{Type: "letter", Data: &Letter{}}, Price: "1.50", Day: Day{"2025-01-01"}}
	const want = `{"id":"00000000-0000-0000-0000-000000000000","name":"n","colour":"","count":0,"size":0,"price":1.50,"on":false,"maybe":null,` +
		`"at":"0001-01-01T00:00:00Z","day":"2025-01-01","tags":[],"parts":[{"id":1,"name":null}],"main":{"id":0,"name":null},` +
		`"payload":{"type":"letter","data":{"text":""}}}`
	for name, p := range map[string]any{"value": v, "pointer": &v} {
		if b, err := Marshal(p); err != nil || string(b) != want {
			t.Errorf("%s: %s, %v", name, b, err)
		}
	}
	if b, err := Marshal((*Thing)(nil)); err != nil || string(b) != "null" {
		t.Errorf("%s, %v", b, err)
	}
	if b, err := Marshal(Unknown{}); err != nil || string(b) != "null" {
		t.Errorf("%s, %v", b, err)
	}
}

// A request has only the fields of its types, also if its values were decoded.
func TestMarshalPlain(t *testing.T) {
	var v Part
	if err := Unmarshal([]byte(`{"id":1,"unknown":2,"maker":{"city":"S","unknown":3}}`), &v); err != nil {
		t.Fatal(err)
	}
	if b, err := MarshalPlain(v); err != nil || string(b) != `{"id":1,"name":null,"maker":{"city":"S"}}` {
		t.Errorf("%s, %v", b, err)
	}
}

// Elements that a list still has are written as they were received, also if they are pointers,
// whose addresses differ from one decoding to the next.
func TestMarshalListOfPointers(t *testing.T) {
	type route struct {
		Lng []*float64 `json:"lng,omitzero"`
		RawObject
	}
	swap := func(r *route) { r.Lng[0], r.Lng[2] = r.Lng[2], r.Lng[0] }
	tests := []struct {
		received string
		change   func(*route)
		want     string
	}{
		{`{"lng":[1,5702661113721473667,2]}`, swap, `{"lng":[2,5702661113721473667,1]}`},
		{`{"lng":[1,-0.0,2.0]}`, swap, `{"lng":[2.0,-0.0,1]}`},
		{`{"lng":[1.50,null,3.50,"x",5.50]}`, func(r *route) { slices.Reverse(r.Lng) }, `{"lng":[5.50,null,3.50,"x",1.50]}`},
		{`{"lng":[1.50,2.50,3.50]}`, func(r *route) { *r.Lng[0], *r.Lng[2] = 7, 8 }, `{"lng":[7,2.50,8]}`},
		{`{"lng":[1.50,2.50,1.5]}`, func(r *route) { r.Lng[0], r.Lng[2] = new(9.0), new(9.0) }, `{"lng":[9,2.50,9]}`},
		{`{"lng":[1.50,2.50]}`, func(r *route) { r.Lng = []*float64{new(2.5), new(2.5), nil, new(1.5)} }, `{"lng":[2.50,2.5,null,1.50]}`},
	}
	for _, test := range tests {
		var r route
		if err := Unmarshal([]byte(test.received), &r); err != nil {
			t.Fatal(err)
		}
		test.change(&r)
		if got, err := Marshal(&r); err != nil || string(got) != test.want {
			t.Errorf("%s is written as %s (%v), want %s", test.received, got, err, test.want)
		}
	}
}

// TestAppendString compares each byte at each place of short and longer strings with encoding/json.
func TestAppendString(t *testing.T) {
	for length := range 26 {
		for at := range length {
			for b := range 256 {
				text := []byte(strings.Repeat("a", length))
				text[at] = byte(b)
				want, _ := json.Marshal(string(text))
				got, ok := AppendString(nil, string(text))
				if string(got) != string(want) || ok != utf8.Valid(text) {
					t.Fatalf("%q is written as %s (valid: %v), want %s", text, got, ok, want)
				}
			}
		}
	}
}

// What cannot be written is named by its path and never quoted.
func TestMarshalErrors(t *testing.T) {
	tests := []struct {
		v    Thing
		want string
	}{
		{Thing{Name: "Ada\xff"}, "name: must be valid UTF-8"},
		{Thing{Tags: []string{"a", "Ada\xff"}}, "tags.1: must be valid UTF-8"},
		{Thing{Parts: []Part{{}, {Maker: &Maker{City: "\xff"}}}}, "parts.1.maker.city: must be valid UTF-8"},
		{Thing{ByName: map[string]Part{"k": {Name: new("\xff")}}}, "by_name.k.name: must be valid UTF-8"},
		{Thing{ByName: map[string]Part{"\xff": {}}}, "by_name: must have names in valid UTF-8"},
		{Thing{Payload: Payload{Data: &Letter{Text: "\xff"}}}, "payload.data.text: must be valid UTF-8"},
		{Thing{Size: math.NaN()}, "size: cannot be written as JSON"},
		{Thing{Price: "twelve"}, "price: cannot be written as JSON"},
		{Thing{Free: json.RawMessage(`{"name":"Ada"`)}, "free: must be valid JSON"},
		{Thing{Free: json.RawMessage("\"Ada\xff\"")}, "free: must be valid JSON"},
		{Thing{Extra: map[string]json.RawMessage{"k": []byte(`Ada`)}}, "extra.k: must be valid JSON"},
		{Thing{At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "at: cannot be written as JSON"},
	}
	for _, test := range tests {
		_, err := Marshal(test.v)
		var e *ValueError
		if !errors.As(err, &e) || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
		// The same on top of received JSON.
		var came Thing
		if err := Unmarshal([]byte(thingText), &came); err != nil {
			t.Fatal(err)
		}
		test.v.RawObject = came.RawObject
		if _, err := Marshal(test.v); err == nil {
			t.Errorf("%s: written after all", test.want)
		}
	}
}

// Values may be read from many goroutines as long as nobody changes them.
func TestConcurrentReading(t *testing.T) {
	var page Page
	if err := Unmarshal([]byte(`{"things":[`+thingText+`,{"id":"x"}],"unknown":1}`), &page); err != nil {
		t.Fatal(err)
	}
	changed := page
	changed.Total = new(int64(2))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if _, err := Marshal(page); err != nil {
					t.Error(err)
				}
				if _, err := Marshal(changed); err != nil {
					t.Error(err)
				}
				if n := len(problems(page.RawObject)); n != 7 {
					t.Error(n, "problems")
				}
				ref(page.Things[0].Parts[2].RawObject).Raw()
			}
		})
	}
	wg.Wait()
	if n := len(problems(page.RawObject)); n != 7 {
		t.Error(n, "problems")
	}
}

// What a program sets is compared as a value, also if its text is in the received JSON.
func TestMarshalTextOfTheDocument(t *testing.T) {
	const text = `{"name":"a","colour":"b\"c","tags":["\\","x"]}`
	for _, test := range []struct {
		change func(*Thing)
		want   string
	}{
		{func(v *Thing) { v.Name = `a","colour":"b\` }, `{"name":"a\",\"colour\":\"b\\","colour":"b\"c","tags":["\\","x"]}`},
		{func(v *Thing) { v.Name = v.Name[:0] }, `{"name":"","colour":"b\"c","tags":["\\","x"]}`},
		{func(v *Thing) { v.Colour = `b\"c` }, `{"name":"a","colour":"b\\\"c","tags":["\\","x"]}`},
		{func(v *Thing) { v.Tags[0] = `\\` }, `{"name":"a","colour":"b\"c","tags":["\\\\","x"]}`},
		{func(v *Thing) { v.Tags[1], v.Name = v.Name, v.Tags[1] }, `{"name":"x","colour":"b\"c","tags":["\\","a"]}`},
		{func(v *Thing) { v.Tags[1] = strings.Clone("x") }, text},
	} {
		var v Thing
		if err := Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		test.change(&v)
		if b, err := Marshal(v); err != nil || string(b) != test.want {
			t.Errorf("%s, %v, want %s", b, err, test.want)
		}
	}
}

// Of a long page with a changed element, all others are the received bytes, and a value, a pointer
// and a pointer to a pointer are encoded the same.
func TestMarshalPage(t *testing.T) {
	page := func(names ...string) string {
		list := ""
		for i, name := range names {
			if i > 0 {
				list += ","
			}
			list += `{"new":[ 1 ],"name":"` + name + `","day":"2025-03-01","on":true,"tags":["` + strings.Repeat("x", 500) + `"]}`
		}
		return `{ "total":null, "more":{} ,"things":[` + list + `]}`
	}
	names := slices.Repeat([]string{"a"}, 300)
	for _, changed := range []int{-1, 0, 1, 150, 299} {
		var v Page
		if err := Unmarshal([]byte(page(names...)), &v); err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(names)
		if changed >= 0 {
			v.Things[changed].Name, want[changed] = "b", "b"
		}
		p := &v
		for _, of := range []any{v, p, &p} {
			if b, err := Marshal(of); err != nil || compact(t, b) != compact(t, []byte(page(want...))) {
				t.Errorf("%d: %v, %.200s", changed, err, b)
			}
		}
		if b, _ := Marshal(v); changed < 0 && string(b) != page(want...) {
			t.Errorf("%.200s", b)
		}
	}
}
