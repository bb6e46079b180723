package jsonread

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// fastValid reports whether the fast scanner accepts data as a document.
func fastValid(data []byte) bool {
	s := FastScanner{Data: data}
	s.Space()
	ok := s.Skip(0)
	s.Space()
	return ok && s.Pos == len(data)
}

// checkGrammar checks that both scanners accept data exactly if it is valid JSON in valid UTF-8 and
// not nested too deeply.
func checkGrammar(t *testing.T, data []byte) {
	t.Helper()
	want := json.Valid(data) && utf8.Valid(data) && depthOf(data) <= MaxDepth
	if err := Valid(data); (err == nil) != want {
		t.Fatalf("%q: valid %v, but the strict scanner says %v", data, want, err)
	}
	if got := fastValid(data); got != want {
		t.Fatalf("%q: valid %v, but the fast scanner says %v", data, want, got)
	}
}

// Both scanners have the same grammar: they agree on documents of every kind, and on each with any
// byte removed, changed or inserted.
func TestGrammar(t *testing.T) {
	documents := []string{
		`{"id":"9c0f2d52-3a3e-4a64-9b5e-1f2d3c4b5a69","n":[1,-2.5e+3,0,-0.0,1E-2],"t":true,"f":false,"z":null}`,
		`["\u00e9\ud83d\ude00\\\"\/","\b\f\n\r\t","\uD83D","\ud83d\u0041","é😀\u2028","12345678","1234567"]`,
		" [ ] ", "\t{\r\n}", `{"":{"":[[],{}]}}`, `"\ud83d\ude00"`, "-12.5e10", "0", "null",
	}
	for _, document := range documents {
		checkGrammar(t, []byte(document))
		for i := range len(document) + 1 {
			checkGrammar(t, []byte(document[:i]))
			if i < len(document) {
				checkGrammar(t, []byte(document[:i]+document[i+1:]))
			}
			for c := range 256 {
				checkGrammar(t, []byte(document[:i]+string([]byte{byte(c)})+document[i:]))
				if i < len(document) {
					checkGrammar(t, []byte(document[:i]+string([]byte{byte(c)})+document[i+1:]))
				}
			}
		}
	}
	for depth := MaxDepth - 1; depth <= MaxDepth+1; depth++ {
		checkGrammar(t, []byte(nested(depth)))
		checkGrammar(t, []byte(strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth)))
	}
}

// FuzzGrammar holds both scanners to the grammar of encoding/json.
func FuzzGrammar(f *testing.F) {
	for _, seed := range []string{
		`{"id":"9c0f2d52-3a3e-4a64-9b5e-1f2d3c4b5a69","n":[1,-2.5e+3,0],"t":true,"f":false,"z":null,"s":"\u00e9\ud83d\ude00\\\"\/"}`,
		` [ ] `, `"\ud800"`, "\"\xff\"", `1e999`, `-`, `{"a":1,"a":{"b":[[]]}}`, `{"a":1} x`, "\"\xed\xa0\x80\"", `[1,]`, nested(12), `"\u12`, `01`,
		`[{"a":1,"b":"x"},{"a":12,"b":"x"},{"a":1, "b":"y"},{"c":1}]`, `[{"a":0},{"a":01}]`, `["a":1]`, `{1:2}`, `[{"a":"b"},{"a":"b\"}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(checkGrammar)
}

// FuzzSkipObjects scans lists whose objects are alike, but for a change.
func FuzzSkipObjects(f *testing.F) {
	for _, seed := range [][3]string{
		{`{"timestamp":"2025-03-01T12:00:00Z","value":1,"unit":"bpm"}`, `2`, `,"type":null`},
		{`{"a":[{"b":1},{"b":2}],"c":{"d":"x"}}`, `"x\u00e9"`, `{"b":3}`},
		{`{"a":"é","b":true}`, "\xff", `"`},
		{`{}`, ` `, `{},`},
		{`{"a":1,"a":{"a":-0.5e+3}}`, `}`, `1`},
	} {
		for at := range uint8(len(seed[0])) {
			f.Add([]byte(seed[0]), at, at/2, []byte(seed[1]), []byte(seed[2]))
		}
	}
	f.Fuzz(func(t *testing.T, object []byte, at, width uint8, change, insert []byte) {
		lo := min(int(at), len(object))
		hi := min(lo+int(width), len(object))
		changed := slices.Concat(object[:lo], change, object[hi:])
		inserted := slices.Concat(object[:lo], insert, object[lo:])
		list := bytes.Join([][]byte{object, object, changed, inserted, object}, []byte(","))
		checkGrammar(t, slices.Concat([]byte("["), list, []byte("]")))
	})
}

