package jsonread

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// The types below have one field of every kind that a response type can have.

type RawObject Ref

var _ = Embeds(func(k *RawObject) *Ref { return (*Ref)(k) })

// Equal lets go-cmp compare what was read with what a test wrote down.
func (RawObject) Equal(RawObject) bool { return true }

type Colour string

// Day reads itself, as labhealth.Date does.
type Day struct{ Text string }

func (d Day) MarshalJSON() ([]byte, error) { return json.Marshal(d.Text) }

func (d *Day) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if err := json.Unmarshal(b, &d.Text); err != nil || len(d.Text) != 10 {
		return errors.New("not a day")
	}
	return nil
}

// Perhaps is a value in which null differs from nothing, as labhealth.Nullable is.
type Perhaps[T comparable] struct {
	Null  bool
	Value T
}

func (p *Perhaps[T]) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		p.Null = true
		return nil
	}
	if n, ok := any(&p.Value).(*int64); ok {
		var err error
		*n, err = strconv.ParseInt(string(b), 10, 64) // json.Unmarshal would allocate more than the decoder
		return err
	}
	return json.Unmarshal(b, &p.Value)
}

func (p Perhaps[T]) MarshalJSON() ([]byte, error) {
	if p.Null {
		return []byte("null"), nil
	}
	return json.Marshal(p.Value)
}

type Part struct {
	ID    int64   `json:"id"`
	Name  *string `json:"name"`
	Maker *Maker  `json:"maker,omitzero"`

	RawObject `json:"-"`
}

type Maker struct {
	City string `json:"city"`

	RawObject `json:"-"`
}

type Thing struct {
	ID      uuid.UUID                  `json:"id"`
	Other   *uuid.UUID                 `json:"other,omitzero"`
	Name    string                     `json:"name"`
	Note    *string                    `json:"note,omitzero"`
	Colour  Colour                     `json:"colour" default:"red"`
	Count   int64                      `json:"count"`
	Limit   *int64                     `json:"limit,omitzero"`
	Size    float64                    `json:"size"`
	Price   json.Number                `json:"price"`
	On      bool                       `json:"on" default:"true"`
	Maybe   *bool                      `json:"maybe" default:"true"`
	At      time.Time                  `json:"at"`
	Until   *time.Time                 `json:"until,omitzero"`
	Day     Day                        `json:"day"`
	Due     *Day                       `json:"due,omitzero"`
	Tags    []string                   `json:"tags"`
	Codes   []Colour                   `json:"codes,omitzero"`
	Beats   []Perhaps[int64]           `json:"beats,omitzero"`
	Parts   []Part                     `json:"parts" jsonread:"nullable"`
	Own     []Part                     `json:"own,omitzero" jsonread:"own"`
	Free    json.RawMessage            `json:"free,omitzero"`
	Extra   map[string]json.RawMessage `json:"extra,omitzero"`
	ByName  map[string]Part            `json:"by_name,omitzero"`
	Makers  map[string]Maker           `json:"makers,omitzero"`
	Labels  map[string]Colour          `json:"labels,omitzero"`
	Main    Part                       `json:"main"`
	Spare   *Part                      `json:"spare,omitzero"`
	Payload Payload                    `json:"payload"`

	RawObject `json:"-"`
}

type Payload struct {
	Type Colour      `json:"type"`
	Data PayloadData `json:"data"`

	RawObject `json:"-"`
}

type PayloadData interface{ isPayload() }

type Letter struct {
	Text string `json:"text"`

	RawObject `json:"-"`
}

type Parcel struct {
	Weight int64 `json:"weight"`

	RawObject `json:"-"`
}

type Unknown struct {
	RawObject `json:"-"`
}

func (*Letter) isPayload()  {}
func (*Parcel) isPayload()  {}
func (*Unknown) isPayload() {}

var _ = Union[PayloadData]("type", (*Unknown)(nil), map[string]PayloadData{"letter": (*Letter)(nil), "parcel": (*Parcel)(nil)})

// Page holds things that a program keeps longer than the page.
type Page struct {
	Things []Thing `json:"things" jsonread:"own"`
	Total  *int64  `json:"total,omitzero"`

	RawObject `json:"-"`
}

func ref(k RawObject) Ref { return Ref(k) }
