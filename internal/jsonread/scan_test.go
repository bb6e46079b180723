package jsonread

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/bits"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestValid(t *testing.T) {
	accepted := []string{
		`null`, `true`, `false`, `0`, `-0`, `12`, `-1.5`, `1e5`, `1E+5`, `1.0e-5`, `""`, `"a"`, `{}`, `[]`,
		" \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } } \n", `"\"\\\/\b\f\n\r\t\u0041"`, `"\ud83d\ude00"`, `"😀"`,
		`"\ud83d"`, `"\ude00\ud83d"`, `"\ud83dA"`, "\"\x7f\"", "\"\u2028\"", `{"a":1,"a":2}`, `{"":""}`,
		`[[],[[]],{"a":[{}]}]`, "\"\uFFFD\"", `1234567890123456789012345678901234567890`, `1e999999`,
	}
	for _, text := range accepted {
		if err := Valid([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	rejected := []struct {
		text, reason string
		offset       int
	}{
		{"", unexpectedEnd, 0},
		{"  ", unexpectedEnd, 2},
		{`{`, unexpectedEnd, 1},
		{`{"a"`, unexpectedEnd, 4},
		{`{"a":`, unexpectedEnd, 5},
		{`{"a":1`, unexpectedEnd, 6},
		{`{"a":1,`, unexpectedEnd, 7},
		{`["a`, unexpectedEnd, 3},
		{`["a\`, unexpectedEnd, 3},
		{"[\"a\xc3", unexpectedEnd, 3},
		{`["a\u00`, unexpectedEnd, 7},
		{`["\ud83d\u`, unexpectedEnd, 10},
		{`tru`, unexpectedEnd, 0},
		{`-`, unexpectedEnd, 1},
		{`1.`, unexpectedEnd, 2},
		{`1e`, unexpectedEnd, 2},
		{`1e+`, unexpectedEnd, 3},
		{`nul1`, badChar, 0},
		{`TRUE`, badChar, 0},
		{`+1`, badChar, 0},
		{`.5`, badChar, 0},
		{`NaN`, badChar, 0},
		{`'a'`, badChar, 0},
		{`{a:1}`, badChar, 1},
		{`{"a" 1}`, badChar, 5},
		{`{"a":1,}`, badChar, 7},
		{`{,}`, badChar, 1},
		{`[1,]`, badChar, 3},
		{`[1 2]`, badChar, 3},
		{`[1}`, badChar, 2},
		{`{"a":1]`, badChar, 6},
		{`-a`, badNumber, 1},
		{`1.x`, badNumber, 2},
		{`1e-x`, badNumber, 3},
		{`"` + "\n" + `"`, badString, 1},
		{`"` + "\x00" + `"`, badString, 1},
		{`"\x41"`, badString, 1},
		{`"\u00g1"`, badString, 5},
		{`"\ud83d\u00g1"`, badString, 11},
		{"\"\xff\"", badUTF8, 1},
		{"\"a\xc3\"", badUTF8, 2},
		{"\"a\xc3x", badUTF8, 2},
		{"\"\xed\xa0\x80\"", badUTF8, 1}, // a surrogate written as UTF-8
		{"\"\xc0\xaf\"", badUTF8, 1},     // an overlong slash
		{"\ufeff{}", badChar, 0},         // a byte order mark
		{`01`, trailing, 1},
		{`0x10`, trailing, 1},
		{`1 2`, trailing, 2},
		{`{} {}`, trailing, 3},
		{`{}x`, trailing, 2},
		{"{}\x00", trailing, 2},
		{`null,`, trailing, 4},
		{strings.Repeat("[", MaxDepth+1), tooDeep, MaxDepth},
		{strings.Repeat(`{"a":`, MaxDepth+1), tooDeep, 5 * MaxDepth},
	}
	for _, test := range rejected {
		var e *SyntaxError
		if err := Valid([]byte(test.text)); !errors.As(err, &e) || e.Reason != test.reason || e.Offset != test.offset {
			t.Errorf("%.40q: got %v, want %q at %d", test.text, err, test.reason, test.offset)
		}
		if Truncated(e) != (test.reason == unexpectedEnd) {
			t.Errorf("%.40q: Truncated = %v", test.text, Truncated(e))
		}
	}
	if text := nested(MaxDepth); Valid([]byte(text)) != nil {
		t.Error("the greatest depth is rejected")
	}
	if got, want := Valid([]byte(`["Ada Example`)).Error(), "not valid JSON at byte 13: unexpected end of JSON"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// Every truncated document is reported as truncated, wherever the cut is.
func TestTruncated(t *testing.T) {
	text := []byte(`{"a":[1.5e3,true,false,null,"x\u00e9\ud83d\ude00é"],"b":{"c":""},"":-0}`)
	for n := range text {
		if err := Valid(text[:n]); !Truncated(err) {
			t.Errorf("%q: %v", text[:n], err)
		}
	}
	if Truncated(nil) || Truncated(errors.New("x")) {
		t.Error("Truncated knows errors that are not ours")
	}
}

func depthOf(text []byte) (deepest int) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && (c == '{' || c == '['):
			depth++
			deepest = max(deepest, depth)
		case !quoted && (c == '}' || c == ']'):
			depth--
		}
	}
	return deepest
}

// FuzzString decodes strings as encoding/json does.
func FuzzString(f *testing.F) {
	for _, seed := range []string{`"\u00e9\ud83d\ude00\\\"\/"`, ` "a" `, `"\ud800"`, "\"\xff\"", `1`, `"\u12`, `"a" x`, "\"é\u2028\"", `"\udc00\ud800\u0041"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want string
		isString := json.Valid(data) && utf8.Valid(data) && strings.HasPrefix(strings.TrimLeft(string(data), " \n\t\r"), `"`)
		if isString {
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
		}
		if got, ok := String(data); ok != isString || ok && got != want {
			t.Fatalf("%q: decoded as %q, %v; want %q, %v", data, got, ok, want, isString)
		}
	})
}

// What is looked at eight bytes at a time is what one would find byte by byte.
func TestSpecial(t *testing.T) {
	for at := range 8 {
		for c := range 256 {
			for _, others := range []string{"aaaaaaaa", "        ", "!!!!!!!!", "########", "[[[[[[[[", "]]]]]]]]", "\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f"} {
				text := []byte(others)
				text[at] = byte(c)
				want := 64
				if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
					want = 8*at + 7
				}
				if got := bits.TrailingZeros64(special(binary.LittleEndian.Uint64(text))); got != want {
					t.Fatalf("%q: bit %d, want %d", text, got, want)
				}
			}
		}
	}
	if bits.TrailingZeros64(special(binary.LittleEndian.Uint64([]byte("ab\x01\"\xff\\\x00z")))) != 2*8+7 {
		t.Error("the first of several is not found")
	}
}

// Stepping over a string makes no copy of it, however it is escaped.
func TestValidTakesNoMemory(t *testing.T) {
	text := []byte(`["` + strings.Repeat(`a\n\u00e9`, 1<<16) + `"]`)
	if got := testing.AllocsPerRun(5, func() {
		if err := Valid(text); err != nil {
			t.Fatal(err)
		}
	}); got > 2 {
		t.Errorf("%v allocations", got)
	}
}
