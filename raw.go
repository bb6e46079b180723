package labhealth

import (
	"encoding/json"
	"strings"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

//go:generate go run ./scripts/generate

// RawObject is embedded in every type that is read from the service. It remembers the bytes the value came as, so that nothing is
// lost: members this version does not know, and members whose value does not fit, are still there, and encoding the value to
// JSON writes them again, with the changes the program made on top. The zero RawObject belongs to a value that a program made itself.
type RawObject jsonread.Ref

var _ = jsonread.Embeds(func(k *RawObject) *jsonread.Ref { return (*jsonread.Ref)(k) })

// RawJSON returns a copy of the bytes the value came as, spaces and all. It is nil for a value that did not come from the
// service. It holds patient data wherever the value does.
func (k RawObject) RawJSON() json.RawMessage { return jsonread.Ref(k).Raw() }

// Malformed names the members, at any depth of the value, that came with a value that does not fit their type: a bad UUID or
// date, a string for a number. Such a member is left zero here and keeps its bytes in [RawObject.RawJSON]. Null is never malformed:
// it reads as absent. The list ends after 1,000 entries.
func (k RawObject) Malformed() []Malformed {
	var list []Malformed
	for _, p := range jsonread.Ref(k).Problems() {
		list = append(list, Malformed{Path: strings.Join(p.Path, "."), Want: p.Want})
	}
	return list
}

// Equal reports true: two values are the same if their members are, whatever bytes they came as. go-cmp calls it, so that
// cmp.Diff compares a decoded value with one a test wrote down. It compares nothing itself: do not call it.
func (RawObject) Equal(RawObject) bool { return true }

// Malformed is a member whose value did not fit. It never holds the value.
type Malformed struct {
	Path string // from the value that was asked, such as "events.1.created_at"
	Want string // what was expected: "uuid", "date", "date-time", "string", "integer", "number", "boolean", "array", "object"
}
