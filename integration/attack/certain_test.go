package attack

import (
	"net/http"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
)

type certainRow struct {
	name      string
	transport string
	conns     []connPlan
	want      labhealth.Outcome
	commits   int
}

// Faults that leave no doubt have a certain outcome, for every write. The connections are those of
// the call.
var certain = []certainRow{
	{"none", "", nil, labhealth.OutcomeApplied, 1},
	{"refused once", "", []connPlan{{Dial: dialRefused}}, labhealth.OutcomeApplied, 1},
	{"refused", "", always(connPlan{Dial: dialRefused}), labhealth.OutcomeNotSent, 0},
	{"temporary DNS failure", "", always(connPlan{Dial: dialDNS}), labhealth.OutcomeNotSent, 0},
	{"unknown host", "", always(connPlan{Dial: dialUnknown}), labhealth.OutcomeNotSent, 0},
	{"no connection", "", always(connPlan{Dial: dialStall}), labhealth.OutcomeNotSent, 0},
	{"closed within the header, once", "", []connPlan{{Window: 1, Exchanges: []exchange{{HTTP1: &http1Plan{ReadOnly: 1, End: endClose}}}}},
		labhealth.OutcomeApplied, 1},
	{"reset within the header", "", always(connPlan{Window: 1, Exchanges: []exchange{{HTTP1: &http1Plan{ReadOnly: 20, End: endReset}}}}),
		labhealth.OutcomeNotSent, 0},
	{"422", "", responding(responsePlan{Status: 422}), labhealth.OutcomeRejected, 0},
	{"422 through a wrapper", "passes on", responding(responsePlan{Status: 422}), labhealth.OutcomeRejected, 0},
	{"422 through a copy", "clones", responding(responsePlan{Status: 422}), labhealth.OutcomeRejected, 0},
	{"422 to a hidden request after one that was committed", "retries unseen after a 5xx that was seen",
		append(responding(responsePlan{Status: 502}, responsePlan{Status: 422}), responding(responsePlan{Status: 422})...), labhealth.OutcomeUnknown, 1},
	{"lost in a hidden request after one within the header", "retries unseen after a 5xx that was seen",
		[]connPlan{{Window: 1, Exchanges: []exchange{{HTTP1: &http1Plan{ReadOnly: 20, End: endReset}}}}, {Exchanges: []exchange{{HTTP1: &http1Plan{Written: 1, End: endClose}}}}},
		labhealth.OutcomeUnknown, 1},
	{"429 to a hidden request after one that was committed", "retries unseen after a 5xx that was seen",
		append(responding(responsePlan{Status: 502}, tooMany), responding(tooMany)...), labhealth.OutcomeUnknown, 1},
	{"refused after a 429", "", []connPlan{{Exchanges: []exchange{{Response: tooMany, HTTP1: &http1Plan{End: endClose}}}},
		{Dial: dialRefused}, {Dial: dialRefused}}, labhealth.OutcomeRejected, 0},
	{"429 once", "", responding(responsePlan{Status: 429, RetryAfter: "1"}), labhealth.OutcomeApplied, 1},
	{"429", "", []connPlan{{Exchanges: []exchange{{Response: tooMany}, {Response: tooMany}, {Response: tooMany}}}}, labhealth.OutcomeRejected, 0},
	{"429 with a Retry-After that has passed", "", responding(responsePlan{Status: 429, RetryAfter: "-1"}), labhealth.OutcomeRejected, 0},
	{"429 with a Retry-After above the limit", "", responding(responsePlan{Status: 429, RetryAfter: "61"}), labhealth.OutcomeRejected, 0},
	{"429 with a date", "", responding(responsePlan{Status: 429, RetryAfter: "Sat, 01 Jan 2000 00:00:30 GMT"}), labhealth.OutcomeApplied, 1},
	{"cut page of a proxy", "", []connPlan{{Exchanges: []exchange{{Response: responsePlan{Body: "HTML", Commit: commitNever}, HTTP1: cut}}}},
		labhealth.OutcomeUnknown, 0},
	{"cut page of a proxy after a commit", "", []connPlan{{Exchanges: []exchange{{Response: responsePlan{Body: "HTML"}, HTTP1: cut}}}},
		labhealth.OutcomeUnknown, 1},
	{"cut", "", []connPlan{{Exchanges: []exchange{{HTTP1: cut}}}}, labhealth.OutcomeApplied, 1},
	{"early response", "", []connPlan{{Exchanges: []exchange{{HTTP1: &http1Plan{Early: true}}}}}, labhealth.OutcomeApplied, 1},
	{"informational responses", "", []connPlan{{Exchanges: []exchange{{HTTP1: &http1Plan{Storm: 4, StormOf: 103}}}}}, labhealth.OutcomeApplied, 1},
}

