package bulk

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/maphash"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/labhealth/labhealth-go"
)

// state is all that is remembered of a record: 12 bytes, under 8 of a hash of its sample id. Two sample ids of one hash, which is
// as good as impossible, would have different digests and so be reported as two records with one id, not lost.
type state struct {
	entry    uint32 // number of its last entry in the journal
	digest   digest // of the record in the source; until that was read, of the last one that was sent
	step     uint8  // what the last entry says
	flags    uint8
	attempts uint8 // how often it was sent in this run
}

// digest is the first bytes of an HMAC of a record.
type digest [5]byte

// id is a hash of a sample id. It is made of bytes, like digest, so that the index has no gaps.
type id [8]byte

const (
	seen     = 1 << iota // it is in the source
	conflict             // the source has different records with its sample id, perhaps in another case
	invalid              // it cannot be sent
	changed              // it is not what was sent under its sample id before
	doubted              // the outcome of an attempt was unknown once
	taken                // this run has dealt with it, or is about to
)

// bucket is what a record counts as.
type bucket uint8

const (
	nowhere bucket = iota // not in the source
	bStray                // not in the source, and of unknown outcome
	bPending
	bApplied
	bRefused
	bInvalid
	bChanged
	bUnknown
	buckets
)

func (s state) bucket() bucket {
	switch {
	case s.flags&seen == 0 && s.unresolved():
		return bStray
	case s.flags&seen == 0:
		return nowhere
	case s.step == applied && s.flags&changed != 0:
		return bChanged
	case s.step == applied:
		return bApplied
	case s.unresolved():
		return bUnknown
	case s.flags&(conflict|invalid) != 0:
		return bInvalid
	case s.step == refused:
		return bRefused
	}
	return bPending
}

// unresolved reports whether the record may have been applied.
func (s state) unresolved() bool { return s.step == intent || s.step == unknown || s.step == disputed }

// orphaned reports whether the record may have been applied, and has no row in the source that
// could be sent in its stead.
func (s state) orphaned() bool {
	return s.unresolved() && (s.flags&seen == 0 || s.flags&(conflict|invalid) != 0)
}

// index is what is known of all records.
type index struct {
	seed   maphash.Seed
	mac    hash.Hash
	sum    [sha256.Size]byte
	text   []byte
	states map[id]state
	counts [buckets]int64
	last   uint32 // number of the journal's last entry

	target string
}

func newIndex() *index {
	return &index{seed: maphash.MakeSeed(), states: map[id]state{}}
}

func (x *index) key(sampleID string) (key id) {
	binary.LittleEndian.PutUint64(key[:], maphash.String(x.seed, fold(sampleID)))
	return key
}

// fold returns the form in which sample ids are compared: a service may change their case, or cut
// off spaces at their ends.
func fold(sampleID string) string {
	return strings.ToLower(strings.ToUpper(strings.TrimSpace(sampleID)))
}

// set changes a state and keeps the counts right.
func (x *index) set(key id, s state) {
	x.counts[x.states[key].bucket()]--
	x.counts[s.bucket()]++
	x.states[key] = s
}

// untouched reports whether the journal shows that nothing was imported: a target that was wrong
// may be corrected then.
func (x *index) untouched() bool {
	for _, s := range x.states {
		if s.step != postponed {
			return false
		}
	}
	return true
}

// setKey sets the key of the digests.
func (x *index) setKey(key []byte) { x.mac = hmac.New(sha256.New, key) }

// digest returns the digest of a record. It covers what would be sent, member by member: their names and values, without those that
// are left out, so that it stays the same when the request gains optional members. Text that is not UTF-8 cannot be sent.
func (x *index) digest(body *labhealth.ImportOrderBody) (digest, *Problem) {
	var problem *Problem
	x.text, problem = appendMembers(x.text[:0], reflect.ValueOf(body).Elem(), "body")
	if problem != nil {
		return digest{}, problem
	}
	x.mac.Reset()
	x.mac.Write(x.text)
	return digest(x.mac.Sum(x.sum[:0])[:5]), nil
}

func appendMembers(b []byte, v reflect.Value, path string) ([]byte, *Problem) {
	for _, m := range membersOf(v.Type()).list {
		f := v.Field(m.index)
		if f.IsZero() {
			continue
		}
		at := path + "." + m.name
		if f.Kind() == reflect.Pointer {
			f = f.Elem()
		}
		var problem *Problem
		b = appendText(b, m.name)
		switch m.kind {
		case group:
			b, problem = appendMembers(b, f, at)
		case list:
			b = binary.AppendUvarint(b, uint64(f.Len()))
			for i := range f.Len() {
				if b, problem = appendSingle(b, f.Index(i), at); problem != nil {
					break
				}
			}
		default:
			b, problem = appendSingle(b, f, at)
		}
		if problem != nil {
			return b, problem
		}
	}
	return append(b, 0), nil // no name is empty
}

func appendSingle(b []byte, v reflect.Value, path string) ([]byte, *Problem) {
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return b, &Problem{path, "must be valid UTF-8"}
		}
		return appendText(b, v.String()), nil
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
	return b, &Problem{path, "cannot be compared with other records"} // a kind of member that the interface does not have yet
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// apply takes the next entry of the journal, from an earlier run or this one.
func (x *index) apply(e *Entry) error {
	x.last++
	if e.Step == StepBegin {
		again := x.mac != nil && (e.Target == x.target || !x.untouched())
		if again || e.Version != version || len(e.Key) == 0 {
			return fmt.Errorf("bulk: the journal is of a form that this version does not know (%d)", e.Version)
		}
		x.setKey(e.Key)
		x.target = e.Target
		clear(x.states)
		clear(x.counts[:])
		return nil
	}
	n := slices.Index(steps[:], e.Step)
	if n < 1 || x.mac == nil || e.SampleID == "" {
		return errors.New("bulk: the journal holds a step that this version does not know")
	}
	key := x.key(e.SampleID)
	s := x.states[key]
	if s.step == applied && n != int(applied) {
		return nil // what is applied stays so: a line that says something else is not where it was written
	}
	if s.flags&seen == 0 && (uint8(n) == intent || uint8(n) == applied && e.Digest != "") {
		if n, err := hex.Decode(s.digest[:], []byte(e.Digest[:min(len(e.Digest), 2*len(s.digest))])); err != nil || n != len(s.digest) {
			return errors.New("bulk: the journal holds a digest that cannot be read")
		}
		if s.unresolved() {
			s.flags |= doubted
		}
	}
	switch uint8(n) {
	case unknown, disputed, absent:
		s.flags |= doubted
	}
	s.step, s.entry = uint8(n), x.last
	x.set(key, s)
	return nil
}
