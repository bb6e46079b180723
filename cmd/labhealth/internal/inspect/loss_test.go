package inspect

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// HangUp ends a request to an application that does not respond. The delivery stays stored.
func TestHangUp(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(arrived)
		<-release
	}))
	defer app.Close()
	defer close(release)
	i, err := Open(t.Context(), Config{Forward: app.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	status := make(chan int)
	go func() {
		w := httptest.NewRecorder()
		i.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader("{}")))
		status <- w.Code
	}()
	<-arrived
	start := time.Now()
	i.HangUp()
	if got := <-status; got != 502 || time.Since(start) > time.Second {
		t.Errorf("status %d after %v", got, time.Since(start))
	}
	d, ok, err := i.Get(t.Context(), 1)
	if err != nil || !ok || d.Forward == nil || d.Forward.Err != errHungUp.Error() || d.StatusCode != 502 {
		t.Errorf("%+v, %v, %v", d, ok, err)
	}
}
