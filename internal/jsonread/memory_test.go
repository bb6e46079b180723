package jsonread

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
)

// Strings wait for the copy of their document while lists that hold them grow, values are cleared
// because their name comes twice, and elements of maps are stored. Nothing refers to the decoded
// buffer, which is overwritten.
func TestWaitingStrings(t *testing.T) {
	repeat := func(n int, format string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = strings.ReplaceAll(format, "#", fmt.Sprint(i))
		}
		return strings.Join(list, ",")
	}
	for name, thing := range map[string]string{
		"a list that grows":        `{"name":"n","tags":[` + repeat(50, `"tag #"`) + `],"codes":[` + repeat(9, `"c#"`) + `]}`,
		"a list in one that grows": `{"parts":[` + repeat(21, `{"id":#,"name":"part #","maker":{"city":"city #"}}`) + `],"note":"after"}`,
		"a map":                    `{"by_name":{` + repeat(7, `"k#":{"id":#,"name":"part #","maker":{"city":"city #"}}`) + `}}`,
		"maps of strings":          `{"labels":{` + repeat(7, `"k#":"label #"`) + `},"makers":{` + repeat(7, `"k#":{"city":"city #"}`) + `},"name":"n"}`,
		"a name that comes twice":  `{"name":"first","tags":["a","b"],"main":{"name":"x"},"note":"y","main":{"id":1},"name":"second","tags":["c"],"note":null}`,
		"escapes":                  `{"name":"\u0041da","note":"B\"ob","tags":["C\\","plain"]}`,
		"elements of their own":    `{"own":[` + repeat(5, `{"name":"own #","maker":{"city":"city #"}}`) + `],"name":"outer"}`,
		"a long string":            `{"name":"` + strings.Repeat("long ", 500) + `","note":"short"}`,
		"a large document":         `{"name":"` + strings.Repeat("long ", 4000) + `","note":"short","tags":["x"]}`,
	} {
		for _, count := range []int{1, 2, 5} {
			text := `{"things":[` + repeat(count, thing) + `],"total":3}`
			want := Page{Things: slicesOf(count, defaults())}
			if err := json.Unmarshal([]byte(text), &want); err != nil {
				t.Fatal(err)
			}
			buffer := []byte(text)
			var got Page
			if err := Unmarshal(buffer, &got); err != nil {
				t.Fatal(err)
			}
			for i := range buffer {
				buffer[i] = '#'
			}
			runtime.GC()
			for i := range want.Things { // encoding/json has no defaults, and merges duplicates
				want.Things[i].Colour, want.Things[i].On, want.Things[i].Maybe = "red", true, new(true)
				if name == "a name that comes twice" {
					want.Things[i].Main.Name = nil
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if b, err := Marshal(got); err != nil || string(b) != text {
				t.Errorf("%s: encoded as %s, %v", name, b, err)
			}
			for i, got := range got.Things {
				if want := strings.ReplaceAll(thing, "#", fmt.Sprint(i)); count > 1 && strings.Count(thing, "#") == 0 && string(ref(got.RawObject).Raw()) != want {
					t.Errorf("%s: kept %s", name, ref(got.RawObject).Raw())
				}
			}
		}
	}
}

// Random documents, in which names come twice and values do not fit, decode alike whether their
// strings wait, are shared or are copied.
func TestStringModes(t *testing.T) {
	generate := func(seed uint64, padding int) []byte {
		g := generator{Rand: rand.New(rand.NewPCG(seed, 3)), odd: true, padding: padding}
		g.value(reflect.TypeFor[Thing](), false)
		return []byte(g.String())
	}
	decode := func(text []byte, buffer []byte) (thing Thing) {
		if err := Unmarshal(buffer, &thing); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i := range buffer {
			buffer[i] = '#'
		}
		if b, err := Marshal(thing); err != nil || !bytes.Equal(b, text) {
			t.Fatalf("%s: encoded as %s, %v", text, b, err)
		}
		return thing
	}
	withoutSpace := cmp.Transformer("withoutSpace", func(raw json.RawMessage) string {
		var b bytes.Buffer
		if raw != nil && json.Compact(&b, raw) != nil {
			t.Error("a raw value is not JSON")
		}
		return b.String()
	})
	for seed := range uint64(200) {
		text := generate(seed, 0)
		if text[0] != '{' {
			continue
		}
		waited := decode(text, bytes.Clone(text))
		var shared Thing
		if err := NewDocument(text).Read(Span{0, uint32(len(text))}, &shared, math.MaxInt); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		long := generate(seed, mostKept)
		copied := decode(long, bytes.Clone(long))
		for mode, thing := range map[string]Thing{"shared": shared, "copied": copied} {
			if diff := cmp.Diff(waited, thing, withoutSpace); diff != "" {
				t.Fatalf("%s: %s: %s", text, mode, diff)
			}
			if diff := cmp.Diff(problems(waited.RawObject), problems(thing.RawObject)); diff != "" {
				t.Fatalf("%s: %s: %s", text, mode, diff)
			}
		}
	}
}

// The problems of a value are those of the page below it, wherever the value is.
func TestProblemsOfEveryValue(t *testing.T) {
	values, found := 0, 0
	for seed := range uint64(200) {
		g := generator{Rand: rand.New(rand.NewPCG(seed, 4)), odd: true, padding: 3}
		g.value(reflect.TypeFor[Page](), false)
		var page Page
		if err := Unmarshal([]byte(g.String()), &page); err != nil {
			t.Fatal(err)
		}
		all := problems(page.RawObject)
		if len(all) == maxProblems {
			continue
		}
		visitRefs(reflect.ValueOf(page), "", func(path string, r RawObject) {
			var want []string
			for _, p := range all {
				if path == "" || strings.HasPrefix(p, path+".") || strings.HasPrefix(p, path+" ") {
					want = append(want, strings.TrimPrefix(p[len(path):], "."))
				}
			}
			got := problems(r)
			values, found = values+1, found+len(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: %q: %s", g.String(), path, diff)
			}
		})
	}
	if values < 1000 || found < 1000 {
		t.Errorf("%d values with %d problems", values, found)
	}
}

// visitRefs calls visit for all structs with a RawObject in v, which is under path.
func visitRefs(v reflect.Value, path string, visit func(string, RawObject)) {
	below := func(v reflect.Value, name string) { visitRefs(v, strings.TrimPrefix(path+"."+name, "."), visit) }
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			visitRefs(v.Elem(), path, visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			below(v.Index(i), strconv.Itoa(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			below(v.MapIndex(k), k.String())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if sf := v.Type().Field(i); isRef(sf) {
				visit(path, v.Field(i).Interface().(RawObject))
			} else if name := sf.Tag.Get("json"); sf.IsExported() && name != "" {
				name, _, _ = strings.Cut(name, ",")
				below(v.Field(i), name)
			}
		}
	default:
	}
}

func slicesOf(n int, v Thing) (list []Thing) {
	for range n {
		list = append(list, v)
	}
	return list
}

// What pointers and lists of strings point to waits too. Values of each kind come first and last in
// their document, twice, with escapes, empty, null, or do not fit; the copy of the document has
// room behind its bytes for the words, or has not.
func TestWaitingPointers(t *testing.T) {
	const id = `"9c0f2d52-3a3e-4a64-9b5e-1f2d3c4b5a69"`
	for _, fields := range []string{
		`"note":"a","limit":1,"other":` + id + `,"maybe":false`,
		`"limit":1,"note":"a","limit":2,"note":"b","maybe":true`,
		`"note":"a","note":7,"limit":1,"limit":"x","other":` + id + `,"other":"x"`,
		`"note":"","note":"","limit":1,"tags":["a"],"limit":null`,
		`"note":"\u0041","tags":["a","\u0042","c"],"codes":["x","y"]`,
		`"tags":["a","b"],"tags":["c"],"codes":["x"],"note":"n"`,
		`"tags":["a",7,"c"],"codes":["x",null,""],"note":"n"`,
		`"tags":[],"codes":null,"limit":7`,
		`"tags":[ "a" , "b" ],"parts":[{"name":"p","maker":{"city":"c"}},{"name":"q"},{"id":3}]`,
		`"parts":[{"name":"p","name":"q"}],"parts":[{"name":"r"}],"main":{"name":"m"},"main":{"id":1}`,
	} {
		for padding := range 40 {
			text := fmt.Sprintf(`{"name":"%s",%s}`, strings.Repeat("n", padding+1), fields)
			page := `{"things":[` + text + `,` + text + `,{},` + text + `]}`
			buffer := []byte(page)
			var got Page
			if err := Unmarshal(buffer, &got); err != nil {
				t.Fatal(err)
			}
			clear(buffer)
			runtime.GC()
			var want Thing
			if err := NewDocument([]byte(text)).Read(Span{0, uint32(len(text))}, &want, math.MaxInt); err != nil {
				t.Fatal(err)
			}
			for _, i := range []int{0, 1, 3} {
				if diff := cmp.Diff(want, got.Things[i]); diff != "" {
					t.Errorf("%s: %d: %s", text, i, diff)
				}
			}
			if b, err := Marshal(got); err != nil || string(b) != page {
				t.Errorf("%s: encoded as %s, %v", page, b, err)
			}
		}
	}
}

// Lists have no more room than they need, however their lengths vary.
func TestListsAreExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 5))
	for length := range 40 {
		var text strings.Builder
		var want []int
		for i := range 200 {
			n := 1 + random.IntN(1+length%8*5)
			if length%8 == 7 {
				n = 1 + i%2*3
			}
			want = append(want, n)
			fmt.Fprintf(&text, `,{"parts":[%s{"name":"p%d"}]}`, strings.Repeat(`{"id":1,"name":"p"},`, n-1), i)
		}
		var page Page
		if err := Unmarshal([]byte(`{"things":[`+text.String()[1:]+`]}`), &page); err != nil {
			t.Fatal(err)
		}
		for i, thing := range page.Things {
			parts := thing.Parts
			if len(parts) != want[i] || cap(parts) > len(parts)+len(parts)/4+1 || *parts[len(parts)-1].Name != fmt.Sprint("p", i) {
				t.Fatalf("%d: %d parts of %d with room for %d", i, len(parts), want[i], cap(parts))
			}
		}
	}
}

