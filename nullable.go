package labhealth

import (
	"encoding/json"
	"errors"
)

// Nullable is a request member for which "left out" and null mean different things. The zero Nullable is left out; [Value] and
// [Null] make the other two. A struct field of this type needs the tag option omitzero.
type Nullable[T any] struct {
	state nullableState
	value T
}

type nullableState uint8

const (
	absent nullableState = iota
	null
	given
)

// Value returns a Nullable that is sent as v. A v that would be written as null, such as the zero [Date], cannot be sent: where null
// is meant, [Null] says so.
func Value[T any](v T) Nullable[T] { return Nullable[T]{given, v} }

// Null returns a Nullable that is sent as null.
func Null[T any]() Nullable[T] { return Nullable[T]{state: null} }

// Get returns the value; ok is false if n is left out or null.
func (n Nullable[T]) Get() (v T, ok bool) { return n.value, n.state == given }

// IsNull reports whether n is sent as null.
func (n Nullable[T]) IsNull() bool { return n.state == null }

// IsZero reports whether n is left out. encoding/json calls it for the tag option omitzero.
func (n Nullable[T]) IsZero() bool { return n.state == absent }

// MarshalJSON writes the value or null. A Nullable that should be left out is an error: it would become a null that nobody
// asked for, which happens when a struct field lacks omitzero.
func (n Nullable[T]) MarshalJSON() ([]byte, error) {
	switch n.state {
	case given:
		b, err := json.Marshal(n.value)
		if err == nil && string(b) == "null" {
			err = errors.New("labhealth: a value that is written as null needs Null to say that this is meant")
		}
		return b, err
	case null:
		return []byte("null"), nil
	default:
		return nil, errors.New("labhealth: a Nullable that is left out cannot be written: its field needs the tag option omitzero")
	}
}

// UnmarshalJSON reads null or a value.
func (n *Nullable[T]) UnmarshalJSON(b []byte) error {
	*n = Null[T]()
	if string(b) == "null" {
		return nil
	}
	n.state = given
	return json.Unmarshal(b, &n.value)
}
