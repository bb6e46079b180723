package labhealthtest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// oldSecretLife is how long the secret before the last rotation signs too.
const oldSecretLife = 24 * time.Hour

// webhook is an address that was named through the management API. Where the server is its environment it has an endpoint.
type webhook struct {
	ID string `json:"id"`
	webhookSettings
	CreatedAt stamp `json:"created_at"`
	UpdatedAt stamp `json:"updated_at"`

	env      string
	secret   string
	header   map[string]string
	endpoint *endpoint
}

type webhookSettings struct {
	URL         string   `json:"url"`
	Description string   `json:"description"`
	RateLimit   *int64   `json:"rate_limit"`
	Disabled    bool     `json:"disabled"`
	FilterTypes []string `json:"filter_types"`
}

var (
	createWebhookBody = object(
		field{"url", required, anAddress, nil},
		field{"description", optional, text, ""},
		field{"rate_limit", optional | nullable, anInteger, nil},
		field{"disabled", optional, aBoolean, false},
		field{"filter_types", optional | nullable, list(text), nil},
		field{"secret", optional | nullable, aSecret, nil},
	)
	patchWebhookBody = object(
		field{"url", optional | nullable, anAddress, nil},
		field{"description", optional | nullable, text, nil},
		field{"rate_limit", optional | nullable, anInteger, nil},
		field{"disabled", optional | nullable, aBoolean, nil},
		field{"filter_types", optional | nullable, list(text), nil},
	)
	rotateBody         = object(field{"key", optional | nullable, aSecret, nil})
	webhookHeadersBody = object(field{"headers", required, anything, nil})
)

// anAddress is the kind of an address that events can be delivered to.
func anAddress(c *checker, loc []any, in json.RawMessage) any {
	s, ok := unquote(in)
	if !ok {
		return text(c, loc, in)
	}
	if u, err := url.Parse(s); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		c.add("url_parsing", loc, "Input should be a valid URL", in, map[string]any{"error": "invalid address"})
	}
	return s
}

// aSecret is the kind of a signing secret. The answer to a bad one does not show it.
func aSecret(c *checker, loc []any, in json.RawMessage) any {
	s, ok := unquote(in)
	if !ok {
		return text(c, loc, in)
	}
	if key := secretKey(s); len(key) < 24 || len(key) > 64 || !strings.HasPrefix(s, "whsec_") {
		c.addValueError(loc, "a secret is whsec_ and 24 to 64 bytes in base64", []byte("null"))
	}
	return s
}

func secretKey(secret string) []byte {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	return key
}

func (s *Server) madeSecret() string {
	return "whsec_" + base64.StdEncoding.EncodeToString(s.made())
}

// locked calls f while nothing else uses the server of a team. s is locked already.
func (s *Server) locked(t *team, f func(*Server)) {
	if t.server != s {
		t.server.mu.Lock()
		defer t.server.mu.Unlock()
	}
	f(t.server)
}

// hook makes the endpoint of a webhook like the webhook, or makes one.
func (s *Server) hook(t *team, w *webhook) {
	if w.env != here || t.Region != hereRegion {
		return
	}
	s.locked(t, func(server *Server) {
		if server.closed {
			return
		}
		e := w.endpoint
		if e == nil {
			e = &endpoint{client: server.poster, keys: [][]byte{secretKey(w.secret)}, waits: retrySchedule}
			w.endpoint = e
			server.endpoints = append(server.endpoints, e)
			server.running.Go(func() { server.deliver(e) })
		}
		e.url, e.off, e.types, e.header = w.URL, w.Disabled, w.FilterTypes, w.header
	})
}

// unhook ends the deliveries to a webhook.
func (s *Server) unhook(t *team, w *webhook) {
	if w.endpoint == nil {
		return
	}
	s.locked(t, func(server *Server) {
		w.endpoint.removed = true
		server.endpoints = slices.DeleteFunc(server.endpoints, func(e *endpoint) bool { return e == w.endpoint })
		server.delivered.Broadcast()
	})
}

// takes reports whether an event is posted to the endpoint.
func (e *endpoint) takes(event []byte) bool {
	if e.off || e.types == nil {
		return !e.off
	}
	var of struct {
		Type string `json:"event_type"`
	}
	json.Unmarshal(event, &of) // An event that cannot be read has no type.
	return slices.Contains(e.types, of.Type)
}

// drop forgets what waits for an endpoint that was removed, and m.
func (s *Server) drop(e *endpoint, m *message) {
	s.pending -= len(e.ready) + len(e.waiting)
	if m != nil {
		s.pending--
	}
	e.ready, e.waiting = nil, nil
	s.delivered.Broadcast()
}

// at is the endpoint as it is now. It may change while an event is posted. The clock is asked only where it matters.
func (e endpoint) at(now func() time.Time) *endpoint {
	if len(e.keys) > 1 && !e.oldUntil.IsZero() && !now().Before(e.oldUntil) {
		e.keys = e.keys[:1]
	}
	return &e
}