// A program that keeps an element, or a string of it, keeps nothing of the other elements.
func TestElementsShareNoMemory(t *testing.T) {
	thing := `{"name":"n","note":"o","limit":7,"other":"9c0f2d52-3a3e-4a64-9b5e-1f2d3c4b5a69","tags":["a","b"],"spare":{"id":1,"name":"p"},"parts":[{"id":1,"name":"q"}],"until":"2025-03-01T12:00:00Z"}`
	buffer := []byte(`{"things":[` + thing + `,` + thing + `,` + thing + `]}`)
	var page Page
	if err := Unmarshal(buffer, &page); err != nil {
		t.Fatal(err)
	}
	// The runtime puts values of less than 16 bytes together, so that a limit alone would not do.
	kept := page.Things[1]
	gone := map[string]func() bool{}
	for i, other := range []*Thing{&page.Things[0], &page.Things[2]} {
		add := func(name string, alive func() bool) { gone[fmt.Sprint(2*i, " ", name)] = alive }
		note, limit, spare, until := weak.Make(other.Note), weak.Make(other.Limit), weak.Make(other.Spare), weak.Make(other.Until)
		part, document := weak.Make(&other.Parts[0]), weak.Make(&bytesOf(other.RawObject.doc.in.data)[0])
		add("note", func() bool { return note.Value() != nil })
		add("limit", func() bool { return limit.Value() != nil })
		add("spare", func() bool { return spare.Value() != nil })
		add("until", func() bool { return until.Value() != nil })
		add("part", func() bool { return part.Value() != nil })
		add("document", func() bool { return document.Value() != nil })
	}
	list, whole := weak.Make(&page.Things[0]), weak.Make(&bytesOf(page.RawObject.doc.in.data)[0])
	gone["list"] = func() bool { return list.Value() != nil }
	gone["page"] = func() bool { return whole.Value() != nil }
	page = Page{}
	runtime.GC()
	for name, alive := range gone {
		if alive() {
			t.Errorf("%s is kept", name)
		}
	}
	if *kept.Note != "o" || *kept.Limit != 7 || kept.Until.Hour() != 12 || string(ref(kept.RawObject).Raw()) != thing {
		t.Error(*kept.Note, *kept.Limit, kept.Until)
	}
}

