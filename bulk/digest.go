// The digest that identifies a record.

package bulk

import (
	"encoding/binary"
	"reflect"
	"unicode/utf8"

	"github.com/labhealth/labhealth-go"
)

// digest is the first bytes of an HMAC of a record.
type digest [5]byte

// digest returns the digest of a record. It covers the names and values of all fields that would be
// sent, without omitted ones, so that it stays the same when the request gains optional fields. The
// error is a *[RecordError] for a record that cannot be sent: a string is not valid UTF-8.
func (x *index) digest(body *labhealth.ImportOrderBody) (digest, error) {
	var problem *Problem
	x.buf, problem = appendObject(x.buf[:0], reflect.ValueOf(body).Elem(), "body")
	if problem != nil {
		return digest{}, &RecordError{SampleID: body.SampleID, Problems: []Problem{*problem}}
	}
	x.mac.Reset()
	x.mac.Write(x.buf)
	return digest(x.mac.Sum(x.sum[:0])[:5]), nil
}

func appendObject(b []byte, v reflect.Value, path string) ([]byte, *Problem) {
	for _, f := range fieldsOf(v.Type()).list {
		value := v.Field(f.index)
		if value.IsZero() {
			continue
		}
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		b = appendString(b, f.name)
		var problem *Problem
		switch path := path + "." + f.name; f.kind {
		case object:
			b, problem = appendObject(b, value, path)
		case list:
			b, problem = appendList(b, value, path)
		default:
			b, problem = appendScalar(b, value, path)
		}
		if problem != nil {
			return b, problem
		}
	}
	return append(b, 0), nil // no name is empty
}

func appendList(b []byte, v reflect.Value, path string) (_ []byte, problem *Problem) {
	b = binary.AppendUvarint(b, uint64(v.Len()))
	for i := range v.Len() {
		if b, problem = appendScalar(b, v.Index(i), path); problem != nil {
			return b, problem
		}
	}
	return b, nil
}

func appendScalar(b []byte, v reflect.Value, path string) ([]byte, *Problem) {
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return b, &Problem{Path: path, Reason: "must be valid UTF-8"}
		}
		return appendString(b, v.String()), nil
	case reflect.Int64, reflect.Int:
		return binary.AppendVarint(b, v.Int()), nil
	case reflect.Array: // a UUID
		for i := range v.Len() {
			b = append(b, byte(v.Index(i).Uint()))
		}
		return b, nil
	case reflect.Struct: // a date
		for i := range v.NumField() {
			b = binary.AppendVarint(b, v.Field(i).Int())
		}
		return b, nil
	}
	// The request has no field of another kind yet.
	return b, &Problem{Path: path, Reason: "cannot be compared with other records"}
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
