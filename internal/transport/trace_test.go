package transport

import (
	"context"
	"net/http/httptrace"
	"strings"
	"testing"
)

// net/http finds the hooks of an attempt, which call those of the program too, after their own.
func TestTrace(t *testing.T) {
	var p *proof
	var called []string
	call := func(name string) {
		called = append(called, name)
		if name == "GetConn" && p.lookups != 1 {
			t.Error("the program's hook was called first")
		}
	}
	program := &httptrace.ClientTrace{
		GetConn:              func(string) { call("GetConn") },
		GotConn:              func(httptrace.GotConnInfo) { call("GotConn") },
		PutIdleConn:          func(error) { call("PutIdleConn") },
		GotFirstResponseByte: func() { call("GotFirstResponseByte") },
		TLSHandshakeStart:    func() { call("TLSHandshakeStart") },
		WroteHeaderField:     func(string, []string) { call("WroteHeaderField") },
		WroteHeaders:         func() { call("WroteHeaders") },
	}
	for _, test := range []struct {
		name    string
		context context.Context
		want    string
	}{
		{"without a trace", t.Context(), ""},
		{"with a trace", httptrace.WithClientTrace(t.Context(), program),
			"GetConn TLSHandshakeStart GotConn WroteHeaderField WroteHeaders GotFirstResponseByte PutIdleConn"},
	} {
		ctx, cancel := context.WithCancel(test.context)
		defer cancel()
		called, p = nil, newProof(ctx, cancel)
		p.addTrace(httptrace.ContextClientTrace(ctx))
		hooks := httptrace.ContextClientTrace(&p.ctx)
		hooks.GetConn("api.example.com:443")
		hooks.TLSHandshakeStart()
		hooks.GotConn(httptrace.GotConnInfo{})
		hooks.WroteHeaderField("Host", []string{"api.example.com"})
		hooks.WroteHeaders()
		if hooks.GotFirstResponseByte != nil {
			hooks.GotFirstResponseByte()
			hooks.PutIdleConn(nil)
		}
		if got := strings.Join(called, " "); got != test.want {
			t.Errorf("%s: %s", test.name, got)
		}
		if p.lookups != 1 || len(p.conns) != 1 || p.starts != 1 || p.wrote != 1 || p.phase != Waiting {
			t.Errorf("%s: the attempt's own hooks were not called", test.name)
		}
	}
}