// Unused decoders hold nothing of a document.
func TestReleasedDecoder(t *testing.T) {
	text := `{"things":[{"name":"secret","colour":"secret","note":"s\u0065cret","limit":7,"tags":["secret"],"by_name":{"secret":{"id":1}},"parts":[{"name":"secret"},{"id":5}]}]}`
	d := newDecoder(NewDocument(nil), []byte(text), spare)
	d.copies = true
	var page Page
	if err := d.decode(reflect.ValueOf(&page).Elem()); err != nil {
		t.Fatal(err)
	}
	d.keep()
	d.release()
	for _, w := range d.waiting[:cap(d.waiting)] {
		if w != (waiting{}) {
			t.Error("a waiting string is held")
		}
	}
	for _, s := range d.path[:cap(d.path)] {
		if s != (step{}) {
			t.Error("a path is held")
		}
	}
	for _, s := range d.slabs {
		if s != (slab{}) {
			t.Error("a slab is held")
		}
	}
	spare := d.lists[planOf(reflect.TypeFor[Thing]()).find([]byte("parts")).id].spare
	if spare.cap == 0 || spare.len != 0 {
		t.Error("no spare list")
	}
	for _, p := range (*at[[]Part](spare.place()))[:spare.cap] {
		if !reflect.ValueOf(p).IsZero() {
			t.Errorf("%+v is held", p)
		}
	}
	rest := *d
	rest.slabs, rest.touched, rest.waiting, rest.path, rest.orders, rest.lists = nil, nil, nil, nil, nil, nil
	if !reflect.ValueOf(rest).IsZero() {
		t.Errorf("%+v", rest)
	}
}

