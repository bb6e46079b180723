package console

import (
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
)

// layout is the data of the template layout.
type layout struct {
	page
	Main      template.HTML
	Mode      string
	Path      string
	Theme     string // light, dark or empty
	NextTheme string
	Version   string
	Nav       []navItem
	Env       []envItem
	Flash     *flash
	Since     string // the live changes that the page includes
	Now       int64  // the time of the console in seconds, by which ages are counted
	Command   string // starts what serves the console
}

type navItem struct {
	Key, Name, Icon, Path string
	Current               bool
	Count, Armed          int
}

type envItem struct{ Name, Label, Value, Hint string }

const themeCookie = "labhealth_theme" // of all consoles

func (c *Console) layout(r *http.Request, p page, main template.HTML) layout {
	l := layout{page: p, Main: main, Mode: "listen", Path: r.URL.RequestURI(), Version: c.version}
	if c.sandbox() {
		l.Mode = "sandbox"
	}
	l.Command = "labhealth " + l.Mode
	l.Nav = c.nav(r, p.Current)
	l.Since, l.Now = liveSince(r), c.Now().Unix()
	if l.Self == "" {
		l.Self = l.Path
	}
	if r.Header.Get("Console-Live") == "" { // the page that a person opens shows it
		l.Flash = c.flashOf(r)
	}
	if cookie, err := r.Cookie(themeCookie); err == nil && (cookie.Value == "light" || cookie.Value == "dark") {
		l.Theme = cookie.Value
	}
	l.NextTheme = map[string]string{"": "light", "light": "dark", "dark": "auto"}[l.Theme]
	for _, v := range c.Values {
		item := envItem{v.Name, strings.ToLower(v.Name), v.Value, strings.TrimPrefix(v.Value, "http://")}
		if v.Secret && len(v.Value) > 16 {
			item.Hint = v.Value[:11] + "…" + v.Value[len(v.Value)-4:]
		}
		l.Env = append(l.Env, item)
	}
	return l
}

// nav returns the pages of the console, with their counts.
func (c *Console) nav(r *http.Request, current string) []navItem {
	items := []navItem{
		{Key: "orders", Name: "Orders", Icon: "board", Count: c.countOrders(r.Context())},
		{Key: "users", Name: "Users", Icon: "pulse", Count: c.countUsers(r.Context())},
		{Key: "deliveries", Name: "Deliveries", Icon: "inbox", Count: c.countDeliveries(r.Context())},
	}
	if c.sandbox() {
		items = append(items,
			navItem{Key: "faults", Name: "Faults", Icon: "bolt", Armed: c.countFaults()},
			navItem{Key: "requests", Name: "Requests", Icon: "term", Count: c.countRequests()})
	}
	for i := range items {
		items[i].Path = "/console/" + items[i].Key
		items[i].Current = items[i].Key == current
	}
	return items
}

func (c *Console) setTheme(w http.ResponseWriter, r *http.Request) {
	theme := r.PostFormValue("theme")
	if theme != "light" && theme != "dark" {
		theme = ""
	}
	http.SetCookie(w, &http.Cookie{Name: themeCookie, Value: theme, Path: "/console", MaxAge: 365 * 24 * 3600, SameSite: http.SameSiteStrictMode, HttpOnly: true})
	back := r.PostFormValue("back")
	if !strings.HasPrefix(back, "/console/") {
		back = "/console/"
	}
	c.back(w, r, back, "", "")
}

// functions are the functions of the templates. Those of one page are beside it.
func (c *Console) functions() template.FuncMap {
	return template.FuncMap{
		"number":           number,
		"size":             sizeOf,
		"took":             tookText,
		"short":            func(id fmt.Stringer) string { return id.String()[:8] },
		"age":              func(t time.Time) string { return age(c.Now().Sub(t)) },
		"sampleResources":  func() []string { return sampleResources },
		"summaryResources": func() []string { return summaryResources },
		"clock":            func(t time.Time) string { return t.Format("15:04:05") },
		"list":             pairs,
		"split":            strings.Fields,
		"sentence":         asSentence,
		"local":            func(t time.Time, layout string) string { return t.In(c.zone()).Format(layout) },
		"words":            words,
		"statusWords":      statusWords,
		"methodName":       methodName,
		"isSet":            func(id uuid.UUID) bool { return id != uuid.Nil },
		"failed":           func(statusCode int) bool { return statusCode != 0 && statusCode/100 != 2 },
		"timeOf":           c.timeOf,
		"shortURL":         shortURL,
		"clip":             firstChars,
	}
}

// pairs returns the values and names of options.
func pairs(texts ...string) [][]string {
	var all [][]string
	for i := 0; i+1 < len(texts); i += 2 {
		all = append(all, texts[i:i+2])
	}
	return all
}

// number formats 1204 as 1,204.
func number(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// age formats a duration as 12 s, 3 min, 5 h or 2 d.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d d", int(d.Hours()/24))
	}
}
