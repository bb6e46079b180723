package console

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
)

// flash is the result of an action, which the next page shows once.
type flash struct {
	Tone string // ok, warn or bad
	Text string
}

// Limits of the results that have not been shown.
const (
	maxFlashes = 32
	flashAge   = time.Minute
)

// flashes are results that have not been shown. The cookie has only a random ID, so that texts are
// neither stored in browsers nor invented by them.
type flashes struct {
	mu      sync.Mutex
	pending []pendingFlash // oldest first
}

type pendingFlash struct {
	id string
	at time.Time
	flash
}

// back redirects to a page after an action. The page shows the text once, in one of the tones ok,
// warn and bad; an empty text shows nothing.
func (c *Console) back(w http.ResponseWriter, r *http.Request, path, tone, text string) {
	if text != "" {
		id := c.results.add(c.Now(), flash{tone, text})
		shown := cookie(r, "flash", id)
		shown.MaxAge = int(flashAge.Seconds())
		http.SetCookie(w, shown)
	}
	http.Redirect(w, r, path, http.StatusSeeOther)
}

// action changes something. It returns the page to show then, and what it did in words.
type action func(r *http.Request) (path, done string, err error)

// warning is an error of an action that has done something nevertheless, or had nothing to do.
type warning string

func (w warning) Error() string { return string(w) }

// act registers an action, whose result or error the next page shows.
func (c *Console) act(pattern string, do action) {
	c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		path, done, err := do(r)
		var warned warning
		switch {
		case errors.As(err, &warned):
			c.back(w, r, path, "warn", warned.Error())
		case err != nil:
			c.back(w, r, path, "bad", "Nothing was changed: "+strings.TrimSuffix(withoutPackage(err), ".")+".")
		default:
			c.back(w, r, path, "ok", done)
		}
	})
}

// flashOf returns the result that the page must show, or nil, and forgets it.
func (c *Console) flashOf(r *http.Request) *flash {
	cookie, err := r.Cookie(cookieName(r, "flash"))
	if err != nil || r.Method != http.MethodGet {
		return nil
	}
	return c.results.take(c.Now(), cookie.Value)
}

func (f *flashes) add(now time.Time, text flash) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expire(now)
	if len(f.pending) == maxFlashes {
		f.pending = f.pending[1:]
	}
	id := rand.Text()
	f.pending = append(f.pending, pendingFlash{id, now, text})
	return id
}

func (f *flashes) take(now time.Time, id string) *flash {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expire(now)
	for i, p := range f.pending {
		if p.id == id {
			f.pending = append(f.pending[:i], f.pending[i+1:]...)
			return &p.flash
		}
	}
	return nil
}

func (f *flashes) expire(now time.Time) {
	for len(f.pending) > 0 && now.Sub(f.pending[0].at) > flashAge {
		f.pending = f.pending[1:]
	}
}
