// Package console shows a sandbox and its deliveries in the browser.
//
// Every page is a GET that changes nothing and can be read without script; every action is a form
// that is posted and redirects. The console shares the port of the service: all its paths start
// with /console/, and / redirects there.
package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

//go:embed assets
var assets embed.FS

//go:embed templates
var templates embed.FS

// Config configures New.
type Config struct {
	// Inspector has the deliveries and the store. It is required.
	Inspector *inspect.Inspector
	// Server is the sandbox, or nil for a console of deliveries only.
	Server *labhealthtest.Server
	// Client reads and changes the sandbox without faults (labhealthtest.Server.Direct). It is
	// required with Server.
	Client *labhealth.Client
	// Token is the secret in the address of the console. It is required.
	Token string
	// Hosts are the values of the Host header that are accepted, such as 127.0.0.1:8080.
	Hosts []string
	// Values are shown and can be copied, such as the base URL and the keys.
	Values []Value
	// Fill adds invented users and orders; nil adds simple ones.
	Fill func(users, orders int) error
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log is for what goes wrong in the console itself; nil means slog.Default.
	Log *slog.Logger
}

// Value is a value that users copy from the console.
type Value struct {
	Name   string // such as "Team key"
	Value  string
	Secret bool // shown shortened
}

// Console is the handler of the console.
type Console struct {
	Config
	mux       *http.ServeMux
	templates *template.Template
	version   string // of the assets
	live      *live
	faults    *faults
	results   flashes
	jobs      replayJobs
}

// New returns a console. Run must be called once.
func New(c Config) (*Console, error) {
	if c.Inspector == nil || c.Token == "" || (c.Server != nil) != (c.Client != nil) {
		return nil, errors.New("console: Inspector and Token are required, and Client with Server")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	console := &Console{Config: c, mux: http.NewServeMux(), live: newLive(), faults: newFaults()}
	var err error
	console.templates, err = template.New("").Funcs(console.functions()).ParseFS(templates, "templates/*.html")
	if err != nil {
		return nil, err
	}
	console.version, err = hashAssets()
	if err != nil {
		return nil, err
	}
	console.routes()
	return console, nil
}

// Run sends changes to the pages that are open, until ctx is done. Then it closes their streams and
// ends what actions have started.
func (c *Console) Run(ctx context.Context) {
	c.live.run(ctx, c)
	c.jobs.close()
}

func hashAssets() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(assets, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		b, err := assets.ReadFile(path)
		sum.Write(b)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:6]), err
}

// sandbox reports whether there is a sandbox.
func (c *Console) sandbox() bool { return c.Server != nil }

// routes registers all pages and actions. Each page registers its own.
func (c *Console) routes() {
	c.mux.HandleFunc("GET /console/{$}", func(w http.ResponseWriter, r *http.Request) {
		path := "/console/deliveries"
		if c.sandbox() {
			path = "/console/orders"
		}
		http.Redirect(w, r, path, http.StatusSeeOther)
	})
	c.mux.HandleFunc("POST /console/theme", c.setTheme)
	c.mux.HandleFunc("GET /console/live", c.serveLive)
	c.mux.HandleFunc("GET /console/nav", func(w http.ResponseWriter, r *http.Request) {
		c.write(w, r, "nav", c.nav(r, ""), 0)
	})
	c.ordersRoutes()
	c.usersRoutes()
	c.deliveriesRoutes()
	c.faultsRoutes()
	c.requestsRoutes()
}

// page is what the layout shows.
type page struct {
	Title   string
	Current string // key of the page in the navigation
	Live    string // topics whose changes the page shows, separated by spaces
	Self    string // address by which the page fetches itself; empty means that of the request
	Data    any    // of the template
	Status  int    // 0 means 200
}

// render shows a page: the template, within the layout.
func (c *Console) render(w http.ResponseWriter, r *http.Request, name string, p page) {
	var main bytes.Buffer
	if err := c.templates.ExecuteTemplate(&main, name, p.Data); err != nil {
		c.fail(w, r, err)
		return
	}
	c.write(w, r, "layout", c.layout(r, p, template.HTML(main.String())), p.Status) //nolint:gosec // from a template
}

// write responds with a template and a status; 0 means 200.
func (c *Console) write(w http.ResponseWriter, r *http.Request, name string, data any, status int) {
	var out bytes.Buffer
	if err := c.templates.ExecuteTemplate(&out, name, data); err != nil {
		c.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if status != 0 {
		w.WriteHeader(status)
	}
	io.WriteString(w, visibleHTML(out.String()))
}

// shownParameterName is the query parameter of an open page that shows a detail which its address
// does not name: the page fetches itself with it.
const shownParameterName = "shown"

// fail shows an error of the console itself.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return
	}
	c.Log.Error("console: a page failed", "path", r.URL.Path, "error", err)
	http.Error(w, "the console could not show this page: "+visible(err.Error()), http.StatusInternalServerError)
}
