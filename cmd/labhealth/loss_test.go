package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
)

// An import whose last records are rejected is finished by the same command.
func TestImportOfRejectedRest(t *testing.T) {
	service := newService(t)
	file := importFile(t, t.TempDir(), service, service.AddUsers(1)[0].String(), 2)
	if got := command(t, "orders", "import", file); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(content), "\n")
	start := strings.Index(line, `"user_id":"`) + len(`"user_id":"`)
	line = strings.Replace(line, line[start:start+36], "99999999-9999-4999-8999-999999999999", 1)
	line = strings.Replace(line, "S-IMPORT-0", "S-IMPORT-OTHER", 1)
	if err := os.WriteFile(file, append(content, line+"\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := command(t, "orders", "import", file); got.code != 5 || !strings.Contains(got.stdout, "2 applied, 1 rejected") {
			t.Fatalf("%+v", got)
		}
	}
}

// An error of an import names the flags of the command.
func TestImportNamesFlags(t *testing.T) {
	service := newService(t)
	file := importFile(t, t.TempDir(), service, "99999999-9999-4999-8999-999999999999", 20)
	got := command(t, "orders", "import", file)
	if got.code != 3 || !strings.Contains(got.stderr, "see --rejection-limit") || strings.Contains(got.stderr, "Options.") {
		t.Fatalf("%+v", got)
	}
}

// A replay that is interrupted says how far it came.
func TestInterruptedReplay(t *testing.T) {
	setEnvironment(t, nil)
	file := filepath.Join(t.TempDir(), "deliveries.db")
	i, err := inspect.Open(t.Context(), inspect.Config{File: file})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		i.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")))
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() }))
	defer app.Close()
	got := commandWith(ctx, t, "", "replay", "1-3", "--unsigned", "--file", file, "--to", app.URL, "--delay", "1h")
	if got.code != exitInterrupted || strings.Count(got.stdout, "\n") != 1 ||
		got.stderr != "labhealth: interrupted: 1 delivery was sent, the last is that of 1. To continue, select those that are not listed above\n" {
		t.Errorf("%+v", got)
	}
	got = commandWith(ctx, t, "", "replay", "1-3", "--unsigned", "--file", file, "--to", app.URL)
	if got.code != exitInterrupted || got.stderr != "labhealth: interrupted\n" {
		t.Errorf("%+v", got)
	}
}
