// Reactions: what is queued for which change, and how it is stored.

package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/newest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// ReactionKind is the kind of a [Reaction].
type ReactionKind string

// The kinds of reactions.
const (
	ReactTransition ReactionKind = "transition" // an order reached a status
	ReactResults    ReactionKind = "results"    // the stored results of an order changed
	ReactSummary    ReactionKind = "summary"    // a summary was added or updated
	ReactSamples    ReactionKind = "samples"    // samples of a series were added or updated
)

var reactionKinds = []ReactionKind{ReactTransition, ReactResults, ReactSummary, ReactSamples}

// Reaction is a change in the store that a program reacts to. It names what has changed, and the
// program reads the current state from the store. Printed or logged, it shows the kind and the IDs.
type Reaction struct {
	// ID is the same in every call for this reaction, and in every database that stores the same
	// versions.
	ID     uuid.UUID
	Kind   ReactionKind // what has changed
	UserID uuid.UUID    // zero if no user of the order is known
	// Transition is the status that the order reached; zero unless Kind is ReactTransition.
	Transition Transition
	OrderID    uuid.UUID           // the order of ReactTransition and ReactResults
	Summary    webhooks.SummaryKey // zero unless Kind is ReactSummary
	Series     webhooks.Series     // zero unless Kind is ReactSamples
	From, To   time.Time           // the first and the last of the samples that changed; zero unless Kind is ReactSamples
	Attempt    int                 // 1 for the first
}

// reactionRow is a row of labhealth_reactions.
type reactionRow struct {
	due, queued int64
	id, user    uuid.UUID
	kind        ReactionKind
	order       uuid.NullUUID
	at          int64 // place among the reactions of the order
	attempts    int
	body        string
	row         string // where it is, while it is locked
}

func (r *reactionRow) orderKey() orderKey { return orderKey{r.user, r.order.UUID} }

func (r *reactionRow) place() place { return place{int64(Slot(r.user)), r.due} }

// reactionColumns are the columns of scanReaction, in a table r.
const reactionColumns = `CAST(r.{row} AS text), r.due, r.queued, r.id, r.kind, r.user_id, r.order_id, r.at, r.attempts, r.body`

// scanReactions reads the rows of a query of reactionColumns.
func (s *Store) scanReactions(ctx context.Context, q queryer, text string, params ...any) (all []reactionRow, err error) {
	err = s.query(ctx, q, func(rows *sql.Rows) error {
		r, err := scanReaction(rows)
		all = append(all, r)
		return err
	}, text, params...)
	return all, err
}

func scanReaction(rows *sql.Rows, more ...any) (r reactionRow, err error) {
	err = rows.Scan(append([]any{&r.row, &r.due, &r.queued, &r.id, &r.kind, &r.user, &r.order, &r.at, &r.attempts, &r.body}, more...)...)
	return r, err
}

// afterTransitions is the place of the reactions to results: those to the transitions of the order
// come first. Times have less.
const afterTransitions = math.MaxInt64

// reactionBody is the JSON of what the columns of a row do not have. Strings are escaped as in text
// columns.
type reactionBody struct {
	ID         string `json:"id,omitempty"` // of a transition or a summary
	Status     string `json:"status,omitempty"`
	Detail     string `json:"detail,omitempty"`
	Resource   string `json:"resource,omitempty"`
	Provider   string `json:"provider,omitempty"`
	SourceType string `json:"source_type,omitempty"`
	From       int64  `json:"from,omitempty"`
	To         int64  `json:"to,omitempty"`
}

func (b reactionBody) String() string {
	document, _ := json.Marshal(b) // strings and numbers always have a JSON
	return string(document)
}

// reaction returns the Reaction of a row. Fields that cannot be read are zero.
func (r *reactionRow) reaction() Reaction {
	var b reactionBody
	_ = json.Unmarshal([]byte(r.body), &b) // written by this package, or by a newer version of it
	reaction := Reaction{ID: r.id, Kind: r.kind, UserID: r.user, OrderID: r.order.UUID, Attempt: r.attempts + 1}
	switch r.kind {
	case ReactTransition:
		reaction.Transition = Transition{
			UserID: r.user, OrderID: r.order.UUID, ID: unescape(b.ID), At: timeOf(r.at),
			Status: labhealth.OrderStatus(unescape(b.Status)), Detail: labhealth.OrderStatusDetail(unescape(b.Detail)),
		}
	case ReactResults: // has no fields of its own
	case ReactSummary:
		id, _ := uuid.Parse(b.ID)
		reaction.Summary = webhooks.SummaryKey{UserID: r.user, Resource: unescape(b.Resource), ID: id}
	case ReactSamples:
		reaction.Series = webhooks.Series{
			UserID: r.user, Resource: unescape(b.Resource), Provider: unescape(b.Provider), SourceType: unescape(b.SourceType),
		}
		reaction.From, reaction.To = time.Unix(0, b.From).UTC(), time.Unix(0, b.To).UTC()
	}
	return reaction
}

// reactionSpace is the name space of the IDs of reactions. It never changes.
var reactionSpace = uuid.MustParse("6b5f1c1e-52f0-4f0e-9d0b-0d8f5a1c7e21")

// reactionID returns the ID of a reaction to a change of something of a user.
func reactionID(kind ReactionKind, user uuid.UUID, change ...[]byte) uuid.UUID {
	return uuid.NewHash(sha256.New(), reactionSpace, slices.Concat([]byte(kind), user[:], slices.Concat(change...)), 8)
}

