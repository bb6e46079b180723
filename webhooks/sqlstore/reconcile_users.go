// Reads wearable data of all users, and everything since an outage.

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
)

// User reads all orders of a user with their results, and the user's wearable data from one
// time to another, as [webhooks.ReadAll] does. That the service does not have the user is no error:
// see MissingUsers of [Reconciled]. It also reads a user whom [Store.DeleteUser] has deleted, whose
// data is stored again from then on.
func (r *Reconciler) User(ctx context.Context, userID uuid.UUID, from, to time.Time) (Reconciled, error) {
	if err := r.check(ctx); err != nil {
		return Reconciled{}, err
	}
	p := &pass{Reconciler: r, name: "user"}
	if _, err := r.Store.change(ctx, "reconcile", `UPDATE labhealth_reconciled_users SET deleted = NULL WHERE slot = $1::smallint AND user_id = $2::uuid`, Slot(userID), userID.String()); err != nil {
		return Reconciled{Pass: p.name}, err
	}
	p.run = func(p *pass, ctx context.Context) (bool, error) {
		if p.at.Stage == 0 {
			orders, readAt, last, err := p.nextOrders(ctx, labhealth.ListOrdersParams{UserID: userID})
			if err != nil {
				return false, err
			}
			if last {
				p.at.Stage = 1
			}
			orders = slices.DeleteFunc(orders, func(o labhealth.Order) bool { return o.UserID != userID })
			return false, p.applyOrders(ctx, orders, readAt)
		}
		orders, err := p.withResults(ctx, []int64{int64(Slot(userID))}, `o.user_id`, userID)
		if err != nil {
			return false, err
		}
		_, err = p.each(ctx, len(orders), func(p *pass, ctx context.Context, i int) error { return p.readResults(ctx, orders[i]) })
		if err != nil {
			return false, err
		}
		p.ofUsers = true
		return true, p.readUser(ctx, userID, from, to)
	}
	return p.once(ctx)
}

// Since reads everything that has changed at the service since a time: orders, results, and the
// wearable data of all users, which it reads from seven days earlier. Call it after an outage with
// the time at which it began, by the service's clock. Results are read of orders that have changed,
// and of those that may have results of which no final ones are stored. The zero time compares all
// orders, their results, which takes a request for each order, and the wearable data of Days.
//
// It reads as fast as the Client allows, and may take place while Run runs. After an error or a
// crash, a call with the same time goes on where the last one was. The counts are those of one
// call. If Failed is not 0, some orders or users were not compared: call it again.
func (r *Reconciler) Since(ctx context.Context, since time.Time) (Reconciled, error) {
	if err := r.check(ctx); err != nil {
		return Reconciled{}, err
	}
	since = since.UTC().Round(0)
	p := &pass{Reconciler: r, name: "since", stored: true, run: (*pass).readSince, loaded: true}
	if err := p.load(ctx); err != nil {
		return Reconciled{Pass: p.name}, err
	}
	if !p.at.Finished.IsZero() || !p.at.Outage.Equal(since) {
		p.at = progress{Outage: since}
	}
	if p.at.Started.IsZero() {
		p.at.Started = time.Now()
	}
	return p.once(ctx)
}

// readSince runs the next part of Since.
func (p *pass) readSince(ctx context.Context) (complete bool, err error) {
	const orders, results, users = 0, 1, 2
	switch p.at.Stage {
	case orders:
		if p.at.Outage.IsZero() {
			complete, err = p.walkOrders(ctx)
		} else {
			p.at.Since = p.at.Outage.Add(-overlap)
			complete, err = p.readChanged(ctx)
		}
		if complete && err == nil { // results can change without the order
			p.at.Stage = results
			which := `o.results_at IS NOT NULL AND NOT ` + hasFinalResults
			if p.at.Outage.IsZero() {
				which = hasOrMayHaveResults
			}
			err = p.Store.inSlots(ctx, "reconcile", func(slot int64) error {
				_, err := p.Store.change(ctx, "reconcile", `UPDATE labhealth_orders AS o SET results_at = $2::bigint
					WHERE o.slot = $1::smallint AND (o.results_at IS NULL OR o.results_at > $2::bigint) AND `+which, slot, time.Now().UnixNano())
				return err
			}, `labhealth_orders | o.slot = k.slot`)
		}
		return false, err
	case results:
		if complete, err = p.readDueResults(ctx); complete && err == nil {
			p.at.Stage = users
		}
		return complete && p.OrdersOnly, err
	}
	return p.walkUsers(ctx)
}

