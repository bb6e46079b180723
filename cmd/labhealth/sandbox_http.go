package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/console"
)

// Other commands ask at this path whether the sandbox that they know still runs.
const (
	proofPath   = "/console/proof"
	proofHeader = "X-Labhealthtest-Proof"
)

// gate is the middleware of the service: it serves the console on the port of the service, and
// protects the service from other websites.
type gate struct {
	proof   atomic.Pointer[string] // of the service
	public  bool
	handler http.Handler // of the service, with this middleware
	console atomic.Pointer[console.Console]
}

func (g *gate) wrap(service http.Handler) http.Handler {
	g.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limitBody(w, r)
		c := g.console.Load()
		switch {
		case !g.public && isForeignName(r.Host):
			http.Error(w, fmt.Sprintf("the sandbox is not served to the host %q without --public", r.Host), http.StatusForbidden)
		case r.URL.Path == proofPath && r.Header.Get("Sec-Fetch-Site") == "": // no browser
			if proof := g.proof.Load(); proof != nil {
				w.Header().Set(proofHeader, *proof)
			}
			w.WriteHeader(http.StatusNoContent)
		case c == nil || !console.IsConsole(r):
			service.ServeHTTP(w, r)
		default:
			c.ServeHTTP(w, r)
		}
	})
	return g.handler
}

// bodyTime is how long a body may take to arrive. Tests change it.
var bodyTime = 30 * time.Second

// limitBody ends the connection if the body takes too long, also if nothing reads it. A ReadTimeout
// of the server would end the streams of the console, too.
func limitBody(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(bodyTime)) == nil {
		r.Body = &limitedBody{r.Body, control}
	}
}

// limitedBody ends the limit with the body: the response may take longer.
type limitedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{}) // as without a limit
	}
	return n, err
}

// isForeignName reports whether a host is a name that somebody else may have: a website can let its
// name point to this machine, and read what is served to it. Addresses and names that only the
// machine or its network has are safe.
func isForeignName(host string) bool {
	host = hostName(host)
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") {
		return false
	}
	for _, suffix := range []string{".localhost", ".local", ".internal", ".test"} {
		if strings.HasSuffix(host, suffix) {
			return false
		}
	}
	own, err := os.Hostname()
	return err != nil || !strings.EqualFold(own, host)
}
