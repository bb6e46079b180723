package inspect

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
)

const (
	maxBody   = 10 << 20 // bytes of a body
	maxMemory = 64 << 20 // bytes of all bodies that are in flight; while they are read, they take up to twice as much

	// A stranger who finds the address of a tunnel must not fill the disk.
	maxRejected      = 1000     // rejected deliveries that are stored; the oldest are deleted
	maxRejectedBytes = 64 << 20 // of their bodies
	maxRejectedBody  = 1 << 20  // larger bodies of rejected deliveries are not kept
	maxHeader        = 16 << 10 // bytes of the headers that are stored
)

// arrival is a delivery that is being received.
type arrival struct {
	header   http.Header
	body     []byte
	tooLarge bool
	at       time.Time // by the clock of the inspector
	start    time.Time
	replayOf int64
}

// instanceHeader marks what inspectors forward, so that they detect a loop. It has a value of each.
const instanceHeader = "Labhealth-Inspector"

// maxInstances is the number of inspectors that forward to each other in a row.
const maxInstances = 8

// ServeHTTP receives a delivery, verifies and stores it, forwards it, and responds with the status
// code of the application: the sender repeats what the application did not acknowledge. These are
// its own responses:
//
//	204  stored; there is no application
//	401  failed verification
//	403  not accepted: see Config.Admit
//	405  not a POST
//	413  more than 10 MiB
//	502  the application could not be reached or did not respond within 15 s
//	503  could not be stored, or too much is in flight
//	508  came from the inspector itself: the URL of the application is that of the inspector, or
//	     leads to it through others
func (i *Inspector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := arrival{at: i.config.Now(), start: time.Now()}
	if !i.enter() {
		http.Error(w, "the inspector is closed", http.StatusServiceUnavailable)
		return
	}
	defer i.requests.Done()
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "this is the receiver of webhooks: post them here", http.StatusMethodNotAllowed)
		return
	case slices.Contains(r.Header[instanceHeader], i.instance), len(r.Header[instanceHeader]) > maxInstances:
		w.Header().Set(instanceHeader, i.instance)
		w.WriteHeader(http.StatusLoopDetected)
		return
	}
	if err := i.config.Admit(r); err != nil {
		i.problems.note("accept deliveries", err)
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	received := reservation{from: http.MaxBytesReader(w, r.Body, maxBody), used: &i.memory}
	defer received.free()
	body, err := io.ReadAll(&received)
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil, errors.As(err, &tooLarge): // which is stored as rejected
		i.problems.note("receive deliveries", nil)
	case errors.Is(err, errBusy):
		i.problems.note("receive deliveries", err)
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	default:
		i.problems.note("receive deliveries", errors.New("a body is incomplete, or took too long"))
		http.Error(w, "the body is incomplete", http.StatusBadRequest)
		return
	}
	a.header, a.body, a.tooLarge = r.Header, body, tooLarge != nil
	// What arrived is processed even if the sender disconnects.
	_, status, err := i.receive(context.WithoutCancel(r.Context()), a)
	if err != nil {
		http.Error(w, "the delivery could not be stored", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(status)
}

// receive stores a delivery, applies and forwards it, and returns its number and the status code of
// the response. It returns an error if the delivery could not be stored; it is not forwarded then.
func (i *Inspector) receive(ctx context.Context, a arrival) (number int64, status int, err error) {
	d := i.examine(a)
	target := i.Forward()
	forwards := d.Verdict != Rejected && target != ""
	switch {
	case forwards: // not yet known
	case a.tooLarge:
		d.StatusCode = http.StatusRequestEntityTooLarge
	case d.Verdict == Rejected:
		d.StatusCode = http.StatusUnauthorized
	default:
		d.StatusCode = http.StatusNoContent
	}
	d.Took = time.Since(a.start)
	err = i.insert(&d)
	if i.warn(ctx, "store deliveries", err); err != nil {
		return 0, 0, i.explain(err)
	}
	wake(i.watchers.woken)
	if d.pending {
		i.warn(ctx, "pass a delivery to the store yet", i.feed(ctx, d.Number, d.ReceivedAt, a.body))
	}
	if forwards {
		forward := i.forward(ctx, target, a.header, a.body)
		d.StatusCode = forward.StatusCode
		i.warn(ctx, "forward deliveries to "+forward.URL, forward.failure())
		if d.StatusCode == 0 {
			d.StatusCode = http.StatusBadGateway
			if forward.Err == errLoop.Error() {
				d.StatusCode = http.StatusLoopDetected
			}
		}
		d.Took = time.Since(a.start)
		i.warn(ctx, "store the response of the application", i.finish(d.Number, forward, d.StatusCode, d.Took))
		wake(i.watchers.woken)
	}
	return d.Number, d.StatusCode, nil
}

// record is a delivery with what only the tables have.
type record struct {
	Delivery
	subject string // what it is about: see Previous
	pending bool   // is for the store
}

// examine verifies and describes a delivery.
func (i *Inspector) examine(a arrival) record {
	d := record{Delivery: Delivery{
		ID: webhooks.DeliveryID(a.header), ReceivedAt: a.at, Size: len(a.body), ReplayOf: a.replayOf, Header: storedHeader(a.header), Body: a.body,
	}}
	verifier := i.verifier.Load()
	switch {
	case a.tooLarge:
		d.Verdict, d.Reason, d.Body = Rejected, fmt.Sprintf("the body has more than %d MiB", maxBody>>20), nil
		d.Checks = []Check{{false, d.Reason}}
		return d
	case verifier == webhooks.Unsigned:
		d.Verdict, d.Checks = Unsigned, []Check{{true, "no signing secret is set: the signature was not verified"}}
	default:
		d.Verdict, d.Checks, d.Reason = verify(verifier, a)
	}
	d.describe(a.body)
	if d.Verdict == Rejected && len(a.body) > maxRejectedBody {
		d.Body = nil
	}
	return d
}

// verify checks the headers, the time and the signature, each on its own, so that the checks say
// all that is wrong.
func verify(v *webhooks.Verifier, a arrival) (Verdict, []Check, string) {
	err := v.VerifyAt(a.body, a.header, a.at)
	if errors.Is(err, webhooks.ErrHeaders) {
		text := missingHeaders(a.header)
		return Rejected, []Check{{false, text}}, text
	}
	checks := []Check{{true, "all signature headers are there"}}
	sent := timestampOf(a.header)
	age := a.at.Sub(sent)
	inTime := Check{!errors.Is(err, webhooks.ErrTimestamp), fmt.Sprintf("the timestamp is %s", difference(age))}
	if !inTime.Passed {
		inTime.Text += ", more than the tolerance of 5 min: is a clock wrong, or was the delivery replayed without a new signature?"
	}
	signature := Check{v.VerifyAt(a.body, a.header, sent) == nil, "a signature matches the body and the secret"}
	if !signature.Passed {
		signature.Text = "no signature matches: the secret is not that of this endpoint, or a proxy changed the body"
	}
	checks = append(checks, inTime, signature)
	switch {
	case err == nil:
		return Verified, checks, ""
	case !signature.Passed:
		return Rejected, checks, signature.Text
	}
	return Rejected, checks, inTime.Text
}

// difference describes how old a delivery is.
func difference(age time.Duration) string {
	switch age = age.Round(time.Second); {
	case age < 0:
		return lengthText(-age) + " ahead"
	case age > 0:
		return lengthText(age) + " old"
	}
	return "current"
}

// lengthText formats a time as 12 s, 11 min or 26 h.
func lengthText(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	}
	return strconv.Itoa(int(d.Hours())) + " h"
}