// walkUsers reads a page of the list of users or, after the last one, the data of one user, or of
// several if there is no rate.
func (p *pass) walkUsers(ctx context.Context) (complete bool, err error) {
	p.ofUsers = true
	if p.at.Offset >= 0 {
		return false, p.listUsers(ctx)
	}
	n := 1
	if p.rate == nil {
		n = 10 * orDefault(p.Parallel, 4)
	}
	users, err := p.nextUsers(ctx, n)
	if err != nil || len(users) == 0 {
		return true, err
	}
	failed, err := p.each(ctx, len(users), func(p *pass, ctx context.Context, i int) error { return p.walkUser(ctx, users[i]) })
	p.at.Failed += len(failed)
	p.at.After = users[len(users)-1].id
	return false, err
}

// comparedUser is a user that was compared before, or is to be.
type comparedUser struct {
	id      uuid.UUID
	at      int64 // when; 0 for never
	missing sql.NullInt64
}

// nextUsers returns the next users that have not been compared since the pass was started.
func (p *pass) nextUsers(ctx context.Context, n int) (users []comparedUser, err error) {
	after := -1 // the slot of the last one
	if p.at.After != uuid.Nil {
		after = Slot(p.at.After)
	}
	err = p.Store.query(ctx, p.Store.db, func(rows *sql.Rows) error {
		var u comparedUser
		err := rows.Scan(&u.id, &u.at, &u.missing)
		users = append(users, u)
		return err
	}, `SELECT u.user_id, u.at, u.missing FROM labhealth_reconciled_users AS u WHERE (u.slot, u.user_id) > ($1::smallint, $2::uuid)
		AND (u.at < $3::bigint OR u.at > $4::bigint) AND u.deleted IS NULL ORDER BY u.slot, u.user_id LIMIT $5::integer`,
		after, p.at.After.String(), p.at.Started.UnixNano(), time.Now().UnixNano(), n)
	return users, p.Store.failed(ctx, "reconcile", err)
}

// listUsers adds a page of the list of users to those that are compared. After the last one, it
// adds stored users that were not listed, and sets the offset to -1.
func (p *pass) listUsers(ctx context.Context) error {
	page, err := p.Client.Users.List(ctx, labhealth.ListUsersParams{Offset: p.at.Offset, Limit: orDefault(p.at.Size, usersPage)})
	if err != nil {
		return p.passUsers(ctx, err)
	}
	if page.Offset != int64(p.at.Offset) {
		return errors.New("sqlstore: the service returns another page of users than the requested one")
	}
	isRepeated, err := p.addUsers(ctx, page.Users)
	if err != nil {
		return err
	}
	p.at.Offset += len(page.Users)
	p.at.Passed = 0
	if p.at.Small--; p.at.Small <= 0 {
		p.at.Size = 0
	}
	more := len(page.Users) > 0 && (page.Total <= 0 || int64(p.at.Offset) < page.Total)
	switch {
	case more && isRepeated && page.Total > 0: // the offset is ignored
		p.at.Failed++
		p.found.Failed++
	case more && !isRepeated && !p.isEndless():
		return nil
	}
	return p.listStoredUsers(ctx)
}

// addUsers adds the users of a page to those that are compared. It reports whether all of them were
// on the page before.
func (p *pass) addUsers(ctx context.Context, users []labhealth.User) (isRepeated bool, err error) {
	ids, known := []uuid.UUID{}, map[uuid.UUID]bool{}
	isRepeated = len(users) > 0
	for i := range users {
		id := users[i].UserID
		isRepeated = isRepeated && p.previous[id]
		known[id] = true
		if id != uuid.Nil && p.owns(id) {
			ids = append(ids, id)
		}
	}
	p.previous = known
	return isRepeated, p.Store.addCompared(ctx, ids)
}

// addCompared adds users to those that are compared.
func (s *Store) addCompared(ctx context.Context, ids []uuid.UUID) error {
	bySlot := map[int64][]uuid.UUID{anySlot: ids}
	if s.OneSlot {
		clear(bySlot)
		for _, id := range ids {
			bySlot[int64(Slot(id))] = append(bySlot[int64(Slot(id))], id)
		}
	}
	for _, ids := range bySlot {
		_, err := s.change(ctx, "reconcile", `INSERT INTO labhealth_reconciled_users (slot, user_id, at) SELECT {slot}, k.user_id, 0
			FROM {k: slot smallint, user_id uuid} WHERE {here} ON CONFLICT (slot, user_id) DO NOTHING`,
			rowList{len(ids), func(i int) []any { return []any{Slot(ids[i]), ids[i]} }})
		if err != nil {
			return err
		}
	}
	return nil
}

// listStoredUsers ends the list of users with stored ones.
func (p *pass) listStoredUsers(ctx context.Context) error {
	p.at.Offset = -1
	for _, table := range []string{"labhealth_series", "labhealth_orders"} {
		err := p.Store.inSlots(ctx, "reconcile", func(slot int64) error {
			_, err := p.Store.change(ctx, "reconcile", `INSERT INTO labhealth_reconciled_users (slot, user_id, at) SELECT DISTINCT o.slot, o.user_id, 0
				FROM `+table+` AS o WHERE o.slot = $1::smallint AND o.user_id <> $2::uuid ON CONFLICT (slot, user_id) DO NOTHING`, slot, uuid.Nil.String())
			return err
		}, table+` | o.slot = k.slot`)
		if err != nil {
			return err
		}
	}
	return nil
}

