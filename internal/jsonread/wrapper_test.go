package jsonread

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Boxed is a list whose elements may be wrapped.
type Boxed struct {
	Parts []Part `json:"parts" jsonread:"own" wrapper:"box"`

	RawObject `json:"-"`
}

// Crate is a value that may be wrapped, with a part.
type Crate struct {
	ID   int64 `json:"id"`
	Part Part  `json:"part"`

	RawObject `json:"-"`
}

// Bounds is an object in whose place a number may be.
type Bounds struct {
	From int64 `json:"from" jsonread:"scalar"`
	To   int64 `json:"to" jsonread:"scalar"`

	RawObject `json:"-"`
}

type Bounded struct {
	Bounds Bounds `json:"bounds"`

	RawObject `json:"-"`
}

// A wrapper and its other fields are encoded again, whatever is done with the list or the element.
func TestWrapper(t *testing.T) {
	const (
		first  = `{"x":1, "box": {"id":1,"name":"a","y":[2]} ,"z":"after"}`
		second = `{"id":2,"name":"b","box":{"id":9}}`
		third  = `{"box":{"id":3,"name":null}}`
	)
	read := func(t *testing.T) *Boxed {
		t.Helper()
		v := new(Boxed)
		if err := Unmarshal([]byte("{ \"parts\" : ["+first+", "+second+","+third+"],\"total\":3 }"), v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	list := func(elements string) string { return `{ "parts" : [` + elements + `],"total":3 }` }
	v := read(t)
	if diff := cmp.Diff([]Part{{ID: 1, Name: new("a")}, {ID: 2, Name: new("b")}, {ID: 3}}, v.Parts); diff != "" {
		t.Error(diff)
	}
	for _, test := range []struct {
		name   string
		change func(*Boxed)
		want   string
	}{
		{"nothing", func(*Boxed) {}, list(first + ", " + second + "," + third)},
		{"an element", func(v *Boxed) { v.Parts[0].ID = 7 },
			list(`{"x":1, "box": {"id":7,"name":"a","y":[2]} ,"z":"after"}, ` + second + "," + third)},
		{"the order", func(v *Boxed) { v.Parts[0], v.Parts[2] = v.Parts[2], v.Parts[0] }, list(third + "," + second + "," + first)},
		{"fewer", func(v *Boxed) { v.Parts = v.Parts[:1] }, list(first)},
		{"more", func(v *Boxed) { v.Parts = append(v.Parts, Part{ID: 4}) }, list(first + ", " + second + "," + third + `,{"id":4,"name":null}`)},
		{"in another list", func(v *Boxed) { *v = Boxed{Parts: v.Parts[:1]} }, `{"parts":[` + first + `]}`},
	} {
		v := read(t)
		test.change(v)
		if b, err := Marshal(v); err != nil || string(b) != test.want {
			t.Errorf("%s: %s, %v\nwant %s", test.name, b, err, test.want)
		}
	}

	// Alone, in a list that has no wrappers and in a request, the element has no wrapper.
	part := v.Parts[0]
	if b, err := Marshal(part); err != nil || string(b) != `{"id":1,"name":"a","y":[2]}` || string(ref(part.RawObject).Raw()) != string(b) {
		t.Errorf("alone: %s, %v", b, err)
	}
	if b, err := Marshal(Thing{Own: v.Parts[:1]}); err != nil || !strings.Contains(string(b), `"own":[{"id":1,"name":"a","y":[2]}]`) {
		t.Errorf("in another type: %s, %v", b, err)
	}
	if b, err := MarshalPlain(v); err != nil || strings.Contains(string(b), "box") {
		t.Errorf("in a request: %s, %v", b, err)
	}
	// A part that was decoded from another document does not take its document along.
	var other Thing
	if err := Unmarshal([]byte(`{"secret":"s","main":{"id":8}}`), &other); err != nil {
		t.Fatal(err)
	}
	if b, err := Marshal(Boxed{Parts: []Part{other.Main}}); err != nil || string(b) != `{"parts":[{"id":8}]}` {
		t.Errorf("from another document: %s, %v", b, err)
	}
	// Neither does one that is within a wrapped value.
	var crates struct {
		List []Crate `json:"list" jsonread:"own" wrapper:"box"`

		RawObject `json:"-"`
	}
	if err := Unmarshal([]byte(`{"list":[{"box":{"id":1,"part":{"id":8}}}]}`), &crates); err != nil {
		t.Fatal(err)
	}
	if b, err := Marshal(Boxed{Parts: []Part{crates.List[0].Part}}); err != nil || string(b) != `{"parts":[{"id":8}]}` {
		t.Errorf("from a wrapped value: %s, %v", b, err)
	}
}

// A wrapper may have fields with the names of those of the element. They are not compared with it.
func TestWrapperWithFieldsOfElement(t *testing.T) {
	for _, text := range []string{
		`{"parts":[ {"box":{"id":1},"id":null} ]}`,
		`{"parts":[],"parts":[ {"box":{"id":1,"name":"a"},"name":"b"} ]}`,
		`{"parts":[{"id":2}, {"name":[],"box":{"id":1},"id":"x"} ]}`,
	} {
		var v Boxed
		if err := Unmarshal([]byte(text), &v); err != nil || v.Parts[len(v.Parts)-1].ID != 1 {
			t.Errorf("%s: %v, %v", text, v.Parts, err)
		}
		if b, err := Marshal(v); err != nil || string(b) != text {
			t.Errorf("%s\n%s, %v", text, b, err)
		}
	}
}

// What is not an object with the wrapped element is decoded as the element itself.
func TestNoWrapper(t *testing.T) {
	for element, want := range map[string]struct {
		id       int64
		problems string
	}{
		`{"box":7}`:                        {0, ""},
		`{"box":null}`:                     {0, ""},
		`{"box":{"id":1},"box":[]}`:        {0, ""},
		`{"box":[],"box":{"id":1}}`:        {1, ""},
		`{"id":7,"box":{"id":1}}`:          {7, ""},
		`{"id":"x","box":{"id":1}}`:        {1, ""},
		`{"id":"x"}`:                       {0, "parts.0.id integer"},
		`{"name":7,"box":{"id":"1"}}`:      {0, "parts.0.box.id integer"},
		`{"box":{"box":{"id":1}}}`:         {0, ""},
		`7`:                                {0, "parts.0 object"},
		`{"b\u006fx":{"id":1,"name":"e"}}`: {1, ""},
	} {
		text := `{"parts":[` + element + `]}`
		var v Boxed
		if err := Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(problems(v.RawObject), "; "); v.Parts[0].ID != want.id || got != want.problems {
			t.Errorf("%s: id %d, problems %q; want %d, %q", element, v.Parts[0].ID, got, want.id, want.problems)
		}
		if b, err := Marshal(v); err != nil || string(b) != text {
			t.Errorf("%s: encoded as %s, %v", element, b, err)
		}
	}
	if problems := problems(boxedPart(t, `{"box":{"id":"1"}}`).RawObject); len(problems) != 1 || problems[0] != "id integer" {
		t.Errorf("problems of the element: %q", problems)
	}
}

func boxedPart(t *testing.T, element string) Part {
	t.Helper()
	var v Boxed
	if err := Unmarshal([]byte(`{"parts":[`+element+`]}`), &v); err != nil {
		t.Fatal(err)
	}
	return v.Parts[0]
}

// A number in place of an object sets the fields that take it, and is encoded as received.
func TestScalar(t *testing.T) {
	for value, want := range map[string]struct {
		from, to int64
		problems string
		changed  string // the JSON once From is 5
	}{
		`7`:                        {7, 7, "", `{"from":5,"to":7}`},
		`{"from":1,"to":2,"x":[]}`: {1, 2, "", `{"from":5,"to":2,"x":[]}`},
		`{"to":2}`:                 {0, 2, "", `{"to":2,"from":5}`},
		`null`:                     {0, 0, "", `{"from":5,"to":0}`},
		`"7"`:                      {0, 0, "bounds integer", `{"from":5,"to":0}`},
		`7.5`:                      {0, 0, "bounds integer", `{"from":5,"to":0}`},
		`[7]`:                      {0, 0, "bounds object", `{"from":5,"to":0}`},
	} {
		var v Bounded
		text := `{"bounds":` + value + `}`
		if err := Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(problems(v.RawObject), "; "); v.Bounds.From != want.from || v.Bounds.To != want.to || got != want.problems {
			t.Errorf("%s: %d to %d, problems %q; want %+v", value, v.Bounds.From, v.Bounds.To, got, want)
		}
		if b, err := Marshal(v); err != nil || string(b) != text {
			t.Errorf("%s: encoded as %s, %v", value, b, err)
		}
		v.Bounds.From = 5
		if b, err := Marshal(v); err != nil || string(b) != `{"bounds":`+want.changed+`}` {
			t.Errorf("%s: changed and encoded as %s, %v; want %s", value, b, err, want.changed)
		}
	}
}

// FuzzWrapper reads any text as a list of wrapped elements and as a value in place of an object.
// What is JSON is written as it came, and an added element changes nothing else.
func FuzzWrapper(f *testing.F) {
	for _, seed := range []string{
		`{"parts":[{"x":1,"box":{"id":1}},{"id":2},{"box":7},null,3]}`, `{"parts":[{"id":"x","box":{"id":"y","maker":{"city":1}}}]}`,
		`{"parts":[{"box":{"box":{}},"box":{}}],"bounds":7}`, `{"bounds":{"from":"1"}}`, `{"bounds":-1e2}`, `{"bounds":[1]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var v Boxed
		var bounded Bounded
		if Unmarshal(text, &v) != nil || Unmarshal(text, &bounded) != nil {
			return
		}
		want := strings.Trim(string(text), " \t\r\n")
		if b, err := Marshal(v); err != nil || string(b) != want {
			t.Fatalf("%q: written as %q, %v", text, b, err)
		}
		if b, err := Marshal(bounded); err != nil || string(b) != want {
			t.Fatalf("%q: written as %q, %v", text, b, err)
		}
		if want[0] != '{' {
			return
		}
		v.Parts = append(v.Parts, Part{ID: 7})
		b, err := Marshal(v)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var again Boxed
		if err := Unmarshal(b, &again); err != nil {
			t.Fatalf("%q: %q: %v", text, b, err)
		}
		if diff := cmp.Diff(v.Parts, again.Parts); diff != "" {
			t.Fatalf("%q: written as %q:\n%s", text, b, diff)
		}
		for i, part := range v.Parts[:len(v.Parts)-1] {
			before, after := ref(part.RawObject), ref(again.Parts[i].RawObject)
			if before.doc.in.data != after.doc.in.data {
				t.Fatalf("%q: element %d was %q, is %q", text, i, before.doc.in.data, after.doc.in.data)
			}
		}
	})
}
