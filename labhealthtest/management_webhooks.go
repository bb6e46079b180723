// Webhook endpoints and their secrets.

package labhealthtest

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"
)

// oldSecretLifetime is how long the previous secret signs too after a rotation.
const oldSecretLifetime = 24 * time.Hour

// webhook is a webhook of the management API. If it belongs to the environment and the region of
// the server, it has an endpoint.
type webhook struct {
	ID string `json:"id"`
	webhookSettings
	CreatedAt timestamp `json:"created_at"`
	UpdatedAt timestamp `json:"updated_at"`

	env      string
	secret   string
	header   map[string]string
	endpoint *endpoint
}

type webhookSettings struct {
	URL         string   `json:"url"`
	Description *string  `json:"description"`
	RateLimit   *int64   `json:"rate_limit"`
	Disabled    bool     `json:"disabled"`
	FilterTypes []string `json:"filter_types"`
}

// secretOr returns a secret of the request, or a new one if the request has none.
func (s *Server) secretOr(secret *string) string {
	if secret != nil {
		return *secret
	}
	return secretPrefix + base64.StdEncoding.EncodeToString(s.deriveNext())
}

// signingKeys returns the keys of secrets that were validated.
func signingKeys(secrets ...string) [][]byte {
	var keys [][]byte
	for _, secret := range secrets {
		key, _ := secretKey(secret)
		keys = append(keys, key)
	}
	return keys
}

// withTeamServer calls f with the server of a team while both servers are locked. s is locked
// already.
func (s *Server) withTeamServer(t *team, f func(*Server)) {
	if t.server != s {
		t.server.mu.Lock()
		defer t.server.mu.Unlock()
	}
	f(t.server)
}

// updateEndpoint applies the settings of a webhook to its endpoint, which it creates if needed.
func (s *Server) updateEndpoint(t *team, w *webhook) {
	if w.env != serverEnv || t.Region != serverRegion {
		return
	}
	s.withTeamServer(t, func(server *Server) {
		if server.closed {
			return
		}
		if w.endpoint == nil {
			w.endpoint = &endpoint{client: server.poster, keys: signingKeys(w.secret), waits: retrySchedule, network: server.network}
			server.addEndpoint(w.endpoint)
		}
		e := w.endpoint
		e.url, e.disabled, e.types, e.header = w.URL, w.Disabled, w.FilterTypes, w.header
	})
}

// stopWebhook stops the deliveries to a webhook.
func (s *Server) stopWebhook(t *team, w *webhook) {
	if w.endpoint != nil {
		s.withTeamServer(t, func(server *Server) { server.removeEndpoint(w.endpoint) })
	}
}

func (s *Server) listWebhooks(r *request, t *team) (any, error) {
	found := selectFunc(t.webhooks, func(w *webhook) bool { return w.env == r.vars["environment"] })
	return page(r, "data", found, func(w *webhook) string { return w.ID })
}

func (s *Server) createWebhook(r *request, t *team) (any, error) {
	var body struct {
		webhookSettings
		Secret *string `json:"secret"`
	}
	r.decode(&body)
	now := timestamp(r.now)
	w := &webhook{
		ID: "ep_" + base64.RawURLEncoding.EncodeToString(s.deriveNext()[:20]), webhookSettings: body.webhookSettings,
		CreatedAt: now, UpdatedAt: now, env: r.vars["environment"], secret: s.secretOr(body.Secret),
	}
	t.webhooks = append(t.webhooks, w)
	s.updateEndpoint(t, w)
	return w, nil
}

// onWebhook returns an operation on the webhook in the path.
func onWebhook(handle func(*Server, *request, *team, *webhook) (any, error)) handler {
	return onTeam(func(s *Server, r *request, t *team) (any, error) {
		if w, ok := first(t.webhooks, func(w *webhook) bool { return w.ID == r.vars["webhook_id"] && w.env == r.vars["environment"] }); ok {
			return handle(s, r, t, w)
		}
		return nil, reject(http.StatusNotFound, "Webhook not found")
	})
}

func (s *Server) getWebhook(_ *request, _ *team, w *webhook) (any, error) { return w, nil }

// patchWebhook changes the fields of the body. Null clears the description, the rate limit and the
// filter, and leaves other fields unchanged.
func (s *Server) patchWebhook(r *request, t *team, w *webhook) (any, error) {
	w.FilterTypes = slices.Clone(w.FilterTypes) // The endpoint uses the old slice concurrently.
	r.decode(&w.webhookSettings)
	w.UpdatedAt = timestamp(r.now)
	s.updateEndpoint(t, w)
	return w, nil
}

func (s *Server) deleteWebhook(_ *request, t *team, w *webhook) (any, error) {
	s.stopWebhook(t, w)
	removeFunc(&t.webhooks, func(other *webhook) bool { return other == w })
	return noContent, nil
}

// isSensitive reports whether responses omit the value of a header.
func isSensitive(name string) bool {
	return slices.ContainsFunc([]string{"auth", "key", "token", "secret", "cookie"}, func(word string) bool {
		return strings.Contains(strings.ToLower(name), word)
	})
}

func (s *Server) getWebhookHeaders(_ *request, _ *team, w *webhook) (any, error) {
	headers, sensitive := map[string]string{}, []string{}
	for name, value := range w.header {
		if isSensitive(name) {
			sensitive = append(sensitive, name)
		} else {
			headers[name] = value
		}
	}
	slices.Sort(sensitive)
	return map[string]any{"headers": headers, "sensitive": sensitive}, nil
}

func (s *Server) putWebhookHeaders(r *request, t *team, w *webhook) (any, error) {
	var body struct {
		Headers map[string]string `json:"headers"`
	}
	r.decode(&body)
	w.header = body.Headers
	s.updateEndpoint(t, w)
	return noContent, nil
}

func (s *Server) getWebhookSecret(_ *request, _ *team, w *webhook) (any, error) {
	return map[string]string{"key": w.secret}, nil
}

// rotateWebhookSecret changes the secret from the next delivery on. For a day, the previous secret
// signs too.
func (s *Server) rotateWebhookSecret(r *request, t *team, w *webhook) (any, error) {
	var body struct {
		Key *string `json:"key"`
	}
	r.decode(&body)
	previous := w.secret
	w.secret = s.secretOr(body.Key)
	if w.endpoint != nil {
		s.withTeamServer(t, func(*Server) {
			w.endpoint.keys = signingKeys(w.secret, previous)
			w.endpoint.oldKeysUntil = r.now.Add(oldSecretLifetime)
		})
	}
	return noContent, nil
}