// usersPage is the number of users of a page.
const usersPage = 500

// passUsers moves the position when a page of users cannot be read although the service responds to
// other requests: to a page of a tenth of the size or, if it has one user, past that user, and past
// more behind several such users. What is passed counts as failed. If no end is found, the list
// ends.
func (p *pass) passUsers(ctx context.Context, err error) error {
	const most = 40
	if verdictOf(ctx, err) != unclear || !p.responds(ctx) {
		return err
	}
	at := &p.at
	if size := orDefault(at.Size, usersPage); size > 1 {
		at.Size, at.Small = max(1, size/10), 10
		return nil
	}
	at.Offset += 1 << min(max(0, at.Passed-maxPassed), 20)
	at.Passed++
	at.Failed++
	p.found.Failed++
	if at.Passed == most {
		return p.listStoredUsers(ctx)
	}
	return nil
}

// walkUser reads the wearable data of a user.
func (p *pass) walkUser(ctx context.Context, u comparedUser) error {
	if u.missing.Valid {
		if !p.at.First.IsZero() { // a repetition
			return nil
		}
		if _, err := p.Client.Users.Get(ctx, u.id); isMissing(err) {
			return nil
		} else if err != nil {
			return err
		}
	}
	from := p.at.Started.AddDate(0, 0, -orDefault(p.Days, 30))
	if !p.at.Outage.IsZero() {
		from = p.at.Outage.AddDate(0, 0, -overlapDays)
	} else if u.at > 0 && u.at <= time.Now().UnixNano() && p.name == "users" {
		from = time.Unix(0, u.at).AddDate(0, 0, -overlapDays)
	}
	return p.readUser(ctx, u.id, from, time.Time{})
}

// compared stores when a user was compared, and that the service has the user. The walks have
// stored the user before: without a row, the user was deleted meanwhile.
func (p *pass) compared(ctx context.Context, id uuid.UUID, at time.Time) error {
	if p.name == "user" {
		if err := p.Store.addCompared(ctx, []uuid.UUID{id}); err != nil {
			return err
		}
	}
	_, err := p.Store.change(ctx, "reconcile", `UPDATE labhealth_reconciled_users SET at = $3::bigint, missing = NULL WHERE slot = $1::smallint AND user_id = $2::uuid`,
		Slot(id), id.String(), at.UnixNano())
	return err
}

// readUser reads wearable data of a user, and applies it in parts. If a few lists cannot be read,
// it returns the error after it has read the others.
func (p *pass) readUser(ctx context.Context, id uuid.UUID, from, to time.Time) error {
	const partEvents, partSamples, fewLists = 100, 5000, 10
	started := time.Now()
	var part []*webhooks.Event
	var failure error
	samples, failures := 0, 0
	apply := func() error {
		err := p.apply(ctx, part)
		part, samples = part[:0], 0
		return err
	}
	for event, err := range webhooks.ReadAll(ctx, p.Client, id, webhooks.ReadAllParams{StartDate: from, EndDate: to}) {
		if isMissing(err) {
			return p.findMissing(ctx, id, started, err)
		}
		if err != nil {
			failure = cmp.Or(failure, err)
			if failures++; failures == fewLists || !p.failsAlone(ctx, err) {
				break
			}
			continue
		}
		part = append(part, event)
		if s, ok := event.Data.(*webhooks.Samples); ok {
			samples += len(s.Data)
		}
		if len(part) < partEvents && samples < partSamples {
			continue
		}
		if err := apply(); err != nil {
			return err
		}
	}
	if err := cmp.Or(apply(), failure); err != nil {
		return err
	}
	return p.compared(ctx, id, started)
}

// findMissing finds out whether the service has a user whose data was not found.
func (p *pass) findMissing(ctx context.Context, id uuid.UUID, at time.Time, cause error) error {
	_, err := p.Client.Users.Get(ctx, id)
	switch {
	case err == nil:
		return cause
	case !isMissing(err):
		return err
	}
	if p.name == "user" {
		if err := p.Store.addCompared(ctx, []uuid.UUID{id}); err != nil {
			return err
		}
	}
	changed, err := p.Store.change(ctx, "reconcile", `UPDATE labhealth_reconciled_users SET at = $3::bigint, missing = $3::bigint
		WHERE slot = $1::smallint AND user_id = $2::uuid AND missing IS NULL AND deleted IS NULL`, Slot(id), id.String(), at.UnixNano())
	if changed > 0 {
		p.found.MissingUsers++
		p.found.MissingUserIDs = appendMissing(p.found.MissingUserIDs, id)
	}
	return err
}
