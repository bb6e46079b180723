// The digest that identifies a record.

package bulk

import (
	"errors"
	"strings"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// digest is the first bytes of an HMAC of a record.
type digest [5]byte

// digest returns the digest of a record: of the body that would be sent, without omitted fields, so
// that it stays the same when the request gains optional fields. The error is a *[RecordError] for
// a record that cannot be encoded: a string is not valid UTF-8.
func (x *index) digest(body *labhealth.ImportOrderBody) (digest, error) {
	encoded, err := jsonread.MarshalPlain(body)
	var invalid *jsonread.ValueError
	switch {
	case errors.As(err, &invalid):
		problem := Problem{Path: "body." + strings.Join(invalid.Path, "."), Reason: invalid.Reason}
		return digest{}, &RecordError{SampleID: body.SampleID, Problems: []Problem{problem}}
	case err != nil:
		return digest{}, err
	}
	x.mac.Reset()
	x.mac.Write(encoded)
	return digest(x.mac.Sum(x.sum[:0])[:5]), nil
}