// signatureNames are the prefixes of the signature headers, in the order in which they are used.
var (
	signatureNames = []string{"Webhook-", "Svix-"}
	signatureParts = []string{"Id", "Timestamp", "Signature"}
)

func timestampOf(h http.Header) time.Time {
	for _, name := range signatureNames {
		if h.Get(name+"Id") != "" && h.Get(name+"Timestamp") != "" && h.Get(name+"Signature") != "" {
			seconds, _ := strconv.ParseInt(h.Get(name+"Timestamp"), 10, 64)
			return time.Unix(seconds, 0)
		}
	}
	return time.Time{}
}

// missingHeaders says what is wrong with the signature headers.
func missingHeaders(h http.Header) string {
	for _, prefix := range signatureNames {
		if len(h[prefix+"Id"])+len(h[prefix+"Timestamp"])+len(h[prefix+"Signature"]) == 0 {
			continue
		}
		for _, part := range signatureParts {
			switch n := len(h[prefix+part]); {
			case n == 0:
				return "the header " + strings.ToLower(prefix+part) + " is missing"
			case n > 1 && part != "Signature":
				return "the header " + strings.ToLower(prefix+part) + " occurs more than once"
			}
		}
		return "the ID or the timestamp in the signature headers is malformed"
	}
	return "there are no signature headers (svix-id, svix-timestamp, svix-signature): the sender does not sign, or a proxy removes them"
}

