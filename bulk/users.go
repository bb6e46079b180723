// Users: finds or creates the users of records, once each.

package bulk

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

// Users finds the service's IDs of users by their client user IDs, and creates users that do not
// exist: see [CSVOptions.Users]. It finds each user once, however often and concurrently it is
// asked, and lists the users if that takes fewer requests. Printed or logged, it shows nothing.
type Users struct {
	labhealth.Redacted `json:"-"`

	lookup *userLookup
}

// NewUsers returns a Users for a run with opts. It uses client until ctx ends.
//
// With [Options.DryRun] it creates no users. Those that do not exist get IDs that [Run] accepts in
// a dry run only. If client is nil too, that is all of them. [Options.Concurrency] and
// [Options.Rate] limit its requests as they limit the imports. The other options have no effect.
func NewUsers(ctx context.Context, client *labhealth.Client, opts Options) *Users {
	return &Users{lookup: &userLookup{
		ctx: ctx, client: client, dryRun: opts.DryRun, concurrency: max(cmp.Or(opts.Concurrency, 4), 1), pacer: newPacer(&opts, 0), calls: map[string]*userCall{},
	}}
}

// ID returns the service's ID of the user with the client user ID of body, and creates the user if
// there is none: [labhealth.UsersService.GetOrCreate]. The other fields of body are used only to
// create a user. A user who was deleted counts as missing, so that the deletion cannot be undone
// after it. ID can be called concurrently.
//
// If the client user ID is empty, or the service finds it invalid (422), the error is a [Problem]
// or a *[RecordError], which makes the record invalid if a row function returns it. Any other error
// stops a run: a temporary failure, which is retried twice, or another rejection, such as that of a
// sandbox that has as many users as it may have. When its cause is removed, the run can be resumed.
func (u *Users) ID(body labhealth.CreateUserBody) (uuid.UUID, error) {
	switch {
	case u == nil || u.lookup == nil || u.lookup.client == nil && !u.lookup.dryRun:
		return uuid.Nil, errors.New("bulk: users cannot be found without a client: see NewUsers")
	case body.ClientUserID == "":
		return uuid.Nil, Problem{Path: "body.user_id", Reason: "is required: the client user ID is empty"}
	}
	call, isFirst := u.lookup.call(body.ClientUserID)
	if !isFirst {
		<-call.done
		return call.id, call.err
	}
	call.id, call.err = u.lookup.find(body)
	var recordErr *RecordError
	if call.err != nil && !errors.As(call.err, &recordErr) {
		u.lookup.forget(body.ClientUserID) // another call may succeed
	}
	close(call.done)
	return call.id, call.err
}

// userLookup is the state of a [Users]. It is a type of its own, so that Users can be copied.
type userLookup struct {
	ctx         context.Context
	client      *labhealth.Client
	dryRun      bool
	concurrency int
	pacer       *pacer

	mu    sync.Mutex // guards calls
	calls map[string]*userCall

	listMu   sync.Mutex // guards the following fields
	listed   map[string]uuid.UUID
	pages    int64 // of the whole list; 0 until the first page is read
	asked    int64 // users that were looked up one by one
	complete bool  // all pages were read
	noList   bool  // the list cannot be used
}

// userCall is a user who is being found or was found.
type userCall struct {
	done chan struct{}
	id   uuid.UUID
	err  error
}

// call returns the call for a client user ID, and whether the caller has to make it.
func (l *userLookup) call(clientUserID string) (_ *userCall, isFirst bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.calls[clientUserID]; c != nil {
		return c, false
	}
	c := &userCall{done: make(chan struct{})}
	l.calls[clientUserID] = c
	return c, true
}

func (l *userLookup) forget(clientUserID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, clientUserID)
}

// find finds or creates a user.
func (l *userLookup) find(body labhealth.CreateUserBody) (uuid.UUID, error) {
	if l.client == nil {
		return placeholderUser(body.ClientUserID), nil
	}
	id, isAbsent := l.fromList(body.ClientUserID)
	switch {
	case id != uuid.Nil:
		return id, nil
	case l.dryRun && isAbsent:
		return placeholderUser(body.ClientUserID), nil
	}
	return l.ask(body)
}

// ask finds or creates a user by requests.
func (l *userLookup) ask(body labhealth.CreateUserBody) (uuid.UUID, error) {
	for attempt := 1; ; attempt++ {
		user, err := l.request(body)
		isWord := isRejection(err) // of the service itself
		switch {
		case err == nil:
			return user.UserID, nil
		case l.dryRun && isWord && errors.Is(err, labhealth.ErrNotFound):
			return placeholderUser(body.ClientUserID), nil
		case l.ctx.Err() != nil:
			return uuid.Nil, context.Cause(l.ctx)
		case isWord && errors.Is(err, labhealth.ErrValidation):
			return uuid.Nil, &RecordError{Problems: []Problem{{Path: "body.user_id", Reason: "cannot be found: the service finds the client user ID invalid"}}}
		case attempt == 3 || labhealth.OutcomeOf(err) == labhealth.OutcomeRejected:
			return uuid.Nil, fmt.Errorf("bulk: a user could not be found or created: %w", err)
		}
		if err := sleep(l.ctx, time.Duration(attempt)*time.Second); err != nil {
			return uuid.Nil, err
		}
	}
}

func (l *userLookup) request(body labhealth.CreateUserBody) (*labhealth.User, error) {
	if err := l.pacer.wait(l.ctx); err != nil {
		return nil, err
	}
	if l.dryRun {
		return l.client.Users.Resolve(l.ctx, body.ClientUserID)
	}
	return l.client.Users.GetOrCreate(l.ctx, body)
}

