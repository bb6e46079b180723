package attack

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go"
)

// redirecting returns a connection that responds with redirects to a location, after a delay each.
func redirecting(n int, location string, delay time.Duration) []connPlan {
	return responding(slices.Repeat([]responsePlan{{Status: http.StatusFound, Location: location, Delay: delay}}, n)...)
}

// How far a call follows redirects, and when it ends.
var ends = []struct {
	name     string
	protocol string
	client   clientPlan
	call     callPlan
	conns    []connPlan
	want     labhealth.Outcome
	requests int
	took     time.Duration // of the call, at most
}{
	{"five redirects", "http1", clientPlan{}, callPlan{Method: "Do GET"}, redirecting(5, "/a", 0), labhealth.OutcomeApplied, 6, 0},
	{"six redirects", "http1", clientPlan{}, callPlan{Method: "Do GET"}, redirecting(6, "/a", 0), labhealth.OutcomeUnknown, 6, 0},
	{"the default port", "TLS, http1", clientPlan{}, callPlan{Method: "Do GET"},
		redirecting(1, "https://"+secureName+":443/a", 0), labhealth.OutcomeApplied, 2, 0},
	{"without TLS, on the same port", "TLS, http1", clientPlan{}, callPlan{Method: "Do GET"},
		redirecting(1, "http://"+secureName+":443/a", 0), labhealth.OutcomeUnknown, 1, 0},
	{"without TLS, through a proxy", "CONNECT, http1", clientPlan{}, callPlan{Method: "Do GET"},
		redirecting(1, "http://"+secureName+":443/a", 0), labhealth.OutcomeUnknown, 1, 0},
	{"another port", "http1", clientPlan{}, callPlan{Method: "Do GET"},
		redirecting(1, "http://127.0.0.1:8081/a", 0), labhealth.OutcomeUnknown, 1, 0},
	{"lost after a redirect", "http1", clientPlan{Attempts: 1}, callPlan{Method: "Do GET"}, []connPlan{
		{Exchanges: []exchange{{Response: responsePlan{Status: http.StatusFound, Location: "/a"}, HTTP1: &http1Plan{End: endClose}}}}, {Dial: dialRefused},
	}, labhealth.OutcomeUnknown, 1, 0},
	{"the deadline of an attempt with redirects", "http1", clientPlan{Attempts: 1, Timeout: time.Second}, callPlan{Method: "Do GET"},
		redirecting(3, "/a", 700*time.Millisecond), labhealth.OutcomeUnknown, 2, time.Second},
	{"the timeout of the http.Client", "http1", clientPlan{HTTPTimeout: time.Second}, callPlan{Method: "Do POST"},
		responding(responsePlan{Delay: time.Minute}), labhealth.OutcomeUnknown, 1, time.Second},
	{"a Retry-After beyond the deadline", "http1", clientPlan{}, callPlan{Method: "Do POST", Timeout: 10 * time.Second},
		responding(responsePlan{Status: http.StatusTooManyRequests, RetryAfter: "30"}), labhealth.OutcomeRejected, 1, 0},
	{"silence over HTTP/2", "http2", clientPlan{Timeout: time.Second}, callPlan{Method: "Do POST"},
		[]connPlan{{HTTP2: &http2Plan{Replies: []http2Reply{{Silent: true}}}}}, labhealth.OutcomeUnknown, 1, time.Second},
}

func TestEnds(t *testing.T) {
	for _, row := range ends {
		w, results, broken := attempt(t, &schedule{Protocol: row.protocol, Client: row.client, Calls: []callPlan{row.call}, Conns: row.conns})
		if len(broken) > 0 {
			t.Errorf("%s: %v", row.name, broken)
			continue
		}
		r := results[0]
		if got, n := labhealth.OutcomeOf(r.err), w.calls[0].requests; got != row.want || n != row.requests || r.took > row.took {
			t.Errorf("%s: %v after %d requests and %v: %v", row.name, got, n, r.took, r.err)
		}
	}
}
