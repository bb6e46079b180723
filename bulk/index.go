// The state of every record, from the journal.

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
	"slices"
	"strings"
)

// index holds the state of all records.
type index struct {
	seed      maphash.Seed
	mac       hash.Hash
	sum       [sha256.Size]byte
	states    map[sampleKey]state
	counts    [categories]int64
	lastEntry uint32 // number of the last journal entry
	target    string

	boot       string // of this run
	lease      lease  // the last one of the journal
	damaged    bool   // the journal lacks entries of earlier runs, whose orders were not looked up yet
	reconciled bool   // such orders were looked up before
}

// sampleKey is a hash of a sample ID. Like digest it is an array of bytes, so that the index has no
// padding.
type sampleKey [8]byte

// state is the state of a record: 12 bytes, in addition to the 8 of its key. Two sample IDs with
// the same hash, which is practically impossible, would have different digests. They would be
// reported as two records with one ID, not lost.
type state struct {
	entry    uint32   // number of its last journal entry
	digest   digest   // in the source; until that is read, of the last one sent
	step     stepCode // of its last journal entry
	flags    flags
	attempts uint8 // in this run
}

type flags uint8

const (
	inSource   flags = 1 << iota // the source has it
	conflict                     // different records of the source have its sample ID
	invalid                      // it cannot be sent
	changed                      // it differs from what was sent under its sample ID before
	wasUnknown                   // an attempt has had an unknown outcome
	visited                      // this pass over the source has processed it
	listed                       // the current list of orders has it
)

func (s state) has(f flags) bool { return s.flags&f != 0 }

// isUnresolved reports whether the record may have been applied.
func (s state) isUnresolved() bool {
	return s.step == codeIntent || s.step == codeSending || s.step == codeUnknown || s.step == codeDisputed
}

// isOrphaned reports whether the record may have been applied and has no row in the source that
// could be sent again.
func (s state) isOrphaned() bool {
	return s.isUnresolved() && (!s.has(inSource) || s.has(conflict|invalid))
}

// isResendable reports whether the record may have been applied, and the source has what to send if
// it was not.
func (s state) isResendable() bool { return s.isUnresolved() && !s.isOrphaned() }

// category is the count of the report that includes a record.
type category uint8

const (
	categoryNone  category = iota // not in the source
	categoryStray                 // not in the source, with an unknown outcome
	categoryPending
	categoryApplied
	categoryRejected
	categoryInvalid
	categoryChanged
	categoryUnknown
	categoryDuplicate // equal to an earlier record
	categories
)

func (s state) category() category {
	switch {
	case !s.has(inSource) && s.isUnresolved():
		return categoryStray
	case !s.has(inSource):
		return categoryNone
	case s.step == codeApplied && s.has(changed):
		return categoryChanged
	case s.step == codeApplied:
		return categoryApplied
	case s.isUnresolved():
		return categoryUnknown
	case s.has(conflict | invalid):
		return categoryInvalid
	case s.step == codeRejected:
		return categoryRejected
	}
	return categoryPending
}

func newIndex() *index {
	return &index{seed: maphash.MakeSeed(), states: map[sampleKey]state{}}
}

func (x *index) key(sampleID string) (key sampleKey) {
	binary.LittleEndian.PutUint64(key[:], maphash.String(x.seed, fold(sampleID)))
	return key
}

// fold returns the form in which sample IDs are compared: a service may change their case or trim
// spaces.
func fold(sampleID string) string {
	return strings.ToLower(strings.ToUpper(strings.TrimSpace(sampleID)))
}

// set changes a state and updates the counts.
func (x *index) set(key sampleKey, s state) {
	x.counts[x.states[key].category()]--
	x.counts[s.category()]++
	x.states[key] = s
}

// nothingImported reports whether the journal shows that nothing was imported, so that the target
// may still change.
func (x *index) nothingImported() bool {
	for _, s := range x.states {
		if s.step != codePostponed {
			return false
		}
	}
	return true
}

func (x *index) setDigestKey(key []byte) { x.mac = hmac.New(sha256.New, key) }

// apply adds the next entry of the journal, of an earlier run or this one.
func (x *index) apply(e *Entry) error {
	if e.Step.isCounted() {
		x.lastEntry++
	}
	if isRecord, err := x.applyToJournal(e); !isRecord || err != nil {
		return err
	}
	i := slices.Index(steps[:], e.Step)
	if i < 1 || x.mac == nil || e.SampleID == "" {
		return errors.New("bulk: the journal contains a step that this version does not support")
	}
	code := stepCode(i)
	key := x.key(e.SampleID)
	s := x.states[key]
	if s.step == codeApplied && code != codeApplied {
		return nil // an applied record stays applied: the entry is not where it was written
	}
	if e.Step == StepSending {
		x.applySending(key, s)
		return nil
	}
	if e.Step == StepIntent {
		code = x.codeOfIntent()
	}
	if err := s.decodeDigest(e); err != nil {
		return err
	}
	if code.followsUnknown() {
		s.flags |= wasUnknown
	}
	s.step, s.entry = code, x.lastEntry
	x.set(key, s)
	return nil
}

// decodeDigest sets the digest, if an entry of an earlier run has one.
func (s *state) decodeDigest(e *Entry) error {
	if s.has(inSource) || e.Step != StepIntent && e.Digest == "" {
		return nil
	}
	if s.isUnresolved() {
		s.flags |= wasUnknown
	}
	return s.digest.decode(e.Digest)
}

// codeOfIntent returns the code of an intent without a mark: whether its record may have been sent.
func (x *index) codeOfIntent() stepCode {
	if x.lease.marks && x.lease.isOf(x.boot) {
		return codeIntent
	}
	return codeSending
}

// applySending applies a StepSending. The entry of the intent remains the last one.
func (x *index) applySending(key sampleKey, s state) {
	if s.step == codeNone {
		x.damaged = true // its intent is missing
		return
	}
	s.step = codeSending
	x.set(key, s)
}

// applyToJournal applies an entry that is about the whole journal, and reports whether it is one
// about a record instead.
func (x *index) applyToJournal(e *Entry) (isRecord bool, _ error) {
	if e.Step == StepBegin {
		return false, x.begin(e)
	}
	if e.Step == StepLease {
		x.lease = lease{e.Boot, e.Lease, e.Marks}
		return false, nil
	}
	if e.Step == StepIncomplete || e.Step == StepReconciled {
		x.damaged = e.Step == StepIncomplete
		x.reconciled = x.reconciled || !x.damaged
		return false, nil
	}
	return true, nil
}

// begin applies the first entry of a journal, or the one with which a run has corrected the target.
func (x *index) begin(e *Entry) error {
	repeated := x.mac != nil && (e.Target == x.target || !x.nothingImported())
	if repeated || e.Version != journalVersion || len(e.Key) == 0 {
		return fmt.Errorf("bulk: the journal has a format that this version does not support (%d)", e.Version)
	}
	x.setDigestKey(e.Key)
	x.target, x.reconciled = e.Target, false
	clear(x.states)
	clear(x.counts[:])
	return nil
}

// decode sets d from the hexadecimal form in the journal.
func (d *digest) decode(s string) error {
	if n, err := hex.Decode(d[:], []byte(s[:min(len(s), 2*len(d))])); err != nil || n != len(d) {
		return errors.New("bulk: the journal contains an invalid digest")
	}
	return nil
}
