package compare

import (
	"time"

	"github.com/go-faster/jx"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/plain"
)

// jxDecoder decodes an event with samples field by field, without reflection, and with one string
// for repeated values.
type jxDecoder struct {
	flatEvent
	kind, unit string // of the previous sample
}

func decodeJX(document []byte) (*flatEvent, error) {
	var e jxDecoder
	return &e.flatEvent, jx.DecodeBytes(document).ObjBytes(func(d *jx.Decoder, key []byte) error {
		if string(key) == "data" {
			return d.ObjBytes(e.batch)
		}
		return idsJX(&e.IDs, d, key)
	})
}

func idsJX(to *plain.IDs, d *jx.Decoder, key []byte) (err error) {
	switch string(key) {
	case "event_type":
		to.EventType, err = d.Str()
	case "team_id":
		to.TeamID, err = idJX(d)
	case "user_id":
		to.UserID, err = idJX(d)
	case "client_user_id":
		to.ClientUserID, err = d.Str()
	default:
		err = d.Skip()
	}
	return err
}

func (e *jxDecoder) batch(d *jx.Decoder, key []byte) (err error) {
	to := &e.Data
	switch string(key) {
	case "user_id":
		to.UserID, err = idJX(d)
	case "source_id":
		to.SourceID, err = d.Int()
	case "source":
		err = d.ObjBytes(func(d *jx.Decoder, key []byte) (err error) {
			switch string(key) {
			case "name":
				to.Source.Name, err = d.Str()
			case "slug":
				to.Source.Slug, err = d.Str()
			case "logo":
				to.Source.Logo, err = d.Str()
			default:
				err = d.Skip()
			}
			return err
		})
	case "data":
		err = d.Arr(func(d *jx.Decoder) error {
			to.Data = append(to.Data, flatSample{})
			return d.ObjBytes(e.sample)
		})
	default:
		err = d.Skip()
	}
	return err
}

func (e *jxDecoder) sample(d *jx.Decoder, key []byte) (err error) {
	to := &e.Data.Data[len(e.Data.Data)-1]
	if d.Next() == jx.Null {
		return d.Null()
	}
	switch string(key) {
	case "timestamp":
		to.Timestamp, err = timeJX(d)
	case "start":
		to.Start, err = timeJX(d)
	case "end":
		to.End, err = timeJX(d)
	case "timezone_offset":
		to.TimezoneOffset, err = d.Int()
	case "type":
		to.Type, err = textJX(d, &e.kind)
	case "unit":
		to.Unit, err = textJX(d, &e.unit)
	case "value":
		to.Value, err = d.Float64()
	default:
		err = d.Skip()
	}
	return err
}

func idJX(d *jx.Decoder) (uuid.UUID, error) {
	b, err := d.StrBytes()
	if err != nil {
		return uuid.Nil, err
	}
	return uuid.ParseBytes(b)
}

func timeJX(d *jx.Decoder) (t time.Time, err error) {
	b, err := d.StrBytes()
	if err == nil {
		err = t.UnmarshalText(b)
	}
	return t, err
}

func textJX(d *jx.Decoder, last *string) (string, error) {
	b, err := d.StrBytes()
	if string(b) != *last {
		*last = string(b)
	}
	return *last, err
}
