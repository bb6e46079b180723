package warn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/internal/warn"
)

func newLogger() (*slog.Logger, *bytes.Buffer) {
	var written bytes.Buffer
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	return slog.New(slog.NewTextHandler(&written, &slog.HandlerOptions{ReplaceAttr: withoutTime})), &written
}

// A problem that lasts is written at once, and then ever less often, each time with the number.
func TestWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, written := newLogger()
		var l warn.Log
		for range 24 * 3600 {
			l.Warn(logger, "the key is wrong", slog.Int("status", 401))
			time.Sleep(time.Second)
		}
		lines := bytes.Split(bytes.TrimSpace(written.Bytes()), []byte("\n"))
		// After 0, 1, 3, 7, 15, 31, 63 minutes, and then every hour.
		if len(lines) != 29 {
			t.Errorf("%d lines in a day", len(lines))
		}
		for i, want := range []string{
			`level=WARN msg="the key is wrong" status=401`, `level=WARN msg="the key is wrong" status=401 times=60`, `level=WARN msg="the key is wrong" status=401 times=120`,
		} {
			if string(lines[i]) != want {
				t.Errorf("line %d: %s", i+1, lines[i])
			}
		}
	})
}

// The end of a problem is written once, and the next one at once. One that alternates is one.
func TestResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, written := newLogger()
		var l warn.Log
		l.Resolved(logger, "a")
		for range 100 {
			l.Warn(logger, "a")
			l.Resolved(logger, "a", "b")
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		l.Resolved(logger, "b")
		l.Resolved(logger, "a")
		l.Resolved(logger, "a")
		l.Warn(logger, "a")
		want := "level=WARN msg=a\nlevel=INFO msg=\"resolved: a\"\nlevel=WARN msg=a\n"
		if got := written.String(); got != want {
			t.Errorf("written:\n%s", got)
		}
	})
}

// Without a logger, the default one is used that is set at the time.
func TestDefaultLogger(t *testing.T) {
	logger, written := newLogger()
	before := slog.Default()
	defer slog.SetDefault(before)
	var byDefault warn.Log
	slog.SetDefault(logger)
	byDefault.Warn(nil, "a")
	if got := written.String(); got != "level=WARN msg=a\n" {
		t.Error(got)
	}
}

// Only errors of this module are quoted.
func TestCause(t *testing.T) {
	_, err := labhealth.NewClient("key")
	own := &labhealth.ValidationError{Op: "POST /v3/order/import", Fields: []labhealth.FieldError{{Loc: []string{"body"}, Msg: "is required"}}}
	for _, test := range []struct {
		err  error
		want string
	}{
		{own, "error=labhealth: POST /v3/order/import: not sent: body is required"},
		{fmt.Errorf("order of Ada: %w", own), "error=labhealth: POST /v3/order/import: not sent: body is required"},
		{errors.New("order of Ada"), "error_type=*errors.errorString"},
		{fmt.Errorf("order of Ada: %w", context.Canceled), "error_type=*fmt.wrapError"},
		{errors.Join(errors.New("order of Ada"), own), "error_type=*errors.joinError"},
		{err, "error_type=*labhealth.setupError"},
	} {
		if got := warn.Cause(test.err).String(); got != test.want {
			t.Errorf("%s", got)
		}
	}
}

// A problem that comes and goes is written less and less often.
func TestComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, written := newLogger()
		var l warn.Log
		for range 24 * 60 / 2 { // a day
			l.Warn(logger, "a")
			time.Sleep(time.Minute)
			l.Resolved(logger, "a")
			time.Sleep(time.Minute)
		}
		if n := bytes.Count(written.Bytes(), []byte("\n")); n > 60 {
			t.Errorf("%d lines:\n%s", n, written)
		}
	})
}
