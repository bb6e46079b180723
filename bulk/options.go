// Options and their defaults.

package bulk

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/labhealth/labhealth-go"
)

// Options configures [Run]. The zero value uses the defaults. Printed or logged, it shows nothing.
type Options struct {
	labhealth.Redacted `json:"-"` // Rejections may hold sample IDs

	Concurrency int     // number of concurrent imports; 4 if 0
	Rate        float64 // maximum number of requests per second; 0 for no limit

	// Target names the destination of the import, such as the base URL. The journal stores it, and
	// Run returns an error for a journal with another target: with a journal of the sandbox, a run
	// would skip records that production has never received. The target may change as long as the
	// journal shows that nothing was imported.
	Target string

	// DryRun checks the source, sends no order and writes nothing but the rejections: client and
	// journal may be nil. It finds invalid records and, as warnings, what the service or a lab is
	// known to reject. They may reject more.
	DryRun bool
	// RetryRejected resends records that earlier runs recorded as rejected, even if unchanged.
	RetryRejected bool

	// TrustJournal makes a resumed run send the remaining records without reading the list of
	// orders first. Set it only if the list is not available and the journal is known to be
	// complete: a journal that was truncated, damaged or restored from a copy does not show which
	// orders are missing from it, and they would be created again.
	TrustJournal bool

	// Reconcile makes a run look for all existing orders, for an import whose journal was lost. It
	// acts once for each journal. Before the run sends anything, it reads the list of orders. A
	// record whose user has an order with its sample ID is recorded as applied, and counted by
	// [Report.Found]. A record whose sample ID belongs to an order of another user is recorded as
	// rejected. If other records remain, the run waits for Settle and reads the list again before
	// it sends them: the run whose journal was lost may have sent them just now. Only a list that
	// shows the sample ID and user of each order is sufficient; otherwise the run sends nothing and
	// returns an error.
	Reconcile bool

	// RejectionLimit stops a run after this number of rejections with no import between them: 10 if
	// 0. It counts
	//
	//   - the first ones, if all have one status and no field errors, as with a wrong base URL or a
	//     team that may not import. An order, another status or field errors show that the service
	//     processes the records, and end this count. With fewer records than the limit, the run
	//     stops if all get a 404, unless Target is set and the journal has orders of an earlier
	//     run;
	//   - those that name one field with one type of error, as with a value that every record has.
	//
	// None of these records is recorded as rejected, and the corrected run sends them.
	//
	// A negative value disables the limit: every rejection is recorded. Use it if each record is
	// invalid by itself. If their orders may already exist, run again with the same journal
	// instead: Run finds them before it sends anything.
	RejectionLimit int

	// Timeout limits one import. It is 1 minute if 0, and cannot exceed the timeout of the client's
	// http.Client.
	Timeout time.Duration
	// Settle is the time within which an attempt with an unknown outcome may still create its
	// order. It is 2 minutes if 0 and must be longer than Timeout.
	Settle time.Duration
	// Outage stops the run if all requests fail for this time, or if the service asks for a longer
	// pause. It is 10 minutes if 0.
	Outage time.Duration

	// List filters the lists of orders in which Run looks up records with an unknown outcome. Use
	// only parameters that the deployment is known to honor, such as a StartDate well before the
	// import. Page is ignored. The zero value lists all orders.
	List labhealth.ListOrdersParams
	// ListByUser lists the orders of each user who has a record with an unknown outcome, instead of
	// all orders. This is faster for teams with many orders, and as safe if the deployment honors
	// user_id, which is not in the interface specification. For records of earlier runs it has an
	// effect only with TrustJournal: a restored journal may name a wrong user.
	ListByUser bool

	// Rejections and RejectionsCSV receive each record, of this run and earlier ones, whose order
	// does not exist or may not exist. Rejections gets a [Rejection] as a line of JSON.
	// RejectionsCSV gets a CSV file for people: a header, and a row per problem. Both are written
	// when Run returns, in the sequence of the source, which is read again; records that it no
	// longer has are last. They are complete if Run returns without an error. After an error they
	// lack the records that the run has not reached. Either may be nil.
	//
	// The columns of the CSV file are line, record, sample_id, outcome, reason, field, column,
	// status, request_id, other_line, other_record and message: the fields of a Rejection, and the
	// path and the column of a [Problem]. A cell that a spreadsheet could run as a formula has an
	// apostrophe before it.
	Rejections, RejectionsCSV io.Writer
	// KeepMessages adds the service's text to the rejections, up to 1,000 bytes of each. It may
	// quote the patient. The journal stores it, so that it is there after an interruption too;
	// rejections of runs without KeepMessages have no text.
	KeepMessages bool
	// OnError is called after each failed attempt, from several goroutines at once. It may be nil.
	// The error message does not contain the sample ID. The methods of a *[labhealth.APIError],
	// such as Message, can return patient data.
	OnError func(sampleID string, err error)
	// Progress is called twice a second. It may be nil.
	Progress func(Progress)

	// Logger is where Run writes a warning when requests fail: at once, and then ever less often.
	// It holds no patient data. nil means [slog.Default]; slog.New(slog.DiscardHandler) writes
	// nothing.
	Logger *slog.Logger

	// Now returns the time stored in journal entries, which affects nothing else. It is [time.Now]
	// if nil.
	Now func() time.Time
}

// withDefaults sets the defaults and checks the values.
func (o Options) withDefaults() (Options, error) {
	o.Concurrency = cmp.Or(o.Concurrency, 4)
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.Settle = cmp.Or(o.Settle, 2*time.Minute)
	o.Outage = cmp.Or(o.Outage, 10*time.Minute)
	o.RejectionLimit = cmp.Or(o.RejectionLimit, 10)
	if o.Now == nil {
		o.Now = time.Now
	}
	switch {
	case o.Concurrency < 0:
		return o, errors.New("bulk: Options.Concurrency must not be negative")
	case o.Reconcile && o.TrustJournal:
		return o, errors.New("bulk: Options.Reconcile reads the list of orders that Options.TrustJournal skips")
	case o.Rate < 0 || math.IsNaN(o.Rate):
		return o, errors.New("bulk: Options.Rate must not be negative")
	case o.Timeout < 0 || o.Settle < 0 || o.Outage < 0:
		return o, errors.New("bulk: Options.Timeout, Settle and Outage must not be negative")
	case o.Settle <= o.Timeout:
		return o, errors.New("bulk: Options.Settle must be longer than Options.Timeout: an attempt could still be in progress")
	}
	return o, nil
}
