package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// fullDisk is a stdout that cannot be written.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A result that was not written, such as a key that cannot be read again, is a failure.
func TestOutputIncomplete(t *testing.T) {
	service := newService(t, labhealthtest.WithClock(time.Now)) // doctor compares it
	newOrder(t, service, false)
	for _, args := range []string{
		"orders list", "orders list --json", "users list", "keys list", "keys create --label a", "version", "--help", "orders list --help",
		"doctor", "completion bash",
	} {
		var errs bytes.Buffer
		code := run(t.Context(), strings.Fields(args), streams{strings.NewReader(""), fullDisk{}, &errs})
		if code != exitFailed || !strings.Contains(errs.String(), "stdout cannot be written: no space left on device") {
			t.Errorf("%s: %d, %s", args, code, errs.String())
		}
	}
	var errs bytes.Buffer
	if code := run(t.Context(), []string{"orders", "get", "x"}, streams{strings.NewReader(""), fullDisk{}, &errs}); code != exitUsage {
		t.Error(code, errs.String())
	}
}

func TestSuspiciousInput(t *testing.T) {
	newService(t)
	if got := commandWith(t.Context(), t, "[]", "events", "show", "-"); got.code != exitUsage || got.stderr != "labhealth: - has no events\n" {
		t.Errorf("%+v", got)
	}
	got := command(t, "webhooks", "create", "https://example.com/", "--event", "labtest.order.created,labtest.ordr")
	if got.code != 0 || got.stderr != "warning: --event: this version does not know the type \"labtest.ordr\": check its spelling\n" {
		t.Errorf("%+v", got)
	}
}