// maxListedUsers limits the list, which is kept in memory.
const maxListedUsers = 100_000

// fromList returns the ID of a listed user, and whether the list shows that there is none. It reads
// the first page of the list at once, and the others when as many users were looked up one by one
// as there are pages: so it makes at most twice as many requests as the better of the two. Errors
// of the list are ignored, because it only saves requests.
func (l *userLookup) fromList(clientUserID string) (id uuid.UUID, isAbsent bool) {
	l.listMu.Lock()
	defer l.listMu.Unlock()
	if l.listed == nil {
		l.readFirstPage()
	}
	if !l.complete && !l.noList && l.asked >= l.pages {
		l.readAllPages()
	}
	id, known := l.listed[clientUserID]
	if id == uuid.Nil {
		l.asked++
	}
	return id, l.complete && !known
}

const usersPerPage = 500 // the maximum

func (l *userLookup) readFirstPage() {
	l.listed = map[string]uuid.UUID{}
	if l.pacer.wait(l.ctx) != nil {
		return
	}
	page, err := l.client.Users.List(l.ctx, labhealth.ListUsersParams{Limit: usersPerPage})
	if err != nil || page.Total > maxListedUsers {
		l.noList = true
		return
	}
	for i := range page.Users {
		l.add(&page.Users[i])
	}
	l.pages = page.Total/usersPerPage + 1
	l.complete = page.Total > 0 && int64(len(page.Users)) == page.Total
}

func (l *userLookup) readAllPages() {
	n := 0
	for user, err := range l.client.Users.All(l.ctx, labhealth.ListUsersParams{Limit: usersPerPage}) {
		if err != nil || len(l.listed) > maxListedUsers {
			l.noList = true
			return
		}
		l.add(user)
		if n++; n%usersPerPage == 0 && l.pacer.wait(l.ctx) != nil {
			return
		}
	}
	l.complete = true
}

// add adds a listed user. A client user ID that two users have, such as one of a deleted user, is
// left to the service.
func (l *userLookup) add(u *labhealth.User) {
	if id, ok := l.listed[u.ClientUserID]; ok && id != u.UserID {
		l.listed[u.ClientUserID] = uuid.Nil
		return
	}
	l.listed[u.ClientUserID] = u.UserID
}

// placeholderPrefix marks the IDs of users that a dry run would create. It is a UUID of version 8,
// which services do not use for users.
const placeholderPrefix = "dry-ru\x80n\x80"

// placeholderUser returns the ID that stands for a user in a dry run.
func placeholderUser(clientUserID string) (id uuid.UUID) {
	sum := sha256.Sum256([]byte(clientUserID))
	copy(id[copy(id[:], placeholderPrefix):], sum[:])
	return id
}

// checkUsers returns an error if the source has Users with other options than the run.
func (r *Record) checkUsers(dryRun bool) error {
	switch isPlaceholder := string(r.Body.UserID[:len(placeholderPrefix)]) == placeholderPrefix; {
	case isPlaceholder && !dryRun:
		return errors.New("bulk: the source has users that do not exist: its Users has options with DryRun, and Run has not")
	case dryRun && r.header != nil && r.header.createsUsers:
		return errors.New("bulk: the source creates users: Run has options with DryRun, and its Users has not")
	}
	return nil
}

// creates reports whether users may be created.
func (u *Users) creates() bool { return u != nil && u.lookup != nil && !u.lookup.dryRun }

// userWindow yields the rows of a source in order, while the users of several rows are being found.
type userWindow struct {
	users *Users
	yield func(Record, error) bool
	items []*csvItem
	size  int
}

func newUserWindow(users *Users, yield func(Record, error) bool) *userWindow {
	w := &userWindow{users: users, yield: yield, size: 1}
	if users != nil && users.lookup != nil {
		w.size = users.lookup.concurrency
	}
	return w
}

// add adds a row, and yields those whose users have been found. It reports whether to continue.
func (w *userWindow) add(item csvItem) bool {
	if item.clientUserID != "" {
		item.done = make(chan struct{})
		go func() {
			defer close(item.done)
			item.find(w.users)
		}()
	}
	w.items = append(w.items, &item)
	for len(w.items) > 0 && (len(w.items) == w.size || w.items[0].isDone()) {
		if !w.yieldFirst() {
			return false
		}
	}
	return true
}

// flush yields the remaining rows.
func (w *userWindow) flush() {
	for len(w.items) > 0 && w.yieldFirst() {
	}
}

// yieldFirst yields the first row and reports whether to continue.
func (w *userWindow) yieldFirst() bool {
	first := w.items[0]
	if first.done != nil {
		<-first.done
	}
	w.items = w.items[1:]
	if first.err != nil {
		first.record = Record{}
	}
	return w.yield(first.record, first.err) && first.canContinue()
}

// wait waits for the users that are still being found.
func (w *userWindow) wait() {
	for _, item := range w.items {
		if item.done != nil {
			<-item.done
		}
	}
}

func (i *csvItem) isDone() bool {
	if i.done == nil {
		return true
	}
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// find finds the user of the row.
func (i *csvItem) find(users *Users) {
	id, err := users.ID(labhealth.CreateUserBody{ClientUserID: i.clientUserID})
	if err == nil {
		i.record.Body.UserID = id
		return
	}
	i.err = recordError(err, &i.record)
}
