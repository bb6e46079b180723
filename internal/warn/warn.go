// Package warn writes what goes wrong in the background to a log: the first time at once, and then
// ever less often, with the number of times.
package warn

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
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

// Log writes warnings. The zero value writes to [slog.Default]. It is safe for concurrent use.
type Log struct {
	// Logger is where warnings are written; nil means slog.Default() at the time of the warning.
	Logger *slog.Logger

	failing atomic.Int32 // number of problems
	mu      sync.Mutex
	known   map[string]*problem // by message
}

// problem is what a message warns of, until it is resolved.
type problem struct {
	last, next time.Time     // when it occurred last, and when it may be written again
	wait       time.Duration // after next
	unwritten  int           // times since it was written
}

// Warn writes a message, unless it was written a short time ago. The message is a constant text
// that names what to change; it is counted by this text. Neither it nor the attributes may hold
// patient data.
func (l *Log) Warn(message string, attrs ...slog.Attr) {
	l.mu.Lock()
	now := time.Now()
	p := l.known[message]
	if p == nil {
		if l.known == nil {
			l.known = map[string]*problem{}
		}
		p = &problem{wait: minWait}
		l.known[message] = p
		l.failing.Add(1)
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
	l.write(slog.LevelWarn, message, attrs)
}

// Resolved reports that what the messages warn of works. If one of them was written, and the
// problem has not occurred for a while, that is written once.
func (l *Log) Resolved(messages ...string) {
	if l.failing.Load() == 0 {
		return
	}
	for _, message := range messages {
		l.mu.Lock()
		p := l.known[message]
		resolved := p != nil && time.Since(p.last) > p.wait/4
		if resolved {
			delete(l.known, message)
			l.failing.Add(-1)
		}
		l.mu.Unlock()
		if resolved {
			l.write(slog.LevelInfo, "resolved: "+message, nil)
		}
	}
}

func (l *Log) write(level slog.Level, message string, attrs []slog.Attr) {
	logger := l.Logger
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

const module = "github.com/labhealth/labhealth-go"