// What was decoded before does not decide whether a document takes too much memory.
func TestMemoryWithoutHistory(t *testing.T) {
	const many = 100_000
	text := `{"things":[{"tags":[` + strings.Repeat(`"a",`, many) + `"b"],"by_name":{` + strings.Repeat(`"k":{"name":"x"},`, many) + `"k":{}}}]}`
	for size := 110; size < 250; size += 40 {
		before := `{"things":[` + strings.Repeat(`{"name":"`+strings.Repeat("x", size)+`"},`, 50) + `{}]}`
		for range 2 {
			if err := Unmarshal([]byte(before), new(Page)); err != nil {
				t.Fatal(size, err)
			}
		}
		if err := Unmarshal([]byte(text), new(Page)); err != nil {
			t.Error(size, err)
		}
	}
}

// Many strings that wait, and names that come twice, take time in proportion to the document.
func TestHostileElement(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	const many = 100_000
	for name, thing := range map[string]string{
		"strings, then duplicates":    `{"tags":[` + strings.Repeat(`"a",`, many) + `"b"]` + strings.Repeat(`,"name":"x"`, many) + `}`,
		"duplicates in the elements":  `{"parts":[` + strings.Repeat(`{"name":"a","name":"b","maker":{"city":"c"}},`, many/10) + `{}]}`,
		"elements that become small":  `{"parts":[` + strings.Repeat(`{"name":"`+strings.Repeat("x", 9999)+`"},`, 9) + strings.Repeat(`{},`, many/10) + `{}]}`,
		"maps of strings that wait":   `{"tags":[` + strings.Repeat(`"a",`, many) + `"b"],"by_name":{` + strings.Repeat(`"k":{"name":"x"},`, many) + `"k":{}}}`,
		"lists of alternating length": strings.Repeat(`{"tags":["a"],"codes":[]},{"tags":["a","b","c","d","e"],"codes":["x"]},`, many/100) + `{}`,
	} {
		text := []byte(`{"things":[` + thing + `]}`)
		start := time.Now()
		var page Page
		if err := Unmarshal(text, &page); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: took %v", name, took)
		}
		if b, err := Marshal(page); err != nil || !bytes.Equal(b, text) {
			t.Errorf("%s: encoded differently, %v", name, err)
		}
	}
}

// Titled is a struct whose first field is a string.
type Titled struct {
	Title string `json:"title"`

	RawObject `json:"-"`
}

// A first field that waits for its string is not treated as absent.
func TestWrapperOfString(t *testing.T) {
	var v struct {
		List []Titled `json:"list" jsonread:"own" wrapper:"box"`

		RawObject `json:"-"`
	}
	const text = `{"list":[{"title":"a","box":{"title":"b"}},{"box":{"title":"c"},"x":"y"},{"title":"","box":{"title":"d"}}]}`
	if err := Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Titled{{Title: "a"}, {Title: "c"}, {Title: "d"}}, v.List); diff != "" {
		t.Error(diff)
	}
	if b, err := Marshal(v); err != nil || string(b) != text {
		t.Errorf("encoded as %s, %v", b, err)
	}
}

// A failed decoding leaves nothing that refers to a document without bytes.
func TestErrorLeavesZero(t *testing.T) {
	page := Page{Total: new(int64(7))}
	if err := Unmarshal([]byte(`{"things":[{"name":"x"},{"name":"y"`), &page); err == nil || !reflect.DeepEqual(page, Page{}) {
		t.Errorf("%v: %+v", err, page)
	}
}

// Decoding a list of the same type again takes no more memory than the first time: unused decoders
// have a slab and lengths for each number.
func TestListsAreNumberedOnce(t *testing.T) {
	var list []Thing
	decode := func() {
		if err := Unmarshal([]byte(`[{"name":"a"},{"name":"b"}]`), &list); err != nil || len(list) != 2 {
			t.Fatal(list, err)
		}
	}
	decode()
	before := lastList.Load()
	for range 100 {
		decode()
	}
	if now := lastList.Load(); now != before {
		t.Errorf("%d new numbers", now-before)
	}
}