// An object that is compared with a template is scanned as strictly as the template.
func TestSkipObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	lists := []string{
		`[{"a":1,"b":"x"},{"a":1,"b":"x"},{"a":12,"b":"x"},{"a":-1.5e3,"b":"xy"}]`,
		`[{"a":"","b":null,"c":true},{"a":"\u00e9","b":1,"c":[1,{"d":2}]},{"a":"é","b":[],"c":{}},{"a":"","b":null,"c":false}]`,
		`[{"a":1},{"a":1,"b":2},{"b":2},{"a":1},{},{"a":1},{"a":1}, {"a":1},{"a" :1},{"a": 1},{"a":1 },7,{"a":1},[{"a":1},{"a":1}],{"a":1}]`,
		`[{},{},{"a":1},{}]`,
		`[{"a":[{"b":1},{"b":2}]},{"a":[{"b":1},{"b":2}]},{"a":[{"b":1},{"b":2,"c":3}]},{"a":[{"b":1}]}]`,
		`[{"a":1,"a":2},{"a":1,"a":3},{"a":1}]`,
	}
	var many []string
	// Values that differ are stepped over by their length, and what is between them is compared.
	lists = append(lists, `[{"at":"2025-03-01T12:00:00Z","a":[1],"b":1.5},{"at":"2025-03-01T12:01:00Z","a":[1],"b":2},`+
		`{"at":"2025-03-01T12:02:00Z","a":[1],"b":123456789.12345678},{"at":"2025-03-01T12:03:00.5Z","a":[1],"b":null},{"at":"1234567890","a":[1],"b":-1e3}]`)
	for n := range 20 {
		many = append(many, fmt.Sprintf(`"member %d":%d`, n, n))
	}
	for n := 15; n < 18; n++ {
		object := `{` + strings.Join(many[:n], ",") + `}`
		lists = append(lists, `[`+object+`,`+object+`,`+strings.Replace(object, `":7`, `":"seven"`, 1)+`]`)
	}
	for _, list := range lists {
		if !json.Valid([]byte(list)) {
			t.Fatalf("%s is not valid", list)
		}
		checkGrammar(t, []byte(list))
		for i := range list {
			checkGrammar(t, []byte(list[:i]))
			checkGrammar(t, []byte(list[:i]+list[i+1:]))
			for _, c := range []byte("\x00 \n\"\\,:{}[]01-.eEtn\x7f\x80\xff") {
				changed := []byte(list)
				changed[i] = c
				checkGrammar(t, changed)
				checkGrammar(t, []byte(list[:i]+string(c)+list[i:]))
			}
		}
	}
	for depth := MaxDepth - 2; depth <= MaxDepth+2; depth++ {
		objects := strings.Repeat(`[{"a":1},{"a":`, depth/2) + "1" + strings.Repeat(`}]`, depth/2)
		checkGrammar(t, []byte(objects))
		checkGrammar(t, []byte(`[`+objects+`]`))
		checkGrammar(t, []byte(`[`+strings.Replace(objects, "1}]", "{}}]", 1)+`]`))
	}
}

// UUIDs are decoded as the uuid package decodes those of 36 characters.
func TestUUID(t *testing.T) {
	check := func(text string) {
		t.Helper()
		s := FastScanner{Data: []byte(`"` + text + `"`)}
		var got uuid.UUID
		ok := s.UUID(&got)
		want, err := uuid.Parse(text)
		if valid := err == nil && len(text) == 36; ok != valid || ok && (got != want || s.Pos != len(s.Data)) {
			t.Errorf("%q: %v, %v; want %v, %v", text, got, ok, want, err)
		}
	}
	const id = "0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4"
	for _, text := range []string{id, strings.ToUpper(id), "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), id[1:], id + "0", "",
		"ffffffff-ffff-ffff-ffff-ffffffffffff", "00000000-0000-0000-0000-000000000000"} {
		check(text)
	}
	for i := range id {
		for c := range 256 {
			check(id[:i] + string([]byte{byte(c)}) + id[i+1:])
		}
	}
}

