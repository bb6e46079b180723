package transport

import (
	"context"
	"net/http/httptrace"
)

// traceKey is the context key under which net/http looks for the hooks of a request. With
// httptrace.WithClientTrace, the only other user of the key, every program would link what package
// reflect needs to make and call functions.
var traceKey = func() any {
	var r keyRecorder
	httptrace.ContextClientTrace(&r)
	return r.key
}()

// keyRecorder is a context that records the key of which the value is asked.
type keyRecorder struct {
	context.Context
	key any
}

func (r *keyRecorder) Value(key any) any {
	r.key = key
	return nil
}

// addTrace adds the hooks of the context's own trace, if it has one. As with
// httptrace.WithClientTrace, they are called after those of p.
func (p *proof) addTrace(program *httptrace.ClientTrace) {
	if program == nil {
		return
	}
	own, all := p.trace, *program
	all.GetConn = inOrder(own.GetConn, program.GetConn)
	all.GotConn = inOrder(own.GotConn, program.GotConn)
	all.PutIdleConn = inOrder(own.PutIdleConn, program.PutIdleConn)
	all.TLSHandshakeStart = own.TLSHandshakeStart
	if f := program.TLSHandshakeStart; f != nil {
		all.TLSHandshakeStart = func() { own.TLSHandshakeStart(); f() }
	}
	all.WroteHeaders = own.WroteHeaders
	if f := program.WroteHeaders; f != nil {
		all.WroteHeaders = func() { own.WroteHeaders(); f() }
	}
	all.WroteHeaderField = own.WroteHeaderField
	if f := program.WroteHeaderField; f != nil {
		all.WroteHeaderField = func(name string, value []string) { own.WroteHeaderField(name, value); f(name, value) }
	}
	p.trace = all
}

// inOrder returns a hook that calls both. Each may be nil.
//
//go:noinline // it is rare
func inOrder[T any](first, second func(T)) func(T) {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(v T) { first(v); second(v) }
}
