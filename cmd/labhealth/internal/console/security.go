package console

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
)

const contentSecurityPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// maxForm is the size of the largest body that an action accepts, in bytes.
const maxForm = 8 << 20

// IsConsole reports whether a request is for the console and not for the service.
func IsConsole(r *http.Request) bool {
	return r.URL.Path == "/" && isRead(r) || r.URL.Path == "/console" ||
		strings.HasPrefix(r.URL.Path, "/console/")
}

// ServeHTTP serves the console to whoever has the token, from its own address only.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// With no-referrer, browsers send the origin of forms as null.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	read := isRead(r)
	switch {
	case !c.admits(w, r):
	case r.URL.Path != path.Clean(r.URL.Path) && r.URL.Path != path.Clean(r.URL.Path)+"/":
		http.NotFound(w, r)
	case read && r.URL.Query().Has("token"):
		c.login(w, r)
	case read && strings.HasPrefix(r.URL.Path, "/console/assets/"):
		c.serveAsset(w, r)
	case !c.hasToken(r):
		http.Error(w, "Open the address that the command printed: it contains a token.", http.StatusUnauthorized)
	case r.URL.Path == "/" || r.URL.Path == "/console":
		http.Redirect(w, r, "/console/", http.StatusSeeOther)
	default:
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		c.mux.ServeHTTP(w, c.live.stamp(r))
	}
}

func isRead(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// admits reports whether a request is for the host and from a page of the console; otherwise it
// responds.
func (c *Console) admits(w http.ResponseWriter, r *http.Request) bool {
	read := isRead(r)
	switch {
	case !slices.Contains(c.Hosts, strings.ToLower(r.Host)):
		http.Error(w, fmt.Sprintf("this console is not served to the host %q", r.Host), http.StatusForbidden)
	case !read && r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "the console has no such method", http.StatusMethodNotAllowed)
	case !read && !sameOrigin(r), read && !fromPage(r):
		http.Error(w, "this request is from another website", http.StatusForbidden)
	default:
		return true
	}
	return false
}

// sameOrigin reports whether a write is from a page of the console. Programs that are no browser
// send neither header; they need the cookie like any other.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	origins := r.Header.Values("Origin")
	return !slices.ContainsFunc(origins, func(origin string) bool {
		return origin != "http://"+r.Host && origin != "https://"+r.Host
	})
}

// fromPage reports whether a read is from a page of the console, or shows one: other websites may
// link to the console, and embed nothing of it.
func fromPage(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	default:
		return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	}
}

// cookieName returns the name of a cookie of this console. Browsers send the cookies of a host to
// all its ports, where another console may run.
func cookieName(r *http.Request, name string) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "80"
	}
	return "labhealth_" + name + "_" + port
}

// cookie returns a cookie that only the console gets, and no script.
func cookie(r *http.Request, name, value string) *http.Cookie {
	return &http.Cookie{Name: cookieName(r, name), Value: value, Path: "/console", HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// session returns the value of the cookie of whoever has the token. The token does not follow from
// it, and it is valid for one host.
func (c *Console) session(r *http.Request) string {
	mac := hmac.New(sha256.New, []byte(c.Token))
	fmt.Fprintf(mac, "session %s", strings.ToLower(r.Host))
	return hex.EncodeToString(mac.Sum(nil))
}

func (c *Console) hasToken(r *http.Request) bool {
	want := []byte(c.session(r))
	return slices.ContainsFunc(r.CookiesNamed(cookieName(r, "console")), func(cookie *http.Cookie) bool {
		return subtle.ConstantTimeCompare([]byte(cookie.Value), want) == 1
	})
}

// login puts a cookie in the place of the token, so that it leaves the address.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	token := r.URL.Query().Get("token")
	if subtle.ConstantTimeCompare([]byte(token), []byte(c.Token)) != 1 {
		http.Error(w, "This token is not valid: open the address that the command printed.", http.StatusUnauthorized)
		return
	}
	http.SetCookie(w, cookie(r, "console", c.session(r)))
	to := "/console/"
	if strings.HasPrefix(r.URL.Path, to) {
		to = r.URL.EscapedPath()
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (c *Console) serveAsset(w http.ResponseWriter, r *http.Request) {
	name := "assets/" + path.Base(r.URL.Path)
	_, err := fs.Stat(assets, name)
	if err != nil || r.URL.Path != "/console/"+name {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	http.ServeFileFS(w, r, assets, name)
}