// certainWithKey are those of a write with an idempotency key, which is repeated.
var certainWithKey = []certainRow{
	{"502 once", "", responding(responsePlan{Status: 502}), labhealth.OutcomeApplied, 1},
	{"409 after a 502", "", responding(responsePlan{Status: 502}, responsePlan{Status: 409}), labhealth.OutcomeUnknown, 1},
	{"429 after a 502", "", responding(responsePlan{Status: 502}, responsePlan{Status: 429, RetryAfter: "61"}), labhealth.OutcomeUnknown, 1},
	{"refused after a 502", "", append([]connPlan{{Exchanges: []exchange{{Response: responsePlan{Status: 502}, HTTP1: &http1Plan{End: endClose}}}}},
		connPlan{Dial: dialRefused}, connPlan{Dial: dialRefused}), labhealth.OutcomeUnknown, 1},
	{"409", "", responding(responsePlan{Status: 409}), labhealth.OutcomeRejected, 0},
}

var cut = &http1Plan{Extra: 10, End: endClose}

var tooMany = responsePlan{Status: http.StatusTooManyRequests}

func always(p connPlan) []connPlan { return []connPlan{p, p, p} }

func responding(plans ...responsePlan) []connPlan {
	var c connPlan
	for _, p := range plans {
		c.Exchanges = append(c.Exchanges, exchange{Response: p})
	}
	return []connPlan{c}
}

// filler is more than net/http buffers of a header, so that its end is not written if the
// connection fails before.
const filler = 10_000

func TestCertainOutcomes(t *testing.T) {
	for _, c := range calls {
		if !c.isWrite() {
			continue
		}
		for _, row := range certain {
			if c.hasKey() {
				break
			}
			if c.name != "Users.GetOrCreate" || row.want != labhealth.OutcomeUnknown { // it looks for the user
				row.check(t, callPlan{Method: c.name})
			}
		}
		if !c.takesKey() {
			continue
		}
		for _, row := range certainWithKey {
			row.check(t, callPlan{Method: c.name, Idempotency: true})
		}
	}
}

func (row *certainRow) check(t *testing.T, c callPlan) {
	c.Timeout, c.Filler = time.Hour, filler
	w, results, broken := attempt(t, &schedule{Transport: row.transport, Calls: []callPlan{c}, Conns: row.conns})
	if len(broken) > 0 {
		t.Errorf("%s, %s: %v", row.name, c.Method, broken)
		return
	}
	got, commits := labhealth.OutcomeOf(results[0].err), len(w.calls[0].commits)
	if got != row.want || commits != row.commits {
		t.Errorf("%s, %s: %v, %d commits: %v", row.name, c.Method, got, commits, results[0].err)
	}
}

// A connection that the service closes while it is idle costs no write: the request is sent on
// another one.
func TestIdleClose(t *testing.T) {
	for _, end := range []string{endClose, endReset} {
		s := &schedule{
			Calls: []callPlan{{Method: "Orders.Get"}, {Method: "Orders.Import", After: time.Second}},
			Conns: []connPlan{{Exchanges: []exchange{{HTTP1: &http1Plan{End: end, EndDelay: time.Millisecond}}}}},
		}
		if _, results, broken := attempt(t, s); len(broken) > 0 || results[1].err != nil {
			t.Errorf("%s: %v: %v", end, results, broken)
		}
	}
}
