package attack

import (
	"net/http"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
)

// Faults that leave no doubt have a certain outcome, for every write. The connections are those of
// the call.
var certain = []struct {
	name      string
	transport string
	conns     []connPlan
	want      labhealth.Outcome
	commits   int
}{
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
	{"429 once", "", responding(responsePlan{Status: 429, RetryAfter: "1"}), labhealth.OutcomeApplied, 1},
	{"429", "", []connPlan{{Exchanges: []exchange{{Response: tooMany}, {Response: tooMany}, {Response: tooMany}}}}, labhealth.OutcomeRejected, 0},
	{"cut", "", []connPlan{{Exchanges: []exchange{{HTTP1: &http1Plan{Extra: 10, End: endClose}}}}}, labhealth.OutcomeApplied, 1},
	{"early response", "", []connPlan{{Exchanges: []exchange{{HTTP1: &http1Plan{Early: true}}}}}, labhealth.OutcomeApplied, 1},
	{"informational responses", "", []connPlan{{Exchanges: []exchange{{HTTP1: &http1Plan{Storm: 4, StormOf: 103}}}}}, labhealth.OutcomeApplied, 1},
}

var tooMany = responsePlan{Status: http.StatusTooManyRequests}

func always(p connPlan) []connPlan { return []connPlan{p, p, p} }

func responding(p responsePlan) []connPlan { return []connPlan{{Exchanges: []exchange{{Response: p}}}} }

// filler is more than net/http buffers of a header, so that its end is not written if the
// connection fails before.
const filler = 10_000

func TestCertainOutcomes(t *testing.T) {
	for _, row := range certain {
		for _, c := range calls {
			if !c.isWrite() {
				continue
			}
			s := &schedule{Transport: row.transport, Calls: []callPlan{{Method: c.name, Timeout: time.Hour, Filler: filler}}, Conns: row.conns}
			w, results, broken := attempt(t, s)
			if len(broken) > 0 {
				t.Errorf("%s, %s: %v", row.name, c.name, broken)
				continue
			}
			got, commits := labhealth.OutcomeOf(results[0].err), len(w.calls[0].commits)
			if got != row.want || commits != row.commits {
				t.Errorf("%s, %s: %v, %d commits: %v", row.name, c.name, got, commits, results[0].err)
				break
			}
		}
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
