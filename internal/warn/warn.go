// Package warn writes what goes wrong in the background to a log: the first time at once, and then
// ever less often, with the number of times.
package warn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A message is written again after minWait at the earliest, and then after twice the wait before,
// up to maxWait.
const (
	minWait = time.Minute
	maxWait = time.Hour
)

// Log counts warnings. Its zero value is empty. It is safe for concurrent use.
type Log struct {
	failing atomic.Int32 // number of problems
	mu      sync.Mutex
	known   map[string]*problem // by message
}

// problem is what a message warns of, until it is resolved.
type problem struct {
	last, next time.Time     // when it occurred last, and when it may be written again
	wait       time.Duration // after next
	unwritten  int           // times since it was written
	resolved   bool          // it has not occurred since
}

// Warn writes a message to a logger, unless it was written a short time ago. The message is a
// constant text that names what to change; it is counted by this text. Neither it nor the
// attributes may hold patient data. A nil logger is slog.Default() at the time of the call.
func (l *Log) Warn(logger *slog.Logger, message string, attrs ...slog.Attr) {
	l.mu.Lock()
	now := time.Now()
	p := l.known[message]
	if p == nil {
		if l.known == nil {
			l.known = map[string]*problem{}
		}
		p = &problem{wait: minWait, resolved: true}
		l.known[message] = p
	}
	if p.resolved { // it is written at once, but one that comes and goes is resolved less often
		p.resolved, p.next, p.unwritten = false, now, 0
		l.failing.Add(1)
		if now.Sub(p.last) > maxWait {
			p.wait = minWait
		}
	}
	p.last = now
	p.unwritten++
	times := p.unwritten
	if now.Before(p.next) {
		l.mu.Unlock()
		return
	}
	p.next, p.wait, p.unwritten = now.Add(p.wait), min(2*p.wait, maxWait), 0
	l.mu.Unlock()
	if times > 1 {
		attrs = append(attrs[:len(attrs):len(attrs)], slog.Int("times", times))
	}
	write(logger, slog.LevelWarn, message, attrs)
}

// Resolved reports that what the messages warn of works. If one of them was written, and the
// problem has not occurred for a while, that is written once.
func (l *Log) Resolved(logger *slog.Logger, messages ...string) {
	if l.failing.Load() == 0 {
		return
	}
	for _, message := range messages {
		l.mu.Lock()
		p := l.known[message]
		resolved := p != nil && !p.resolved && time.Since(p.last) > p.wait/4
		if resolved {
			p.resolved = true
			l.failing.Add(-1)
		}
		l.mu.Unlock()
		if resolved {
			write(logger, slog.LevelInfo, "resolved: "+message, nil)
		}
	}
}

func write(logger *slog.Logger, level slog.Level, message string, attrs []slog.Attr) {
	if logger == nil {
		logger = slog.Default()
	}
	logger.LogAttrs(context.Background(), level, message, attrs...)
}

// Cause returns an attribute for an error. Errors of a program may quote patients: unless an
// exported type of this module is among those that err wraps, whose messages never do, it has only
// the type of err.
func Cause(err error) slog.Attr {
	for e := err; e != nil; e = errors.Unwrap(e) {
		typ := reflect.TypeOf(e)
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if strings.HasPrefix(typ.PkgPath(), module) && typ.Name() != "" && typ.Name()[0] < 'a' {
			return slog.String("error", e.Error())
		}
	}
	return slog.String("error_type", reflect.TypeOf(err).String())
}

// Stack returns the type of a recovered value, which may hold anything, and the stack of the panic.
// The deferred function that recovers calls it.
func Stack(value any) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%T", value)
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		fmt.Fprintf(&b, "\n%s %s:%d", f.Function, f.File, f.Line)
	}
	return b.String()
}

const module = "github.com/labhealth/labhealth-go"
