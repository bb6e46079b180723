// Journal, and its entries and steps.

package bulk

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// Journal stores the intent and the outcome of each import of [Run], so that another run can resume
// the import after an interruption. [File] and [Memory] implement it; a team that prefers its own
// database implements two methods. Only one run may use a journal at a time, which the
// implementation must enforce.
type Journal interface {
	// Append adds entries to the end, in order. After it returns nil they must survive a crash of
	// the machine. After an error the journal may contain some of them. Run never calls Append
	// concurrently.
	Append(entries []Entry) error
	// Entries returns all entries in the order in which they were added. The sequence can be ranged
	// over more than once.
	Entries() iter.Seq2[Entry, error]
}

// Entry is one step of a record. Apart from the sample ID and a Message it holds no patient data,
// and its digest reveals nothing without the whole record: see [Entry.Digest]. Printed or logged,
// it shows the step and the number of the record; its JSON is not redacted.
type Entry struct {
	Step     Step      `json:"step"`               // what it records
	At       time.Time `json:"at"`                 // when the entry was written
	SampleID string    `json:"sample_id,omitzero"` // of the record; empty if it is about none
	Record   int64     `json:"record,omitzero"`    // its number in the source, from 1

	// Digest is the first 40 bits of an HMAC-SHA256 of the record, in hexadecimal. It is set for
	// StepIntent, and for StepApplied if the journal did not contain the record before its order
	// was found. It shows whether a record has changed between two runs.
	//
	// Each journal has its own random key, so that digests of two journals cannot be compared and
	// tables of them cannot be precomputed. Anyone with the journal also has the key and can
	// confirm a guess of a whole record. Therefore only the owner can read the file, and it is best
	// deleted after the import.
	Digest string `json:"digest,omitzero"`

	OrderID uuid.UUID `json:"order_id,omitzero"` // for StepApplied, if the service returned it
	// StatusCode is the HTTP status for StepRejected, StepDisputed and StepPostponed. It is 0 if
	// nothing was sent.
	StatusCode int       `json:"status,omitzero"`
	RequestID  string    `json:"request_id,omitzero"` // the service's ID of the request, if any
	Fields     []Problem `json:"fields,omitzero"`     // for StepRejected and StepDisputed
	// Message is the service's text for a rejection, if [Options.KeepMessages] is set. It may quote
	// the patient.
	Message string `json:"message,omitzero"`

	Version int    `json:"version,omitzero"` // format of the journal, for StepBegin
	Key     []byte `json:"key,omitzero"`     // key of the digests, for StepBegin
	Target  string `json:"target,omitzero"`  // Options.Target, for StepBegin

	// Boot identifies the boot of the system on which the run writes a StepLease. It is empty if it
	// is unknown.
	Boot  string        `json:"boot,omitzero"`
	Lease time.Duration `json:"lease,omitzero"` // for StepLease: when the lease ends, since the boot
	Marks bool          `json:"marks,omitzero"` // for StepLease: the run writes StepSending
}

// Step is the kind of an [Entry].
type Step string

// The steps.
const (
	StepBegin     Step = "begin"     // the journal was created
	StepIntent    Step = "intent"    // the record is about to be sent
	StepApplied   Step = "applied"   // its order exists
	StepRejected  Step = "rejected"  // rejected by the service, or by the client before sending
	StepPostponed Step = "postponed" // not applied, for a temporary reason
	StepUnknown   Step = "unknown"   // sent, with an unknown outcome
	StepAbsent    Step = "absent"    // previously unknown; two complete lists do not contain its order
	StepDisputed  Step = "disputed"  // rejected after an unknown outcome; the lists decide
	StepLease     Step = "lease"     // the run may send until the end of the lease
	// StepSending follows the intent of a record immediately before it is sent. It survives the end
	// of the process, but not a crash of the machine.
	StepSending Step = "sending"
	// StepIncomplete records that the journal lacks entries of earlier runs, and StepReconciled
	// that their orders were looked up when their attempts had settled.
	StepIncomplete Step = "incomplete"
	StepReconciled Step = "reconciled"
)

// isCounted reports whether the index numbers entries with this step.
func (s Step) isCounted() bool {
	return !slices.Contains([]Step{StepLease, StepSending, StepIncomplete, StepReconciled}, s)
}

// stepCode is a step in the index.
type stepCode uint8

const (
	codeNone stepCode = iota // the journal does not contain the record
	codeIntent
	codeApplied
	codeRejected
	codePostponed
	codeUnknown
	codeAbsent
	codeDisputed
	codeSending // an intent, and the record may have been sent; codeIntent if it was not
)

// followsUnknown reports whether the outcome of an attempt of the record was unknown.
func (c stepCode) followsUnknown() bool {
	return c == codeUnknown || c == codeDisputed || c == codeAbsent
}

// steps are the steps by their code.
var steps = [...]Step{
	codeNone: "", codeIntent: StepIntent, codeApplied: StepApplied, codeRejected: StepRejected,
	codePostponed: StepPostponed, codeUnknown: StepUnknown, codeAbsent: StepAbsent, codeDisputed: StepDisputed, codeSending: StepSending,
}

// journalVersion is the version of the journal format.
const journalVersion = 1

// Problem describes an invalid field of a record, without its value. As an error of
// [CSVOptions.Row] it makes the record invalid.
type Problem struct {
	Path   string `json:"path"`            // such as "body.patient_details.email"; empty for the whole record
	Reason string `json:"reason"`          // a code such as "missing", or a fixed phrase
	Column string `json:"column,omitzero"` // the name of the column in its CSV file; empty if there is none
}

// Error returns the path, or the column if there is no path, and the reason.
func (p Problem) Error() string { return strings.TrimSpace(cmp.Or(p.Path, p.Column) + " " + p.Reason) }

// Memory is a journal in memory, for tests and for imports that are small enough to check manually.
// The zero value is an empty journal.
type Memory struct {
	labhealth.Redacted `json:"-"` // entries hold sample IDs

	mu      sync.Mutex
	entries []Entry
}

// Append implements [Journal].
func (m *Memory) Append(entries []Entry) error {
	if m == nil {
		return errNoMemory
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = append(m.entries, entries...)
	return nil
}

// Entries implements [Journal].
func (m *Memory) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if m == nil {
			yield(Entry{}, errNoMemory)
			return
		}
		m.mu.Lock()
		entries := m.entries
		m.mu.Unlock()
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

var errNoMemory = errors.New("bulk: the journal is a nil *Memory: use new(bulk.Memory)")
