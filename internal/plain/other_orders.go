// Orders as another service would write them.

package plain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// UnknownField is the name of the unknown fields in OtherOrderPageJSON.
const UnknownField = "vendor_reference"

// OtherOrderPageJSON returns a page of orders as another service would write them: those of
// OrderJSON and TypicalOrderJSON in turn, each with the fields of its objects in another order,
// some of the nulls absent, and unknown fields in between.
func OtherOrderPageJSON(orders int) []byte { return orderPageJSON(orders, otherOrderJSON) }

func otherOrderJSON(n int) string {
	order := OrderJSON(n)
	if n%2 == 1 {
		order = TypicalOrderJSON(n)
	}
	random := rand.New(rand.NewPCG(uint64(n), 1))
	in := json.NewDecoder(bytes.NewReader([]byte(order)))
	in.UseNumber()
	var out bytes.Buffer
	shuffle(&out, in, random)
	return out.String()
}

// shuffle copies the next value, with its fields in random order.
func shuffle(out *bytes.Buffer, in *json.Decoder, random *rand.Rand) {
	token, err := in.Token()
	if err != nil {
		panic(err)
	}
	switch token {
	case json.Delim('{'):
		shuffleFields(out, in, random)
	case json.Delim('['):
		out.WriteByte('[')
		for n := 0; in.More(); n++ {
			if n > 0 {
				out.WriteByte(',')
			}
			shuffle(out, in, random)
		}
		closing(out, in)
	default:
		text, err := json.Marshal(token)
		if err != nil {
			panic(err)
		}
		out.Write(text)
	}
}

func shuffleFields(out *bytes.Buffer, in *json.Decoder, random *rand.Rand) {
	var fields [][]byte
	for in.More() {
		name, err := in.Token()
		if err != nil {
			panic(err)
		}
		field := bytes.NewBuffer(fmt.Appendf(nil, "%q:", name))
		shuffle(field, in, random)
		if bytes.HasSuffix(field.Bytes(), []byte(":null")) && random.IntN(2) == 0 {
			continue
		}
		fields = append(fields, field.Bytes())
	}
	if random.IntN(4) == 0 {
		fields = append(fields, fmt.Appendf(nil, `%q:"v-%06d"`, UnknownField, random.IntN(1e6)))
	}
	random.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	out.WriteByte('{')
	out.Write(bytes.Join(fields, []byte{','}))
	closing(out, in)
}

// closing copies the end of an object or array.
func closing(out *bytes.Buffer, in *json.Decoder) {
	end, err := in.Token()
	if err != nil {
		panic(err)
	}
	fmt.Fprint(out, end)
}