func (s *Server) listWebhooks(r *request, caller *managementKey) answer {
	t, a := s.managedPath(r, caller)
	if t == nil {
		return a
	}
	found := choose(t.webhooks, func(w *webhook) bool { return w.env == r.vars["environment"] })
	return replyPage(r, "data", found, func(w *webhook) string { return w.ID })
}

func (s *Server) createWebhook(r *request, caller *managementKey) answer {
	var body struct {
		webhookSettings
		Secret *string `json:"secret"`
	}
	r.decode(createWebhookBody, &body)
	t, a := s.managedPath(r, caller)
	if t == nil {
		return a
	}
	now := stamp(r.now)
	w := &webhook{
		ID: "ep_" + base64.RawURLEncoding.EncodeToString(s.made()[:20]), webhookSettings: body.webhookSettings,
		CreatedAt: now, UpdatedAt: now, env: r.vars["environment"],
	}
	if body.Secret != nil {
		w.secret = *body.Secret
	} else {
		w.secret = s.madeSecret()
	}
	t.webhooks = append(t.webhooks, w)
	s.hook(t, w)
	return reply(w)
}

// onWebhook finds the webhook of the path for an operation.
func onWebhook(handle func(*Server, *request, *team, *webhook) answer) func(*Server, *request, *managementKey) answer {
	return func(s *Server, r *request, caller *managementKey) answer {
		t, a := s.managedPath(r, caller)
		if t == nil {
			return a
		}
		for _, w := range t.webhooks {
			if w.ID == r.vars["webhook_id"] && w.env == r.vars["environment"] {
				return handle(s, r, t, w)
			}
		}
		return refuse(http.StatusNotFound, "Webhook not found")
	}
}

func (s *Server) getWebhook(_ *request, _ *team, w *webhook) answer { return reply(w) }

// patchWebhook changes the members that are given; null clears the rate limit and the filter and changes nothing else.
func (s *Server) patchWebhook(r *request, t *team, w *webhook) answer {
	r.decode(patchWebhookBody, &struct{}{})
	if a, bad := r.invalid(); bad {
		return a
	}
	w.FilterTypes = slices.Clone(w.FilterTypes) // An event may be held against the old one.
	json.Unmarshal(r.body, &w.webhookSettings)
	w.UpdatedAt = stamp(r.now)
	s.hook(t, w)
	return reply(w)
}

func (s *Server) deleteWebhook(_ *request, t *team, w *webhook) answer {
	s.unhook(t, w)
	t.webhooks = slices.DeleteFunc(t.webhooks, func(o *webhook) bool { return o == w })
	return noContent
}

// sensitive reports whether the value of a header is hidden.
func sensitive(name string) bool {
	return slices.ContainsFunc([]string{"auth", "key", "token", "secret", "cookie"}, func(part string) bool {
		return strings.Contains(strings.ToLower(name), part)
	})
}

func (s *Server) getWebhookHeaders(_ *request, _ *team, w *webhook) answer {
	shown, hidden := map[string]string{}, []string{}
	for name, value := range w.header {
		if sensitive(name) {
			hidden = append(hidden, name)
		} else {
			shown[name] = value
		}
	}
	slices.Sort(hidden)
	return reply(map[string]any{"headers": shown, "sensitive": hidden})
}

func (s *Server) putWebhookHeaders(r *request, t *team, w *webhook) answer {
	var body struct {
		Headers json.RawMessage `json:"headers"`
	}
	r.decode(webhookHeadersBody, &body)
	if a, bad := r.invalid(); bad {
		return a
	}
	var header map[string]string
	if json.Unmarshal(body.Headers, &header) != nil || header == nil {
		r.add("dict_type", []any{"body", "headers"}, "Input should be a valid dictionary", []byte("null"), nil)
		a, _ := r.invalid()
		return a
	}
	w.header = header
	s.hook(t, w)
	return noContent
}

func (s *Server) getWebhookSecret(_ *request, _ *team, w *webhook) answer {
	return reply(map[string]string{"key": w.secret})
}

// rotateWebhookSecret changes the secret from the next delivery on. The one before it signs too for a day.
func (s *Server) rotateWebhookSecret(r *request, t *team, w *webhook) answer {
	var body struct {
		Key *string `json:"key"`
	}
	if len(r.body) > 0 {
		r.decode(rotateBody, &body)
	}
	if a, bad := r.invalid(); bad {
		return a
	}
	old := secretKey(w.secret)
	if body.Key != nil {
		w.secret = *body.Key
	} else {
		w.secret = s.madeSecret()
	}
	if w.endpoint != nil {
		s.locked(t, func(*Server) {
			w.endpoint.keys = [][]byte{secretKey(w.secret), old}
			w.endpoint.oldUntil = r.now.Add(oldSecretLife)
		})
	}
	return noContent
}
