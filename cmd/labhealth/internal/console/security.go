package console

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

const tokenCookie = "labhealth_console"

const contentSecurityPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// IsConsole reports whether a request is for the console and not for the service.
func IsConsole(r *http.Request) bool {
	return r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) || r.URL.Path == "/console" ||
		strings.HasPrefix(r.URL.Path, "/console/")
}

// ServeHTTP serves the console to whoever has the token, from its own address only.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case !slices.Contains(c.Hosts, r.Host):
		http.Error(w, "this console is not served to the host "+r.Host, http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !c.sameOrigin(r):
		http.Error(w, "this request is from another origin", http.StatusForbidden)
	case r.URL.Query().Has("token"):
		c.login(w, r)
	case strings.HasPrefix(r.URL.Path, "/console/assets/"):
		c.serveAsset(w, r)
	case !c.hasToken(r):
		http.Error(w, "open the address that the command printed: it carries a token", http.StatusUnauthorized)
	case r.URL.Path == "/" || r.URL.Path == "/console":
		http.Redirect(w, r, "/console/", http.StatusSeeOther)
	default:
		c.mux.ServeHTTP(w, r)
	}
}

// sameOrigin reports whether a write comes from a page of the console. Programs that send no Origin
// have the cookie of the console only if they were given it.
func (c *Console) sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}

func (c *Console) hasToken(r *http.Request) bool {
	cookie, err := r.Cookie(tokenCookie)
	return err == nil && c.isToken(cookie.Value)
}

func (c *Console) isToken(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(c.Token)) == 1
}

// login puts the token of the address into a cookie, so that it leaves the address.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	if !c.isToken(r.URL.Query().Get("token")) {
		http.Error(w, "this token is not valid: open the address that the command printed", http.StatusUnauthorized)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: tokenCookie, Value: c.Token, Path: "/console", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/console/", http.StatusSeeOther)
}

func (c *Console) serveAsset(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	http.ServeFileFS(w, r, assets, "assets/"+name)
}
