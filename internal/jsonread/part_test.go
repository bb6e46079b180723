package jsonread

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A document that is read in parts remembers for each where it is and what did not fit, as one that is read at once does.
func TestParts(t *testing.T) {
	const before, list, after = `{"head":1,"list":`, `[{"id":1},{"id":"x","maker":{"city":2}},7,{"id":3,"new":true}]`, `}`
	text := []byte(before + list + after)
	if !Fits(text) {
		t.Error("a short text does not fit")
	}
	d := NewDocument(text)
	if err := d.Valid(); err != nil || string(d.Text()) != string(text) {
		t.Error(err, string(d.Text()))
	}
	var got []string
	var parts []Part
	var part Part
	err := d.ReadElements(len(before), len(before)+len(list), &part, func(lo, hi int, misfit bool) {
		got = append(got, fmt.Sprintf("%d %s %v", part.ID, text[lo:hi], misfit))
		parts = append(parts, part)
	}, "list")
	if diff := cmp.Diff([]string{`1 {"id":1} false`, `0 {"id":"x","maker":{"city":2}} true`, `0 7 true`, `3 {"id":3,"new":true} false`}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	d.Problem(1, "tail", "head")
	whole := d.Ref(0, len(text), 0)
	if diff := cmp.Diff([]string{"list.1.id integer", "list.1.maker.city string", "list.2 object", "head tail"}, pathsOf(whole.Problems())); diff != "" {
		t.Error(diff)
	}
	second := ref(parts[1].RawObject)
	if diff := cmp.Diff([]string{"id integer", "maker.city string"}, pathsOf(second.Problems())); diff != "" {
		t.Error(diff)
	}
	if lo, hi, ok := second.Span(); !ok || string(text[lo:hi]) != `{"id":"x","maker":{"city":2}}` {
		t.Error(lo, hi, ok)
	}
	var again Part
	if err := ref(parts[3].RawObject).Again(&again); err != nil || again.ID != 3 || len(whole.Problems()) != 4 {
		t.Error(err, again.ID, whole.Problems())
	}
	if err := d.Read(0, len(text)-1, &part, 1<<10); !Truncated(err) {
		t.Error(err)
	}
	if err := d.ReadElements(0, 5, &part, func(int, int, bool) {}); err == nil {
		t.Error("an object was read as an array")
	}
	if _, _, ok := (Ref{}).Span(); ok {
		t.Error("a value that was not read has a place")
	}
}

func pathsOf(list []Problem) (paths []string) {
	for _, p := range list {
		paths = append(paths, strings.Join(p.Path, ".")+" "+p.Want)
	}
	return paths
}

func TestMembersAndElements(t *testing.T) {
	var got []string
	members := func(text string) {
		got = nil
		for name, value := range Members([]byte(text)) {
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
		{members, ` { "a" : 1 ,"a":{"b":[2]},"\u00e9":null} `, []string{"a=1", `a={"b":[2]}`, "é=null"}},
		{members, `{"a":1,"stop":2,"b":3}`, []string{"a=1", "stop=2"}},
		{members, `{}`, nil},
		{members, `[{"a":1}]`, nil},
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
