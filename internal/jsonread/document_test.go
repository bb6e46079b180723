package jsonread

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Values that are decoded one by one have the same spans and problems as in a document that is
// decoded at once.
func TestDocument(t *testing.T) {
	const before, list, after = `{"head":1,"list":`, `[{"id":1},{"id":"x","maker":{"city":2}},7,{"id":3,"new":true}]`, `}`
	text := []byte(before + list + after)
	d := NewDocument(text)
	if err := d.Valid(); err != nil || string(d.Data()) != string(text) {
		t.Error(err, string(d.Data()))
	}
	var got []string
	var parts []Part
	var part Part
	err := d.ReadElements(Span{uint32(len(before)), uint32(len(before + list))}, &part, func(element Span, fits bool) {
		got = append(got, fmt.Sprintf("%d %s %v", part.ID, element.Of(text), fits))
		parts = append(parts, part)
	}, "list")
	if diff := cmp.Diff([]string{`1 {"id":1} true`, `0 {"id":"x","maker":{"city":2}} false`, `0 7 false`, `3 {"id":3,"new":true} true`}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	d.AddProblem(1, "tail", "head")
	whole := d.Ref(Span{0, uint32(len(text))})
	if diff := cmp.Diff([]string{"list.1.id integer", "list.1.maker.city string", "list.2 object", "head tail"}, pathsOf(whole.Problems())); diff != "" {
		t.Error(diff)
	}
	second := ref(parts[1].RawObject)
	if diff := cmp.Diff([]string{"id integer", "maker.city string"}, pathsOf(second.Problems())); diff != "" {
		t.Error(diff)
	}
	if raw := second.Span().Of(text); second.IsZero() || string(raw) != `{"id":"x","maker":{"city":2}}` {
		t.Errorf("%s", raw)
	}
	var original Part
	if err := ref(parts[3].RawObject).Original(&original); err != nil || original.ID != 3 || len(whole.Problems()) != 4 {
		t.Error(err, original.ID, whole.Problems())
	}
	if err := d.Read(Span{0, uint32(len(text)) - 1}, &part, 1<<10); !Truncated(err) {
		t.Error(err)
	}
	if err := d.ReadElements(Span{0, 5}, &part, func(Span, bool) {}); err == nil {
		t.Error("an object was decoded as an array")
	}
	if !(Ref{}).IsZero() {
		t.Error("the zero Ref is not zero")
	}
	for data, want := range map[string]Span{" \n{} ": {2, 4}, "{}": {0, 2}, " ": {1, 1}, "": {0, 0}} {
		if got := NewDocument([]byte(data)).Value(); got != want {
			t.Errorf("%q: the value is at %v", data, got)
		}
	}
}

func pathsOf(list []Problem) (paths []string) {
	for _, p := range list {
		paths = append(paths, strings.Join(p.Path, ".")+" "+p.Want)
	}
	return paths
}

func TestFieldsAndElements(t *testing.T) {
	var got []string
	fields := func(text string) {
		got = nil
		for name, value := range Fields([]byte(text)) {
			if got = append(got, string(name)+"="+string(value)); string(name) == "stop" {
				break
			}
		}
	}
	elements := func(text string) {
		got = nil
		for value := range Elements([]byte(text)) {
			if got = append(got, string(value)); string(value) == `"stop"` {
				break
			}
		}
	}
	for _, test := range []struct {
		read func(string)
		text string
		want []string
	}{
		{fields, ` { "a" : 1 ,"a":{"b":[2]},"\u00e9":null} `, []string{"a=1", `a={"b":[2]}`, "é=null"}},
		{fields, `{"a":1,"stop":2,"b":3}`, []string{"a=1", "stop=2"}},
		{fields, `{}`, nil},
		{fields, `[{"a":1}]`, nil},
		{elements, ` [ 1 , "x\n" ,[2],{"a":[3]},null] `, []string{"1", `"x\n"`, "[2]", `{"a":[3]}`, "null"}},
		{elements, `[1,"stop",2]`, []string{"1", `"stop"`}},
		{elements, `[]`, nil},
		{elements, `{"a":[1]}`, nil},
	} {
		if test.read(test.text); !cmp.Equal(test.want, got) {
			t.Errorf("%s: %q, want %q", test.text, got, test.want)
		}
	}
}

func TestInteger(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "-7": -7, "3.0": 3, "3e2": 300, "9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63} {
		if n, ok := Integer([]byte(text)); !ok || n != want {
			t.Errorf("%s: %d, %v", text, n, ok)
		}
	}
	for _, text := range []string{"3.5", "9223372036854775808", "1e400", "1e-3", "9" + strings.Repeat("0", 2000)} {
		if n, ok := Integer([]byte(text)); ok {
			t.Errorf("%s: %d", text, n)
		}
	}
}