// Numbers are those of strconv, to the last bit.
func TestFloat(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	r := rand.New(rand.NewPCG(3, 1))
	check := func(text string) {
		t.Helper()
		s := FastScanner{Data: []byte(text)}
		var got float64
		ok := s.Float64(&got)
		want, err := strconv.ParseFloat(text, 64)
		if err != nil || !ok || s.Pos != len(text) || math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("%s: %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"0", "-0", "0.0", "-0.000", "1", "0.1", "9007199254740993", "9007199254740992.5", "9007199254740993.0", "1844674407370955161.5",
		"9999999999999999999", "0.9999999999999999999", "0.0000000000000000001", "1e5", "1E-5", "123456789012345678901234567890", "5e-324", "0.3", "2.5"} {
		check(text)
	}
	for range 200000 {
		digits := strconv.FormatUint(r.Uint64()>>(r.IntN(64)), 10)
		switch point := r.IntN(len(digits) + 1); {
		case point == 0:
			check("0." + digits)
		case point == len(digits):
			check(digits)
		default:
			check(digits[:point] + "." + digits[point:])
		}
		check(strconv.FormatFloat(r.Float64()*1000, 'g', -1, 64))
	}
	// Halfway between two float64, and just beside it.
	for range 20000 {
		f := float64(r.Uint64N(1<<53)|1<<52) / 4
		check(strconv.FormatFloat(f, 'f', -1, 64))
		half := strconv.FormatUint((r.Uint64N(1<<52)|1<<52)*2+1, 10)
		check(half + ".0")
		check(half + ".5")
	}
}

// checkTime checks that a date-time in a document is the one that ParseTime parses.
func checkTime(t *testing.T, text string) {
	t.Helper()
	want, valid := ParseTime([]byte(text))
	for _, after := range []string{"", ",", `,"value":12345678901234567890`} {
		s := FastScanner{Data: []byte(`"` + text + `"` + after)}
		var got time.Time
		if ok := s.Time(&got, new(DateCache)); ok != valid || ok && (!got.Equal(want) || got.String() != want.String() || s.Pos != len(text)+2) {
			t.Errorf("%q: %v, %v; want %v, %v", text, got, ok, want, valid)
		}
	}
}

// The fast scanner decodes the date-times that ParseTime parses, and no others.
func TestFastTime(t *testing.T) {
	for _, text := range []string{
		"2025-03-01T12:00:00Z", "2025-03-01T12:00:00+02:00", "2025-03-01T12:00:00-09:30", "2025-03-01T12:00:00.5Z", "2025-03-01T12:00:00.123456789+00:00",
		"2025-03-01T12:00:00.1234567890123Z", "2025-03-01", "2025-03-01t12:00:00z", "2025-03-01 12:00:00", "2025-03-01T12:00:00+02", "2025-03-01T12:00:00+0200",
		"2024-02-29T23:59:59-23:59", strings.Repeat("\x00", 10) + "T12:00:00Z", strings.Repeat("\xff", 10) + "T12:00:00Z", // not what an empty cache has
	} {
		checkTime(t, text)
		for i := range text {
			checkTime(t, text[:i])
			for _, c := range "0123456789:.-+TZtz /;\x00\x7f" {
				checkTime(t, text[:i]+string(c)+text[i+1:])
				checkTime(t, text[:i]+string(c)+text[i:])
			}
		}
	}
}

// Rounds agrees with exact arithmetic on what encoding/json writes for the nearest float64, and
// Decimal loses nothing.
func TestRounds(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	rational := func(text string) *big.Rat {
		n, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatal(text)
		}
		return n
	}
	rounded := 0
	for i := range 20_000 {
		text := strconv.FormatFloat(r.NormFloat64()*math.Pow(10, float64(r.IntN(30)-15)), 'f', r.IntN(25), 64)
		switch i % 4 {
		case 0: // 15 to 19 digits, where the two differ
			text = strconv.FormatUint(r.Uint64()>>r.IntN(16), 10)
			if point := r.IntN(len(text)); point > 0 {
				text = text[:point] + "." + text[point:]
			}
		case 1:
			text += "e" + strconv.Itoa(r.IntN(600)-300)
		case 2: // the number that is written for a float64, or one beside it
			digits := strconv.AppendFloat(nil, math.Exp(r.NormFloat64()*8), 'f', -1, 64)
			if last := &digits[len(digits)-1]; '0' < *last && *last < '9' {
				*last += byte(r.IntN(3)) - 1
			}
			text = string(digits)
		}
		f, ok := Float([]byte(text))
		if !ok {
			continue
		}
		want := rational(text).Cmp(rational(strconv.FormatFloat(f, 'g', -1, 64))) != 0
		var fast float64
		var fastRounds bool
		s := FastScanner{Data: []byte(text)}
		if s.Number(&fast, &fastRounds); fast != f || fastRounds != want || Rounds([]byte(text), f) != want {
			t.Fatalf("%s: rounds %v and %v, want %v", text, Rounds([]byte(text), f), fastRounds, want)
		}
		if want {
			rounded++
		}
		decimal := Decimal([]byte(text))
		if rational(decimal).Cmp(rational(text)) != 0 || Decimal([]byte(decimal)) != decimal {
			t.Fatalf("%s: %s", text, decimal)
		}
		if asFloat, _ := json.Marshal(f); !want && decimal != string(asFloat) {
			t.Fatalf("%s: %s, want %s", text, decimal, asFloat)
		}
	}
	if rounded < 2_000 || rounded > 18_000 {
		t.Errorf("%d of 20000 were rounded", rounded)
	}
	if got := string(ReplaceField([]byte(`{"a" : 1,"value": 2.5e1 ,"b":[]}`), "value", "7")); got != `{"a" : 1,"value": 7 ,"b":[]}` {
		t.Error(got)
	}
	if got := string(ReplaceField([]byte(`{"a":1}`), "value", "7")); got != `{"a":1}` {
		t.Error(got)
	}
}
