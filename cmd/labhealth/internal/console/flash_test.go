package console

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestFlash checks that a result is shown once, only to whoever has the cookie, and not late.
func TestFlash(t *testing.T) {
	now := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	c := &Console{Config: Config{Now: func() time.Time { return now }}}
	act := func(text string) *http.Request {
		w := httptest.NewRecorder()
		c.back(w, httptest.NewRequest("POST", "/console/orders", nil), "/console/orders", "ok", text)
		if w.Code != 303 || w.Header().Get("Location") != "/console/orders" {
			t.Fatalf("back: %d to %q", w.Code, w.Header().Get("Location"))
		}
		r := httptest.NewRequest("GET", "/console/orders", nil)
		for _, cookie := range w.Result().Cookies() {
			if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/console" {
				t.Errorf("the cookie can be read by scripts or is sent from elsewhere: %v", cookie)
			}
			r.AddCookie(cookie)
		}
		return r
	}
	first, second := act("1 order was created."), act("2 orders were created.")
	if f := c.flashOf(httptest.NewRequest("GET", "/console/orders", nil)); f != nil {
		t.Errorf("without the cookie: %v", f)
	}
	if f := c.flashOf(second); f == nil || *f != (flash{"ok", "2 orders were created."}) {
		t.Errorf("second: %v", f)
	}
	if f := c.flashOf(second); f != nil {
		t.Errorf("shown twice: %v", f)
	}
	if f := c.flashOf(first); f == nil || f.Text != "1 order was created." {
		t.Errorf("first: %v", f)
	}
	late := act("late")
	now = now.Add(2 * time.Minute)
	if f := c.flashOf(late); f != nil {
		t.Errorf("shown after two minutes: %v", f)
	}
	if r := act(""); len(r.Cookies()) != 0 {
		t.Error("a cookie without a text")
	}
	oldest := act("oldest")
	for range maxFlashes {
		act("newer")
	}
	if f := c.flashOf(oldest); f != nil || len(c.results.pending) != maxFlashes {
		t.Errorf("%v of %d results are stored", f, len(c.results.pending))
	}
}
