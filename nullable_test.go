package labhealth

import (
	"encoding/json"
	"testing"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

func TestNullable(t *testing.T) {
	tests := []struct {
		n          Nullable[Date]
		text       string // of a struct with the tag option
		zero, null bool
		date       Date
		ok         bool
	}{
		{Nullable[Date]{}, `{}`, true, false, Date{}, false},
		{Null[Date](), `{"activate_by":null}`, false, true, Date{}, false},
		{Value(Date{2025, 3, 1}), `{"activate_by":"2025-03-01"}`, false, false, Date{2025, 3, 1}, true},
	}
	for _, test := range tests {
		body := UpdateOrderBody{ActivateBy: test.n}
		date, ok := test.n.Get()
		if test.n.IsZero() != test.zero || test.n.IsNull() != test.null || date != test.date || ok != test.ok {
			t.Errorf("%s: zero %v, null %v, %v %v", test.text, test.n.IsZero(), test.n.IsNull(), date, ok)
		}
		if got := string(mustEncode(t, body)); got != test.text {
			t.Errorf("encoding/json: got %s, want %s", got, test.text)
		}
		if got, err := jsonread.MarshalPlain(body); err != nil || string(got) != test.text {
			t.Errorf("as a request: got %s, %v, want %s", got, err, test.text)
		}
		var again UpdateOrderBody
		if err := json.Unmarshal([]byte(test.text), &again); err != nil || again != body {
			t.Errorf("%s: read as %v, %v", test.text, again, err)
		}
	}
}

// A field without omitzero would send a null that was not set.
func TestNullableWithoutOmitzero(t *testing.T) {
	body := struct {
		ActivateBy Nullable[Date] `json:"activate_by"`
	}{}
	if b, err := json.Marshal(body); err == nil {
		t.Errorf("written as %s", b)
	}
	body.ActivateBy = Null[Date]()
	if b, err := json.Marshal(body); err != nil || string(b) != `{"activate_by":null}` {
		t.Errorf("written as %s, %v", b, err)
	}
}

func TestNullableMalformed(t *testing.T) {
	for _, text := range []string{`"2025-02-29"`, `7`, `{}`} {
		var n Nullable[Date]
		if err := json.Unmarshal([]byte(text), &n); err == nil {
			t.Errorf("%s: read as %v", text, n)
		}
	}
	// Decoding replaces the previous value.
	n := Value(int64(7))
	if err := json.Unmarshal([]byte(`null`), &n); err != nil || n != Null[int64]() {
		t.Errorf("%v, %v", n, err)
	}
}
