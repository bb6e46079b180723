// Nullable, a field of a request for which absent and null differ.

package labhealth

import (
	"encoding/json"
	"errors"
)

// Nullable is a field of a request that distinguishes absent from null. The zero Nullable is
// absent, and is omitted. [Value] and [Null] return the other two. A struct field of this type
// needs the tag option omitzero.
type Nullable[T any] struct {
	state nullableState
	value T
}

type nullableState uint8

const (
	absent nullableState = iota
	null
	present
)

// Value returns a Nullable that is sent as v. A v that encodes to null, such as the zero [Date],
// cannot be sent: use [Null].
func Value[T any](v T) Nullable[T] { return Nullable[T]{present, v} }

// Null returns a Nullable that is sent as null.
func Null[T any]() Nullable[T] { return Nullable[T]{state: null} }

// Get returns the value; ok is false if n is absent or null.
func (n Nullable[T]) Get() (v T, ok bool) { return n.value, n.state == present }

// IsNull reports whether n is sent as null.
func (n Nullable[T]) IsNull() bool { return n.state == null }

// IsZero reports whether n is absent. encoding/json calls it for the tag option omitzero.
func (n Nullable[T]) IsZero() bool { return n.state == absent }

// MarshalJSON encodes the value or null. An absent Nullable is an error: it would be sent as null,
// which happens if a struct field lacks omitzero.
func (n Nullable[T]) MarshalJSON() ([]byte, error) {
	switch n.state {
	case present:
		b, err := json.Marshal(n.value)
		if err == nil && string(b) == "null" {
			err = errors.New("labhealth: a Nullable whose value encodes to null is invalid: use Null")
		}
		return b, err
	case null:
		return []byte("null"), nil
	default:
		return nil, errors.New("labhealth: an absent Nullable cannot be encoded: its field needs the tag option omitzero")
	}
}

// UnmarshalJSON decodes null or a value.
func (n *Nullable[T]) UnmarshalJSON(b []byte) error {
	*n = Null[T]()
	if string(b) == "null" {
		return nil
	}
	n.state = present
	return json.Unmarshal(b, &n.value)
}
