package attack

import (
	"bytes"
	"io"
	"log"
	"testing"
)

// net/http writes unsolicited bytes to the default logger. The client's own connections
// keep them from it; what wrappers send is not checked.
func TestNothingIsLogged(t *testing.T) {
	var logged bytes.Buffer
	log.SetOutput(&logged)
	defer log.SetOutput(io.Discard)
	for seed := range uint64(2500) {
		s := newSchedule(seed + 1)
		s.Protocol, s.Transport = "http1", ""
		if seed%5 == 0 { // TLS takes longer
			s.Protocol = []string{"TLS, http1", "CONNECT, http1"}[seed/5%2]
			for i := range s.Conns {
				s.Conns[i].Window, s.Conns[i].Linger = 0, 0 // see randomNetwork
			}
		}
		if _, _, broken := attempt(t, s); len(broken) > 0 {
			t.Fatalf("seed %d: %v", seed+1, broken)
		}
		if logged.Len() > 0 {
			t.Fatalf("seed %d: %d bytes are logged, such as those of a response: %.200s", seed+1, logged.Len(), logged.String())
		}
	}
}
