// Package httptracetest helps tests to replace net/http's transport.
package httptracetest

import (
	"net/http"
	"net/http/httptrace"
)

// SendRequest calls the httptrace hooks of a request in the order in which net/http calls them when
// it sends a request once. It sends nothing.
func SendRequest(req *http.Request) {
	hooks := httptrace.ContextClientTrace(req.Context())
	hooks.GetConn(req.URL.Host)
	hooks.GotConn(httptrace.GotConnInfo{})
	hooks.WroteHeaderField("Host", []string{req.URL.Host})
	hooks.WroteHeaders()
}