// resultsKey returns the ID of the reaction to a version of the results of an order.
func resultsKey(of orderKey, revision int64, digest []byte) uuid.UUID {
	return reactionID(ReactResults, of.user, of.order[:], []byte(strconv.FormatInt(revision, 10)+" "), digest)
}

// selected returns the kinds of changes that are queued.
func (s *Store) selected() []ReactionKind {
	if fixed := s.fixed.Load(); fixed != nil {
		return *fixed
	}
	return s.Reactions
}

// fixReactions makes Reactions final. The goroutines of workers do not read the field afterwards,
// which the program may change.
func (s *Store) fixReactions() error {
	kinds := slices.Clone(s.Reactions)
	if !s.fixed.CompareAndSwap(nil, &kinds) && !slices.Equal(kinds, *s.fixed.Load()) {
		return errors.New("sqlstore: Store.Reactions was changed after a Worker, Reactor or Reconciler of the Store was started: set it before")
	}
	return nil
}

func (s *Store) reactsTo(kind ReactionKind) bool { return slices.Contains(s.selected(), kind) }

// checkReactions returns an error if Reactions has a kind that does not exist.
func (s *Store) checkReactions() error {
	for _, kind := range s.selected() {
		if !slices.Contains(reactionKinds, kind) {
			return fmt.Errorf("sqlstore: Store.Reactions has an unknown kind: %q are known", reactionKinds)
		}
	}
	return nil
}

// queue queues the reactions to a batch that was applied.
func (s *Store) queue(ctx context.Context, tx *sql.Tx, b *batch) error {
	b.queued = false
	if len(s.selected()) == 0 {
		return nil
	}
	var rows []reactionRow
	if s.reactsTo(ReactTransition) {
		rows = b.transitionReactions(rows, s.past.Load())
	}
	if s.reactsTo(ReactResults) {
		rows = b.resultsReactions(rows)
	}
	if s.reactsTo(ReactSummary) {
		rows = b.summaryReactions(rows)
	}
	if s.reactsTo(ReactSamples) {
		rows = b.samplesReactions(rows)
	}
	if len(rows) == 0 {
		return nil
	}
	b.queued = true
	return s.addReactions(ctx, tx, rows, s.now().UnixNano())
}

func (b *batch) resultsReactions(rows []reactionRow) []reactionRow {
	for _, r := range b.results {
		rows = append(rows, reactionRow{
			id:   resultsKey(r.orderKey, r.revision, r.digest),
			kind: ReactResults, user: r.user, order: uuid.NullUUID{UUID: r.order, Valid: true}, at: afterTransitions, body: reactionBody{}.String(),
		})
	}
	return rows
}

// transitionReactions adds the reactions to new transitions after a time.
func (b *batch) transitionReactions(rows []reactionRow, past int64) []reactionRow {
	for _, t := range b.transitions {
		if !t.At.IsZero() && newest.ClampUnixNano(t.At) <= past {
			continue
		}
		row := reactionRow{
			id: reactionID(ReactTransition, t.UserID, t.OrderID[:], []byte(t.ID)), kind: ReactTransition, user: t.UserID,
			order: uuid.NullUUID{UUID: t.OrderID, Valid: true},
			body:  reactionBody{ID: escape(t.ID), Status: escape(string(t.Status)), Detail: escape(string(t.Detail))}.String(),
		}
		if !t.At.IsZero() {
			row.at = min(newest.ClampUnixNano(t.At), afterTransitions-1)
		}
		rows = append(rows, row)
	}
	return rows
}

func (b *batch) summaryReactions(rows []reactionRow) []reactionRow {
	for i := range b.summarySlots {
		slot := &b.summarySlots[i]
		if !slot.changed {
			continue
		}
		of := b.series[slot.series]
		rows = append(rows, reactionRow{
			id:   reactionID(ReactSummary, of.UserID, digest(of.Resource), slot.id[:], binary.AppendVarint(nil, slot.version), digest(slot.content)),
			kind: ReactSummary, user: of.UserID, body: reactionBody{ID: slot.id.String(), Resource: escape(of.Resource)}.String(),
		})
	}
	return rows
}

func (b *batch) samplesReactions(rows []reactionRow) []reactionRow {
	type change struct {
		from, to int64
		content  []byte // what identifies the change
	}
	changes := make([]change, len(b.series))
	for i := range b.sampleSlots {
		slot := &b.sampleSlots[i]
		if !slot.changed {
			continue
		}
		c := &changes[slot.series]
		if c.content == nil {
			c.from, c.to, c.content = slot.at, slot.at, seriesKey(b.series[slot.series])
		}
		c.from, c.to = min(c.from, slot.at), max(c.to, slot.at)
		c.content = binary.AppendVarint(binary.AppendVarint(c.content, slot.at), slot.version)
		c.content = append(c.content, slot.content.json(slot.at)...)
	}
	for i, c := range changes {
		if c.content == nil {
			continue
		}
		of := b.series[i]
		rows = append(rows, reactionRow{
			id: reactionID(ReactSamples, of.UserID, c.content), kind: ReactSamples, user: of.UserID,
			body: reactionBody{
				Resource: escape(of.Resource), Provider: escape(of.Provider), SourceType: escape(of.SourceType), From: c.from, To: c.to,
			}.String(),
		})
	}
	return rows
}
