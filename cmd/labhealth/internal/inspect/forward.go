package inspect

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// forwardTimeout is the time that the service gives a receiver.
	forwardTimeout = 15 * time.Second
	maxResponse    = 64 << 10 // bytes of a response body that are read; they are not stored
)

func newForwarder(proxy func(*http.Request) (*url.URL, error)) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 proxy,
			DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			DisableCompression:    true,
			MaxIdleConnsPerHost:   64,
			IdleConnTimeout:       30 * time.Second,
			ResponseHeaderTimeout: forwardTimeout,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

var errLoop = errors.New("the URL of the application is that of the inspector itself")

var errHungUp = errors.New("labhealth was stopped before the application responded")

// forward posts a delivery to the application.
func (i *Inspector) forward(ctx context.Context, target string, header http.Header, body []byte) *Forward {
	ctx, cancel := context.WithTimeout(ctx, i.patience)
	defer cancel()
	ctx, hangUp := context.WithCancelCause(ctx)
	defer hangUp(nil)
	defer context.AfterFunc(i.connected, func() { hangUp(errHungUp) })()
	passed := endToEnd(header)
	passed[instanceHeader] = append(slices.Clone(header[instanceHeader]), i.instance)
	return send(ctx, i.forwarder, target, passed, body)
}

// Send posts a delivery to an application as the service does, and nothing else: it is not stored.
func Send(ctx context.Context, target string, header http.Header, body []byte) *Forward {
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	client := newForwarder(http.ProxyFromEnvironment)
	defer client.CloseIdleConnections()
	return send(ctx, client, target, header, body)
}

func send(ctx context.Context, client *http.Client, target string, header http.Header, body []byte) *Forward {
	start := time.Now()
	f := &Forward{URL: target}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		f.Err = "the URL is malformed"
		return f
	}
	f.URL = withoutSecrets(r.URL)
	r.Header = header
	if _, ok := r.Header["User-Agent"]; !ok {
		r.Header["User-Agent"] = nil // none is added
	}
	response, err := client.Do(r)
	if err == nil {
		f.StatusCode = response.StatusCode
		if location, err := response.Location(); err == nil && response.StatusCode/100 == 3 {
			f.Location = shorten(withoutSecrets(location), 300)
		}
		_, err = io.CopyN(io.Discard, response.Body, maxResponse)
		response.Body.Close()
		if err != nil && !errors.Is(err, io.EOF) && ctx.Err() != nil {
			f.StatusCode = 0 // the sender needs the complete response within the same time
		}
	}
	f.Took = time.Since(start)
	switch {
	case f.StatusCode == http.StatusLoopDetected && response.Header.Get(instanceHeader) != "":
		f.StatusCode, f.Err = 0, errLoop.Error()
	case f.StatusCode == 0:
		f.Err = explain(ctx, err)
	}
	return f
}

// failure returns why there was no response.
func (f *Forward) failure() error {
	if f.StatusCode == 0 && f.Err != errHungUp.Error() {
		return errors.New(f.Err)
	}
	return nil
}

// explain describes an error without the URL, which is shown beside it.
func explain(ctx context.Context, err error) string {
	var dns *net.DNSError
	var wrapped *url.Error
	switch {
	case errors.Is(context.Cause(ctx), errHungUp):
		return errHungUp.Error()
	case ctx.Err() != nil:
		return "no complete response within 15 s"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused: is the application running, and on this port?"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the application closed the connection without a complete response"
	case errors.As(err, &dns):
		return "the host name cannot be resolved"
	case errors.As(err, &wrapped):
		return shorten(wrapped.Err.Error(), 200)
	case err == nil:
		return "the response is not complete"
	}
	return shorten(err.Error(), 200)
}

// withoutSecrets returns a URL without its query and its password, which may be secret.
func withoutSecrets(u *url.URL) string {
	c := *u
	c.User, c.RawQuery, c.Fragment, c.RawFragment = nil, "", "", ""
	return c.String()
}

// endToEnd returns the headers that are passed on: all but those of the connection.
func endToEnd(h http.Header) http.Header {
	h = h.Clone()
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			delete(h, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Content-Length", "Host", "Expect", instanceHeader} {
		delete(h, name)
	}
	return h
}

// storedHeader returns the headers that are stored: no credentials, and not too many.
func storedHeader(h http.Header) http.Header {
	kept, size := http.Header{}, 0
	for _, name := range slices.Sorted(maps.Keys(h)) {
		switch name {
		case "Authorization", "Proxy-Authorization", "Cookie", instanceHeader:
			continue
		}
		for _, value := range h[name] {
			if size += len(name) + len(value); size <= maxHeader {
				kept[name] = append(kept[name], strings.ToValidUTF8(value, "\uFFFD"))
			}
		}
	}
	return kept
}