// insert stores a delivery and sets its number, and what depends on earlier deliveries.
func (i *Inspector) insert(d *record) error {
	header, err := json.Marshal(d.Header)
	if err != nil {
		return err
	}
	return i.writer.write(func(ctx context.Context, tx *sql.Tx) error {
		if err := d.relate(ctx, tx); err != nil {
			return err
		}
		rev, err := nextRev(ctx, tx)
		if err != nil {
			return err
		}
		if err := d.insert(ctx, tx, rev, header); err != nil {
			return err
		}
		if d.Verdict == Rejected {
			return limitRejected(ctx, tx)
		}
		return nil
	})
}

// relate finds earlier deliveries with the same ID. Those that were rejected do not count: anyone
// can send them.
func (d *record) relate(ctx context.Context, tx *sql.Tx) error {
	d.Attempt, d.DuplicateOf = 1, 0
	if d.ID != "" {
		var first, attempts sql.Null[int64]
		err := tx.QueryRowContext(ctx, `SELECT min(number), max(attempt) FROM deliveries INDEXED BY deliveries_id
			WHERE id = ? AND id <> '' AND verdict <> 'rejected'`, d.ID).Scan(&first, &attempts)
		if err != nil {
			return err
		}
		d.Attempt = int(attempts.V) + 1
		if d.Verdict != Rejected {
			d.DuplicateOf = first.V
		}
	}
	d.pending = d.Verdict != Rejected && d.DuplicateOf == 0 && d.Reason == ""
	d.Applied = d.DuplicateOf != 0
	return nil
}

func (d *record) insert(ctx context.Context, tx *sql.Tx, rev int64, header []byte) error {
	checks, err := json.Marshal(d.Checks)
	if err != nil {
		return err
	}
	state := notForStore
	switch {
	case d.pending:
		state = waiting
	case d.Verdict != Rejected && d.Reason != "":
		state = unreadable
	}
	result, err := tx.ExecContext(ctx, `INSERT INTO deliveries (rev, id, received_at, attempt, size, type, user_id, client_user_id, order_id, about,
		subject, verdict, reason, checks, malformed, unknown, duplicate_of, replay_of, state, status_code, took)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		rev, d.ID, d.ReceivedAt.UnixNano(), d.Attempt, d.Size, d.Type, idText(d.UserID), d.ClientUserID, idText(d.OrderID), d.About,
		d.subject, string(d.Verdict), d.Reason, string(checks), d.Malformed, d.Unknown, d.DuplicateOf, d.ReplayOf, state, d.StatusCode, int64(d.Took))
	if err != nil {
		return err
	}
	if d.Number, err = result.LastInsertId(); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO delivery_bodies (number, header, body) VALUES (?, ?, ?)`, d.Number, string(header), d.Body); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO delivery_search (rowid, type, user, orders, id, words) VALUES (?, ?, ?, ?, ?, ?)`, d.searchRow()...)
	return err
}

// finish stores the result of forwarding.
func (i *Inspector) finish(number int64, f *Forward, statusCode int, took time.Duration) error {
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	failed := f.StatusCode < 200 || f.StatusCode > 299
	return i.writer.write(func(ctx context.Context, tx *sql.Tx) error {
		rev, err := nextRev(ctx, tx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE deliveries SET rev = ?, forward = ?, status_code = ?, took = ?, failed = max(failed, ?) WHERE number = ?`,
			rev, string(b), statusCode, int64(took), failed, number)
		return err
	})
}

// transport is a connection to an inspector in the same process.
type transport struct{ i *Inspector }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	defer r.Body.Close()
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	t.i.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: http.NoBody, Request: r,
	}, nil
}

// recorder keeps the status code of a response.
type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(b []byte) (int, error) { return len(b), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }
