// The sources that users connect, with their devices.

package labhealthtest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/google/uuid"
)

type connectedSource struct {
	Provider  source    `json:"provider"`
	CreatedOn timestamp `json:"created_on"`
	Source    source    `json:"source"` // the former name of provider

	err     *connectionError // nil if the connection works
	devices []*device
}

type source struct {
	Name string `json:"name"`
	Slug string `json:"slug"`
	Logo string `json:"logo"`
}

type connectionError struct {
	ErrorType    string    `json:"error_type"`
	ErrorMessage string    `json:"error_message"`
	ErroredAt    timestamp `json:"errored_at"`
}

type device struct {
	ID           uuid.UUID `json:"id"`
	UserID       uuid.UUID `json:"user_id"`
	Provider     string    `json:"provider"`
	SourceType   string    `json:"source_type"`
	AppID        *string   `json:"app_id"`
	Manufacturer string    `json:"device_manufacturer"`
	Model        string    `json:"device_model"`
	Version      *string   `json:"device_version"`
	DeviceID     string    `json:"device_id"`
}

// resourceAccess is whether a resource can be read. The providers of the server have no scopes.
type resourceAccess struct {
	Status            string  `json:"status"`
	ScopeRequirements *string `json:"scope_requirements"`
}

// resourceAvailability returns the availability of the resources of a provider.
func resourceAvailability(slug string, works bool) map[string]resourceAccess {
	status := "available"
	if !works {
		status = "unavailable"
	}
	found := map[string]resourceAccess{}
	for _, resource := range providerOf(slug).resources {
		found[resource] = resourceAccess{Status: status}
	}
	return found
}

// Connect connects a source to a user, such as "oura" or "apple_health_kit", and sends the event
// provider.connection.created. The source has one device. If it is already connected, Connect
// repairs the connection and sends the event. Connect returns an error if the user does not exist.
func (s *Server) Connect(userID uuid.UUID, slug string) error {
	return s.withUser(userID, func(u *user) error {
		s.connect(u, slug)
		return nil
	})
}

func (s *Server) connect(u *user, slug string) {
	src := sourceOf(slug)
	c := u.connection(slug)
	if c == nil {
		c = &connectedSource{CreatedOn: timestamp(s.now()), Source: src, Provider: src}
		c.devices = []*device{s.newDevice(u, c, providerOf(slug).deviceModel)}
		u.ConnectedSources = append(u.ConnectedSources, c)
		s.addHistoricalPulls(u, slug)
	}
	c.err = nil
	s.reportUser(u)
	s.emit(u, "provider.connection.created", map[string]any{
		"user_id":               u.UserID,
		"source":                src,
		"provider":              src,
		"external_user_id":      c.externalUserID(),
		"resource_availability": resourceAvailability(slug, true),
	})
}

// SetConnectionError breaks the connection of a user to a source, such as "oura", and sends the
// event provider.connection.error. errorType is the reason, such as "token_refresh_failed". Connect
// repairs the connection. SetConnectionError returns an error if the user does not exist or the
// source is not connected.
func (s *Server) SetConnectionError(userID uuid.UUID, slug, errorType string) error {
	return s.withSource(userID, slug, func(u *user, c *connectedSource) error {
		c.err = &connectionError{errorType, "The connection to " + c.Source.Name + " does not work.", timestamp(s.now())}
		s.reportUser(u)
		s.emit(u, "provider.connection.error", map[string]any{
			"user_id": u.UserID, "provider": slug, "error_type": errorType, "message": c.err.ErrorMessage, "error_details": "",
		})
		return nil
	})
}

var errNotConnected = errors.New("labhealthtest: the source is not connected")

// AddDevice adds a device to a source of a user, such as "oura", sends the event
// provider.device.created and returns the ID of the device. It returns an error if the user does
// not exist or the source is not connected.
func (s *Server) AddDevice(userID uuid.UUID, slug, model string) (id uuid.UUID, err error) {
	err = s.withSource(userID, slug, func(u *user, c *connectedSource) error {
		d := s.newDevice(u, c, model)
		id, c.devices = d.ID, append(c.devices, d)
		s.reportUser(u)
		s.emit(u, "provider.device.created", d)
		return nil
	})
	return id, err
}

// newDevice returns a device of a source. Its IDs do not affect those of other objects.
func (s *Server) newDevice(u *user, c *connectedSource, model string) *device {
	p := providerOf(c.Source.Slug)
	b := s.derive(fmt.Sprintf("device %s %d", p.slug, len(c.devices)), u.number)
	id := version4(uuid.UUID(b[:16]))
	return &device{
		ID: id, UserID: u.UserID, Provider: p.slug, SourceType: p.devices, Manufacturer: p.deviceManufacturer, Model: model,
		DeviceID: "serial-" + id.String()[:8],
	}
}

// connection returns the connection of a user to a source, or nil.
func (u *user) connection(slug string) *connectedSource {
	c, _ := first(u.ConnectedSources, func(c *connectedSource) bool { return c.Source.Slug == slug })
	return c
}

func (u *user) isConnected(slug string) bool { return u.connection(slug) != nil }

// externalUserID returns the ID of the user at the provider.
func (c *connectedSource) externalUserID() string { return "external-" + c.devices[0].ID.String()[24:] }

// sourceName returns "Apple Health Kit" for "apple_health_kit".
func sourceName(slug string) string {
	words := strings.FieldsFunc(slug, func(r rune) bool { return r == '_' || r == '-' })
	for i, w := range words {
		first := []rune(w)
		first[0] = unicode.ToUpper(first[0])
		words[i] = string(first)
	}
	return strings.Join(words, " ")
}

// listConnectedProviders responds with a map that has one list, called providers.
func (s *Server) listConnectedProviders(_ *request, u *user) (any, error) {
	type withStatus struct {
		source
		CreatedOn      timestamp                 `json:"created_on"`
		Status         string                    `json:"status"`
		ExternalUserID string                    `json:"external_user_id"`
		ErrorDetails   *connectionError          `json:"error_details"`
		Availability   map[string]resourceAccess `json:"resource_availability"`
	}
	list := []withStatus{}
	for _, c := range u.ConnectedSources {
		status := "connected"
		if c.err != nil {
			status = "error"
		}
		list = append(list, withStatus{
			c.Source, c.CreatedOn, status, c.externalUserID(), c.err, resourceAvailability(c.Source.Slug, c.err == nil),
		})
	}
	return map[string]any{"providers": list}, nil
}

// disconnect removes a source with its device and its historical pulls. It sends no event.
func (s *Server) disconnect(r *request, u *user) (any, error) {
	slug := r.vars["provider"]
	if !removeFunc(&u.ConnectedSources, func(c *connectedSource) bool { return c.Source.Slug == slug }) {
		return nil, reject(http.StatusNotFound, "Provider is not connected")
	}
	u.pulls = slices.DeleteFunc(u.pulls, func(p *historicalPull) bool { return p.slug == slug })
	s.reportUser(u)
	return success, nil
}

func (s *Server) listDevices(_ *request, u *user) (any, error) {
	list := []*device{}
	for _, c := range u.ConnectedSources {
		list = append(list, c.devices...)
	}
	return list, nil
}

func (s *Server) getDevice(r *request, u *user) (any, error) {
	id := r.pathUUID("device_id")
	for _, c := range u.ConnectedSources {
		if d, ok := first(c.devices, func(d *device) bool { return d.ID == id }); ok {
			return d, nil
		}
	}
	return nil, reject(http.StatusNotFound, "Device not found")
}
