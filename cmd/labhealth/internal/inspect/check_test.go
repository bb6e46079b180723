package inspect

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
)

// checkedApp is an application with at most one mistake.
type checkedApp struct {
	t       *testing.T
	mistake string

	mu     sync.Mutex
	seen   map[string]bool
	orders []string // ID and status
	at     map[string]string
}

func (a *checkedApp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		a.mu.Lock()
		defer a.mu.Unlock()
		fmt.Fprintln(w, "orders\n"+strings.Join(a.orders, "\n"))
		return
	}
	body, _ := io.ReadAll(r.Body)
	if !a.verify(r.Header, body) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	id := webhooks.DeliveryID(r.Header)
	switch a.mistake {
	case "store down":
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case "late":
		time.AfterFunc(150*time.Millisecond, func() { a.store(id, body) })
	case "acknowledges only":
	case "unknown":
		if !bytes.Contains(body, []byte("labtest.order")) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		a.store(id, body)
	default:
		a.store(id, body)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (a *checkedApp) verify(h http.Header, body []byte) bool {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(testSecret, "whsec_"))
	now := time.Now()
	switch a.mistake {
	case "key":
		mac := hmac.New(sha256.New, []byte(testSecret))
		fmt.Fprintf(mac, "%s.%s.%s", h.Get("Svix-Id"), h.Get("Svix-Timestamp"), body)
		return h.Get("Svix-Signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
	case "body only":
		mac := hmac.New(sha256.New, key)
		mac.Write(body)
		return h.Get("Svix-Signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
	case "other secret":
		return false
	case "unsigned":
		return true
	case "old":
		var seconds int64
		fmt.Sscan(h.Get("Svix-Timestamp"), &seconds)
		now = time.Unix(seconds, 0)
	case "sorted":
		var document any
		if json.Unmarshal(body, &document) == nil {
			body, _ = json.Marshal(document)
		}
	case "re-encoded":
		var compact bytes.Buffer
		if json.Compact(&compact, body) == nil {
			body = compact.Bytes()
		}
	}
	v, err := webhooks.NewVerifier(testSecret)
	if err != nil {
		a.t.Error(err)
	}
	return v.VerifyAt(body, h, now) == nil
}

func (a *checkedApp) store(id string, body []byte) {
	var event struct {
		Type string `json:"event_type"`
		Data struct {
			ID        string `json:"id"`
			Status    string `json:"status"`
			UpdatedAt string `json:"updated_at"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		a.t.Error(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch order := event.Data; {
	case !strings.HasPrefix(event.Type, "labtest.order."), a.mistake == "ignores updates" && event.Type == "labtest.order.updated":
	case a.mistake == "duplicates":
		a.orders = append(a.orders, order.ID+" "+order.Status)
	case a.seen[id]:
	case a.mistake != "keeps the last" && order.UpdatedAt < a.at[order.ID]:
	default:
		a.orders = slices.DeleteFunc(a.orders, func(s string) bool { return strings.HasPrefix(s, order.ID) })
		a.orders = append(a.orders, order.ID+" "+order.Status)
		a.at[order.ID] = order.UpdatedAt
	}
	a.seen[id] = true
}

// The check finds each mistake, and only that one.
func TestCheckApplication(t *testing.T) {
	t.Parallel()
	defer func(d time.Duration) { pageWait = d }(pageWait)
	pageWait = 400 * time.Millisecond
	for _, c := range []struct {
		mistake string
		options CheckOptions
		wrong   string // names of the results that are wrong, and "?" before those that are unclear
		finding string
	}{
		{"", CheckOptions{Page: "/orders"}, "", ""},
		{"", CheckOptions{}, "", ""},
		{"key", CheckOptions{}, "A created order", "text of the secret as the key"},
		{"body only", CheckOptions{}, "A created order", "leaves out the ID and the timestamp"},
		{"sorted", CheckOptions{}, "A created order", "parsed and encoded again. Verify the received bytes"},
		{"other secret", CheckOptions{}, "A created order", "another secret"},
		{"unsigned", CheckOptions{}, "Without a signature,With a wrong signature,Changed after it was signed,Signed ten minutes ago", "Anyone who knows the URL"},
		{"old", CheckOptions{}, "Signed ten minutes ago", "sent again later"},
		{"re-encoded", CheckOptions{}, "Valid, with spaces in the JSON", "Verify the received bytes"},
		{"unknown", CheckOptions{}, "An unknown type of event", "The service adds types"},
		{"ignores updates", CheckOptions{Page: "/orders"}, "The page after the update,That order on the page", "ignores labtest.order.updated"},
		{"acknowledges only", CheckOptions{Page: "/orders"}, "The order on the page,That order on the page", "has lost it"},
		{"late", CheckOptions{Page: "/orders"}, "?The order on the page,?The page after the update,?That order on the page", "acknowledged before the page showed it"},
		{"duplicates", CheckOptions{Page: "/orders"}, "The page after the duplicate", "Store the ID of each delivery"},
		{"keeps the last", CheckOptions{Page: "/orders"}, "The page after the late event", "keeps what arrives last"},
		{"store down", CheckOptions{StoreDown: true}, "", ""},
		{"", CheckOptions{StoreDown: true}, "A created order, while the database is down", "the event is lost"},
		{"other secret", CheckOptions{StoreDown: true}, "?A created order, while the database is down", "with the database running"},
	} {
		app := httptest.NewServer(&checkedApp{t: t, mistake: c.mistake, seen: map[string]bool{}, at: map[string]string{}})
		i := open(t, Config{Forward: app.URL + "/webhooks"})
		probes, err := i.CheckApplication(t.Context(), c.options)
		app.Close()
		if err != nil {
			t.Fatal(err)
		}
		var wrong []string
		findings := ""
		for _, p := range probes {
			if !p.Passed {
				wrong = append(wrong, p.Name)
			} else if p.Unclear {
				wrong = append(wrong, "?"+p.Name)
			}
			findings += p.Finding + "\n"
		}
		if got := strings.Join(wrong, ","); got != c.wrong || !strings.Contains(findings, c.finding) || c.finding == "" && strings.TrimSpace(findings) != "" {
			t.Errorf("%q, %+v: %s\n%s\n%+v", c.mistake, c.options, got, findings, probes)
		}
		if n, err := i.Count(t.Context(), Filter{}); err != nil || n != 0 {
			t.Errorf("%q: %d deliveries are stored: %v", c.mistake, n, err)
		}
	}
}

// The check does not run without an application or a secret, and requests no page elsewhere.
func TestCheckApplicationErrors(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host was called") }))
	defer elsewhere.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, c := range []struct {
		config Config
		page   string
		text   string
	}{
		{Config{}, "", "no application"},
		{Config{Forward: closed.URL, Secrets: []string{}}, "", "no signing secret"},
		{Config{Forward: closed.URL}, elsewhere.URL + "/", "must be a path"},
		{Config{Forward: closed.URL}, strings.TrimPrefix(elsewhere.URL, "http:") + "/", "must be a path"},
		{Config{Forward: closed.URL}, "@" + strings.TrimPrefix(elsewhere.URL, "http://") + "/", "must be a path"},
	} {
		if _, err := open(t, c.config).CheckApplication(t.Context(), CheckOptions{Page: c.page}); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	probes, err := open(t, Config{Forward: closed.URL}).CheckApplication(t.Context(), CheckOptions{})
	if err != nil || len(probes) != 1 || probes[0].Passed || !strings.Contains(probes[0].Finding, "is the application running") {
		t.Errorf("%+v, %v", probes, err)
	}
}
