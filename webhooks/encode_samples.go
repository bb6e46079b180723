package webhooks

import (
	"bytes"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// received returns the samples of the batch as they were received, if the fast reader reads them.
func (s *Samples) received() []Sample {
	raw := s.RawJSON()
	if raw == nil {
		return nil
	}
	var batch Samples
	r := &batchReader{FastScanner: jsonread.FastScanner{Data: raw}, document: jsonread.NewDocument(raw), batch: &batch}
	r.Share()
	if !r.read() {
		return nil
	}
	return batch.Data
}

// isUnchanged reports whether s is certainly what was received. If it is not certain,
// [Sample.MarshalJSON] finds out.
func (s *Sample) isUnchanged(received *Sample) bool {
	return s.document != nil && s.Value == received.Value && s.Timestamp == received.Timestamp &&
		s.Start == received.Start && s.End == received.End &&
		s.Systolic == received.Systolic && s.Diastolic == received.Diastolic &&
		s.offset() == received.offset() && s.hasValue() == received.hasValue() &&
		s.Type == received.Type && s.Unit == received.Unit && s.Text == received.Text &&
		bytes.Equal(s.raw(), received.raw())
}

// raw returns the raw bytes of a received sample, not a copy.
func (s *Sample) raw() []byte { return s.span.Of(s.document.Data()) }

// encodeData encodes the samples. They are unchanged if they are those of raw, the received array.
func (s *Samples) encodeData(raw []byte) (list []byte, unchanged bool, err error) {
	received := s.received()
	changed := 0
	for changed < min(len(received), len(s.Data)) && s.Data[changed].isUnchanged(&received[changed]) {
		changed++
	}
	if changed > 0 && changed == len(s.Data) && changed == len(received) {
		return nil, true, nil
	}
	return encodeList(raw, len(s.Data), func(i int) ([]byte, error) {
		if i < len(received) && s.Data[i].isUnchanged(&received[i]) {
			return received[i].raw(), nil
		}
		return s.Data[i].MarshalJSON()
	})
}
