package bulk

import (
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Journal is where [Run] writes what it is about to do and what became of it, so that another run can go on after this one was
// killed. [File] and [Memory] are two; a team that wants it in its database writes two methods. Only one run may use a
// journal at a time: whoever implements this has to see to that.
type Journal interface {
	// Append adds entries to the end, in their order. When it returns nil they must survive a crash of the machine. After an
	// error some of them may be there. Run never calls it from two goroutines at once.
	Append(entries []Entry) error
	// Entries returns all entries in the order in which they were added. It may be ranged over more than once.
	Entries() iter.Seq2[Entry, error]
}

// Entry is one step of a record. It holds no patient data beyond the sample id, and a digest that
// proves nothing to who does not know the whole record already: see [Entry.Digest]. Printed or
// logged, it shows the step and the number of the record; encoded as JSON, it is complete.
type Entry struct {
	Step     Step      `json:"step"`               // what it says
	At       time.Time `json:"at"`                 // when it was written down
	SampleID string    `json:"sample_id,omitzero"` // the record; empty for StepBegin
	Record   int64     `json:"record,omitzero"`    // its number in the source, from 1

	// Digest is the first 40 bits of an HMAC-SHA256 of the record, in hexadecimal, with StepIntent,
	// and with StepApplied if the journal did not have the record before its order was found: it
	// shows that a record was changed between two runs. Its key is random and made for each
	// journal, so that digests of two journals cannot be compared and no table of them can be made
	// beforehand. Who has the journal has the key too, and can confirm a guess of a whole record:
	// therefore the file can be read by its owner only, and is best deleted when the import is
	// over.
	Digest string `json:"digest,omitzero"`

	OrderID   uuid.UUID `json:"order_id,omitzero"`   // with StepApplied, if the service said it
	Status    int       `json:"status,omitzero"`     // HTTP status, with StepRefused, StepDisputed and StepPostponed; 0 if nothing was sent
	RequestID string    `json:"request_id,omitzero"` // the id under which the service knows the request, if it said it
	Fields    []Problem `json:"fields,omitzero"`     // what was wrong, with StepRefused and StepDisputed

	Version int    `json:"version,omitzero"` // of the journal's form, with StepBegin
	Key     []byte `json:"key,omitzero"`     // of the digests, with StepBegin
	Target  string `json:"target,omitzero"`  // Options.Target, with StepBegin
}

// Step is what an entry says.
type Step string

// The steps.
const (
	StepBegin     Step = "begin"     // the journal was made
	StepIntent    Step = "intent"    // the record is about to be sent
	StepApplied   Step = "applied"   // its order exists
	StepRefused   Step = "refused"   // the service, or the client before sending, refused it for good
	StepPostponed Step = "postponed" // it was not applied for a reason that passes
	StepUnknown   Step = "unknown"   // it was sent, and it is not known what became of it
	StepAbsent    Step = "absent"    // two complete lists do not show the order whose outcome was unknown
	StepDisputed  Step = "disputed"  // it was refused after an attempt of unknown outcome, so that a list has to tell why
)

// steps numbers the steps for the index; 0 is a record that the journal does not know.
var steps = [...]Step{"", StepIntent, StepApplied, StepRefused, StepPostponed, StepUnknown, StepAbsent, StepDisputed}

const (
	noStep uint8 = iota
	intent
	applied
	refused
	postponed
	unknown
	absent
	disputed
)

// version is that of the journal's form.
const version = 1

// Problem says what is wrong with a member of a record, without its value.
type Problem struct {
	Path   string `json:"path"`   // such as "body.patient_details.email"; empty for the record as a whole
	Reason string `json:"reason"` // a code such as "missing" or a fixed phrase
}

// Memory is a journal that ends with the process, for tests and for imports that are small enough to look at. Its zero value is
// empty.
type Memory struct {
	mu      sync.Mutex
	entries func() []Entry // a function, because fmt would print anything else
}

// Append implements [Journal].
func (m *Memory) Append(entries []Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := append(m.all(), entries...)
	m.entries = func() []Entry { return all }
	return nil
}

// Entries implements [Journal].
func (m *Memory) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		m.mu.Lock()
		entries := slices.Clip(m.all())
		m.mu.Unlock()
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// all returns what is there. The caller holds m.mu.
func (m *Memory) all() []Entry {
	if m.entries == nil {
		return nil
	}
	return m.entries()
}
