package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go/internal/canarytest"
	"github.com/labhealth/labhealth-go/labhealthtest"
	"github.com/labhealth/labhealth-go/webhooks"
)

// newService starts a service and sets the environment for it.
func newService(t *testing.T, opts ...labhealthtest.Option) *labhealthtest.Server {
	t.Helper()
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	opts = append([]labhealthtest.Option{labhealthtest.WithSeed(1), labhealthtest.WithClock(func() time.Time { return noon })}, opts...)
	service := labhealthtest.NewServer(t, opts...)
	setEnvironment(t, map[string]string{
		"LABHEALTH_URL": service.URL, "LABHEALTH_API_KEY": service.APIKey, "LABHEALTH_MANAGEMENT_KEY": service.OrgKey,
		"LABHEALTH_ORG_ID": service.OrgID.String(), "LABHEALTH_TEAM_ID": service.TeamID.String(),
	})
	return service
}

// setEnvironment sets the variables of the command, and unsets all others of it.
func setEnvironment(t *testing.T, values map[string]string) {
	t.Helper()
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "LABHEALTH_") && name != "LABHEALTH_TEST_COMMAND" {
			t.Setenv(name, "")
		}
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("NO_COLOR", "")
	for name, value := range values {
		t.Setenv(name, value)
	}
}

// result is what a command did.
type result struct {
	code           int
	stdout, stderr string
}

var requestID = regexp.MustCompile(`00-[0-9a-f]{32}-[0-9a-f]{16}-01`)

// command runs a command without a terminal.
func command(t *testing.T, args ...string) result {
	t.Helper()
	return commandWith(t.Context(), t, "", args...)
}

func commandWith(ctx context.Context, t *testing.T, input string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(ctx, args, streams{strings.NewReader(input), &out, &errs})
	return result{code, out.String(), requestID.ReplaceAllString(errs.String(), "REQUEST")}
}

func wantResult(t *testing.T, got, want result) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// newOrder returns an order of a new user that has all statuses.
func newOrder(t *testing.T, service *labhealthtest.Server, completed bool) uuid.UUID {
	t.Helper()
	id, err := service.AddOrder(service.AddUsers(1)[0], service.LabTests.WalkIn)
	if err != nil {
		t.Fatal(err)
	}
	for completed {
		if _, err := service.Advance(id); err != nil {
			break
		}
	}
	return id
}

func TestOrders(t *testing.T) {
	service := newService(t)
	done, open := newOrder(t, service, true), newOrder(t, service, false)
	wantResult(t, command(t, "orders", "list"), result{0, fmt.Sprintf(""+
		"ORDER                                 STATUS                                                UPDATED               RESULTS   LAB TEST\n"+
		"%s  received.walk_in_test.ordered                         2026-11-23 12:00:00Z  -         Lipid Panel\n"+
		"%s  completed.walk_in_test.completed                      2026-11-23 12:00:00Z  -         Lipid Panel\n", open, done), ""})
	wantResult(t, command(t, "orders", "list", "--status", "ordered", "--json=false", "--limit", "1", "--show-patient"), result{0, fmt.Sprintf(""+
		"ORDER                                 STATUS                                                UPDATED               RESULTS   LAB TEST                        PATIENT\n"+
		"%s  received.walk_in_test.ordered                         2026-11-23 12:00:00Z  -         Lipid Panel                     Ada Example\n", open), ""})
	wantResult(t, command(t, "orders", "list", "--status", "failure_to_deliver_to_lab"), result{0, "", "no orders match\n"})

	wantResult(t, command(t, "orders", "get", open.String()), result{0, fmt.Sprintf(""+
		"order     %s\nstatus    received.walk_in_test.ordered\nuser      %s\nlab test  Lipid Panel\n"+
		"created   2026-11-23 12:00:00Z\nupdated   2026-11-23 12:00:00Z\npatient   hidden: see --show-patient\n\n"+
		"timeline\n  2026-11-23 12:00:00Z  received.walk_in_test.ordered\n", open, userOf(t, open.String())), ""})
	wantResult(t, command(t, "orders", "results", done.String()), result{0, "" +
		"status      final\nlaboratory  Example Laboratories\n\n" +
		"NAME                                    RESULT  UNIT        RANGE             INTERPRETATION\n" +
		"Total Cholesterol                          182  mg/dL       0-200             normal\n" +
		"HDL Cholesterol                           58.5  mg/dL       >=40              normal\n", ""})
	wantResult(t, command(t, "orders", "results", open.String()), result{3, "",
		"labhealth: GET /v3/order/{order_id}/result: 404 Not Found: rejected (no results yet: labhealth orders get shows the status) (request REQUEST)\n"})
	wantResult(t, command(t, "orders", "cancel", open.String()), result{2, "",
		fmt.Sprintf("labhealth: Cancel the order %s? This cannot be undone. Confirm with --yes, as there is no terminal to ask at\n", open)})
	wantResult(t, command(t, "orders", "cancel", open.String(), "--yes"), result{0,
		fmt.Sprintf("canceled the order %s: cancelled.walk_in_test.cancelled\n", open), ""})
}

func TestOrdersPDF(t *testing.T) {
	service := newService(t)
	id := newOrder(t, service, true).String()
	file := filepath.Join(t.TempDir(), "report.pdf")
	got := command(t, "orders", "pdf", id, "-o", file)
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
	wantResult(t, got, result{0, fmt.Sprintf("%s (results, %d bytes)\n", file, info.Size()), ""})
	got = command(t, "orders", "pdf", id, "-o", "-")
	if got.code != 0 || !strings.HasPrefix(got.stdout, "%PDF-") {
		t.Error(got.code, got.stderr)
	}
	wantResult(t, command(t, "orders", "pdf", id, "-o", "/no/such/file"), result{2, "", "labhealth: /no/such: no such directory\n"})
}

func TestOrdersWatch(t *testing.T) {
	service := newService(t)
	id := newOrder(t, service, false)
	got := command(t, "orders", "watch", id.String(), "--for", "10ms")
	wantResult(t, got, result{1, fmt.Sprintf("2026-11-23 12:00:00Z  %s  received.walk_in_test.ordered\n", id),
		"labhealth: the order is not final yet: its status is received.walk_in_test.ordered\n"})
	go func() {
		for i := 0; i < 10; i++ {
			time.Sleep(30 * time.Millisecond)
			if _, err := service.Advance(id); err != nil {
				return
			}
		}
	}()
	got = command(t, "orders", "watch", id.String(), "--interval", "100ms", "--json")
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	want := fmt.Sprintf(`{"created_at":"2026-11-23T12:00:00Z","order_id":"%s","status":"completed.walk_in_test.completed"}`, id)
	if got.code != 0 || len(lines) != 5 || lines[4] != want {
		t.Errorf("%d %s\n%s", got.code, got.stderr, got.stdout)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	open := newOrder(t, service, false)
	wantResult(t, commandWith(ctx, t, "", "orders", "watch", open.String()), result{130,
		fmt.Sprintf("2026-11-23 12:00:00Z  %s  received.walk_in_test.ordered\n", open), "labhealth: interrupted\n"})
}

func TestUsers(t *testing.T) {
	service := newService(t)
	wantResult(t, command(t, "users", "list"), result{0, "", "there are no users\n"})
	got := commandWith(t.Context(), t, "u-1\n", "users", "create", "-", "--show-patient")
	id := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(got.stdout)
	wantResult(t, got, result{0, "user            " + id + "\nclient user ID  u-1\ncreated         2026-11-23 12:00:00Z\nsources         -\n", ""})
	wantResult(t, command(t, "users", "create", "u-1"), result{3, "", "" +
		"labhealth: POST /v2/user: 400 Bad Request: rejected (the client user ID belongs to a user: labhealth users create --if-missing prints it) (request REQUEST)\n"})
	if got := command(t, "users", "create", "u-1", "--if-missing"); got.code != 0 || !strings.Contains(got.stdout, id) {
		t.Errorf("%+v", got)
	}
	wantResult(t, command(t, "users", "list"), result{0, "USER                                  CREATED               SOURCES\n" + id + "  2026-11-23 12:00:00Z  -\n", ""})
	wantResult(t, command(t, "users", "delete", id, "--yes"), result{0, "deleted the user " + id + ": labhealth users undo restores it\n", ""})
	wantResult(t, command(t, "users", "undo", id), result{0, "restored the user " + id + "\n", ""})
	_ = service
}

func TestWebhooksAndKeys(t *testing.T) {
	service := newService(t)
	got := command(t, "webhooks", "create", "https://example.com/hooks?token=hunter2", "--event", "labtest.order.updated")
	id := regexp.MustCompile(`ep_\w+`).FindString(got.stdout)
	shown := "webhook  " + id + "\nURL      https://example.com/hooks?***\nstate    enabled\nevents   labtest.order.updated\ncreated  2026-11-23 12:00:00Z\n"
	wantResult(t, got, result{0, shown, ""})
	wantResult(t, command(t, "webhooks", "list"), result{0, shown, ""})
	secret := command(t, "webhooks", "secret", id)
	if !regexp.MustCompile(`^whsec_\S+\n$`).MatchString(secret.stdout) || secret.stderr != "" {
		t.Errorf("%+v", secret)
	}
	rotated := command(t, "webhooks", "rotate", id, "--yes")
	if !regexp.MustCompile(`^whsec_\S+\n$`).MatchString(rotated.stdout) || rotated.stdout == secret.stdout {
		t.Errorf("%+v", rotated)
	}
	t.Setenv("LABHEALTH_NEW_WEBHOOK_SECRET", "whsec_c2hvcnQ=")
	wantResult(t, command(t, "webhooks", "rotate", id, "--yes"), result{2, "",
		"labhealth: LABHEALTH_NEW_WEBHOOK_SECRET: secret 1 of 1 has fewer than 24 bytes\n"})
	wantResult(t, command(t, "webhooks", "delete", id, "--yes"), result{0, "deleted the webhook " + id + "\n", ""})
	wantResult(t, command(t, "webhooks", "list"), result{0, "", "the team has no webhooks\n"})

	file := filepath.Join(t.TempDir(), "team.key")
	got = command(t, "keys", "create", "--label", "billing", "-o", file)
	keyID := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(got.stdout)
	wantResult(t, got, result{0, file + " (key ID " + keyID + ")\n", ""})
	t.Setenv("LABHEALTH_API_KEY", "")
	t.Setenv("LABHEALTH_API_KEY_FILE", file)
	if got := command(t, "users", "list"); got.code != 0 {
		t.Errorf("the new key: %+v", got)
	}
	list := command(t, "keys", "list", "--json").stdout
	if key, _ := os.ReadFile(file); strings.Contains(list, strings.TrimSpace(string(key))) || strings.Contains(list, service.APIKey) || strings.Count(list, `"value":"***"`) != 2 {
		t.Errorf("keys list:\n%s", list)
	}
	got = command(t, "keys", "create", "--label", "ops")
	if !strings.HasPrefix(got.stdout, "sk_us_") || !strings.Contains(got.stderr, "it cannot be read again") {
		t.Errorf("%+v", got)
	}
}

func TestSettings(t *testing.T) {
	service := newService(t)
	for _, test := range []struct {
		set  map[string]string
		want string
	}{
		{map[string]string{"LABHEALTH_URL": ""}, "no base URL is set: set LABHEALTH_URL or --base-url to the one that you have from the service, or try --sandbox with a running labhealth sandbox"},
		{map[string]string{"LABHEALTH_URL": "https://api.example.com"}, "no environment is set: set LABHEALTH_ENVIRONMENT or --environment to production-us, production-eu, sandbox-us or sandbox-eu"},
		{map[string]string{"LABHEALTH_ENVIRONMENT": "moon"}, "--environment or LABHEALTH_ENVIRONMENT must be production-us, production-eu, sandbox-us or sandbox-eu"},
		{map[string]string{"LABHEALTH_API_KEY": ""}, "no team API key is set: set LABHEALTH_API_KEY, or LABHEALTH_API_KEY_FILE to a file that only you can read"},
		{map[string]string{"LABHEALTH_API_KEY_FILE": "x"}, "LABHEALTH_API_KEY and LABHEALTH_API_KEY_FILE are both set: unset one"},
		{map[string]string{"LABHEALTH_URL": "http://example.com", "LABHEALTH_ENVIRONMENT": "sandbox-us"}, "sandbox_us: the base URL must be https (http is for loopback addresses only)"},
	} {
		t.Run(test.want, func(t *testing.T) {
			for name, value := range test.set {
				t.Setenv(name, value)
			}
			wantResult(t, command(t, "orders", "list"), result{2, "", "labhealth: " + test.want + "\n"})
		})
	}
	wantResult(t, command(t, "--sandbox", "orders", "list"), result{2, "", "labhealth: --sandbox: no sandbox is running: start one with labhealth sandbox\n"})

	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(service.APIKey+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LABHEALTH_API_KEY", "")
	t.Setenv("LABHEALTH_API_KEY_FILE", file)
	wantResult(t, command(t, "users", "list"), result{2, "", "labhealth: LABHEALTH_API_KEY_FILE: all users can read or change " + file +
		" (mode 0644): run chmod 600 on it, and replace the key if others use this machine\n"})
	os.Chmod(file, 0o640)
	wantResult(t, command(t, "users", "list"), result{0, "", "warning: LABHEALTH_API_KEY_FILE: the group can read or change " + file +
		" (mode 0640): chmod 600 prevents that\nthere are no users\n"})
	os.Chmod(file, 0o600)
	wantResult(t, command(t, "users", "list"), result{0, "", "there are no users\n"})
}

func TestUsage(t *testing.T) {
	newService(t)
	const order = "5b41f610-ebc5-4803-8f0c-a61c3bdc7f02"
	for _, test := range []struct{ args, want string }{
		{"orders", "orders needs a command: advance, cancel, get, import, list, pdf, results, watch"},
		{"orders lst", `orders has no command "lst": use advance, cancel, get, import, list, pdf, results, watch`},
		{"oders", `there is no command "oders": did you mean orders or users?`},
		{"--json=false nothing", `there is no command "nothing": see labhealth --help`},
		{"orders get", "orders get needs the ID of an order: see labhealth orders get --help"},
		{"orders get x", "the ID of the order must be a UUID, such as 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02"},
		{"orders get x y", `orders get has an unexpected argument: "y"`},
		{"orders list --bogus", "unknown flag: --bogus: see labhealth orders list --help"},
		{"orders list --limit x", `--limit must be a whole number, not "x"`},
		{"orders list --interpretation odd", `--interpretation must be normal, abnormal or critical, not "odd"`},
		{"orders list --since yesterday", `--since must be a date such as 2026-01-31, a time such as 2026-01-31T08:00:00Z, or a duration before now such as 24h, not "yesterday"`},
		{"orders list --color red", `--color must be auto, always or never, not "red"`},
		{"orders list --timeout 0s", "--timeout must be positive, such as 30s"},
		{"orders pdf " + order, "--output must be a file, or - for stdout"},
		{"orders pdf --kind x -o y " + order, `--kind must be results, requisition, labels, abn or instructions, not "x"`},
		{"orders watch --interval 1ms " + order, "--interval must be at least 100ms"},
		{"orders import -", "the file must be a file: it is read several times, which stdin does not allow"},
		{"orders import x.csv --separator ab", `--separator must be one character, not "ab"`},
		{"orders import x.csv --rename ab", `--rename must be COLUMN=FIELD, such as DOB=patient_details.dob, or COLUMN=- to ignore the column, not "ab"`},
		{"orders import x.csv --billing free", `--billing must be client_bill, commercial_insurance, patient_bill_passthrough or patient_bill, not "free"`},
		{"users delete", "users delete needs the ID of a user: see labhealth users delete --help"},
		{"keys create", "--label must be a name for the key, such as billing"},
		{"webhooks create example.com", "the URL of the endpoint must be an http or https URL, such as https://example.com/webhooks"},
		{"doctor --webhook example.com", "--webhook must be an http or https URL, such as https://example.com/webhooks"},
		{"doctor --send", "--send needs --webhook URL"},
		{"users list --org sk_us_123", "an argument looks like a key: pass keys by environment variables such as LABHEALTH_API_KEY, or LABHEALTH_API_KEY_FILE, and replace this one, which other users and the history of the shell may have seen"},
	} {
		wantResult(t, command(t, strings.Fields(test.args)...), result{2, "", "labhealth: " + test.want + "\n"})
	}
	wantResult(t, command(t, "orders", "get", "--json"), result{2, "", `{"error":{"message":"orders get needs the ID of an order: see labhealth orders get --help","exit_code":2}}` + "\n"})
}

// TestExitCodes injects what makes each code.
func TestExitCodes(t *testing.T) {
	service := newService(t)
	id := newOrder(t, service, false).String()
	fail := func(operation string, fault labhealthtest.Fault) {
		t.Helper()
		if err := service.FailAfter(operation, 10, fault); err != nil {
			t.Fatal(err)
		}
	}
	fail("POST /v3/order/{order_id}/cancel", labhealthtest.FaultClosed)
	got := command(t, "orders", "cancel", id, "--yes", "--json")
	var e struct {
		Error struct {
			ExitCode  int    `json:"exit_code"`
			Outcome   string `json:"outcome"`
			Operation string `json:"operation"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(got.stderr), &e); err != nil || got.code != 4 || e.Error.ExitCode != 4 || e.Error.Outcome != "unknown" ||
		e.Error.Operation != "POST /v3/order/{order_id}/cancel" {
		t.Errorf("%v: %+v", err, got)
	}
	got = command(t, "users", "create", "lost-not", "--timeout", "5s")
	if got.code != 0 {
		t.Errorf("%+v", got)
	}
	fail("POST /v2/user", labhealthtest.FaultResponse(200, "<html>", "Content-Type", "text/html"))
	got = command(t, "users", "create", "lost", "--timeout", "5s")
	if got.code != 4 || !strings.HasSuffix(got.stderr, "\nThe service may have processed the request: check before you repeat it.\n") {
		t.Errorf("%+v", got)
	}
	fail("GET /v3/order/{order_id}", labhealthtest.FaultResponse(404, `{}`))
	if got = command(t, "orders", "get", id); got.code != 3 {
		t.Errorf("%+v", got)
	}
	service.Close()
	if got = command(t, "orders", "list", "--timeout", "1s"); got.code != 1 {
		t.Errorf("%+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got = commandWith(ctx, t, "", "orders", "list"); got.code != 130 {
		t.Errorf("%+v", got)
	}
}

// leaves returns the commands that do something, such as "orders list".
func leaves(cmd *cobra.Command) []string {
	if !cmd.HasSubCommands() && cmd.Runnable() {
		return []string{strings.TrimPrefix(cmd.CommandPath(), "labhealth ")}
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.Name() != "completion" && c.Name() != "help" {
			names = append(names, leaves(c)...)
		}
	}
	return names
}

// TestJSON runs every command with --json: each line of stdout is JSON, and no patient data and no
// key is on any stream.
func TestJSON(t *testing.T) {
	service := newService(t, labhealthtest.WithClock(time.Now))
	done, open := newOrder(t, service, true).String(), newOrder(t, service, false).String()
	user := userOf(t, open)
	t.Setenv("LABHEALTH_WEBHOOK_SECRET", testSecret)
	dir := t.TempDir()
	file := importFile(t, dir, service, user, 3)
	event := filepath.Join(dir, "event.json")
	os.WriteFile(event, []byte(`{"event_type":"labtest.order.created","data":`+string(rawOrder(t, done))+`}`), 0o600)
	var hook struct{ ID string }
	if err := json.Unmarshal([]byte(command(t, "webhooks", "create", "https://example.com/", "--json").stdout), &hook); err != nil {
		t.Fatal(err)
	}
	table := map[string][]string{
		"orders import":     {file},
		"orders advance":    {newOrder(t, service, false).String()},
		"orders list":       nil,
		"orders get":        {open},
		"orders watch":      {done},
		"orders results":    {done},
		"orders pdf":        {done, "-o", filepath.Join(dir, "x.pdf")},
		"orders cancel":     {open, "--yes"},
		"users list":        nil,
		"users get":         {user},
		"users create":      {"patient/zephyrine#57"},
		"users delete":      {user, "--yes"},
		"users undo":        {user},
		"events show":       {event},
		"webhooks list":     nil,
		"webhooks create":   {"https://example.com/2"},
		"webhooks secret":   {hook.ID},
		"webhooks rotate":   {hook.ID, "--yes"},
		"webhooks delete":   {hook.ID, "--yes"},
		"keys list":         nil,
		"keys create":       {"--label", "x"},
		"doctor":            nil,
		"webhooks generate": nil,
		"version":           nil,
	}
	others := set("sandbox", "sandbox env", "listen", "replay", "exit-codes") // with tests of their own, or for people only
	secret := set("webhooks secret", "webhooks generate", "webhooks rotate", "keys create")
	commands := leaves(newRoot(&app{}))
	for _, name := range []string{"orders import", "orders list", "orders get"} {
		if !strings.Contains(strings.Join(commands, ","), name) {
			t.Errorf("%s is not a command", name)
		}
	}
	sequence := []string{"users delete", "users undo", "webhooks secret", "webhooks rotate", "webhooks delete"}
	for _, name := range commands {
		if args, ok := table[name]; !ok && !others[name] {
			t.Errorf("the table lacks %s", name)
		} else if ok && !strings.Contains(strings.Join(sequence, ","), name) {
			checkJSON(t, service, secret[name], append(append(strings.Fields(name), "--json"), args...))
		}
	}
	for _, name := range sequence {
		checkJSON(t, service, secret[name], append(append(strings.Fields(name), "--json"), table[name]...))
	}
}

const testSecret = "whsec_aW52ZW50ZWQgc2VjcmV0IG9mIHRoZSB0ZXN0cw=="

func checkJSON(t *testing.T, service *labhealthtest.Server, secret bool, args []string) {
	t.Helper()
	got := command(t, args...)
	if got.code != 0 || got.stdout == "" {
		t.Errorf("%v: %+v", args, got)
	}
	lines := bufio.NewScanner(strings.NewReader(got.stdout))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var value map[string]any
		if err := json.Unmarshal(lines.Bytes(), &value); err != nil {
			t.Errorf("%v: %v: %s", args, err, lines.Text())
		}
	}
	hiddenValues := []string{"Grace", "Sample", "Ada", "grace@example.com", "+1415555", "Oak Avenue", "1976-12-09", "S-IMPORT", "patient/zephyrine#57", "1985-12-10", service.APIKey, service.OrgKey}
	for _, value := range hiddenValues {
		if strings.Contains(got.stdout+got.stderr, value) {
			t.Errorf("%v prints %q:\n%s%s", args, value, got.stdout, got.stderr)
		}
	}
	if !secret && regexp.MustCompile(`whsec_|sk_us_|mk_org_`).MatchString(got.stdout+got.stderr) {
		t.Errorf("%v prints a secret:\n%s%s", args, got.stdout, got.stderr)
	}
}

// userOf returns the user of an order.
func userOf(t *testing.T, order string) string {
	t.Helper()
	var o struct {
		UserID string `json:"user_id"`
	}
	if err := json.Unmarshal(rawOrder(t, order), &o); err != nil {
		t.Fatal(err)
	}
	return o.UserID
}

// rawOrder returns the JSON of an order as the service has it.
func rawOrder(t *testing.T, id string) []byte {
	t.Helper()
	got := command(t, "orders", "get", id, "--json", "--show-patient")
	if !strings.Contains(got.stdout, "grace@example.com") && !strings.Contains(got.stdout, "@example.com") {
		t.Errorf("--show-patient hides the patient:\n%s", got.stdout)
	}
	return []byte(strings.TrimSpace(got.stdout))
}

// importFile writes a file of orders of a user.
func importFile(t *testing.T, dir string, service *labhealthtest.Server, user string, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"user_id":"%s","billing_type":"client_bill","order_set":{"lab_test_ids":["%s"]},"collection_method":"walk_in_test",`+
			`"patient_details":{"first_name":"Ada","last_name":"Example","dob":"1985-12-10","gender":"female","phone_number":"+14155550123","email":"ada@example.com"},`+
			`"patient_address":{"receiver_name":"Ada Example","first_line":"1 Example Street","city":"Monterey","state":"CA","zip":"93940","country":"US"},`+
			`"sample_id":"S-IMPORT-%d"}`+"\n", user, service.LabTests.WalkIn, i)
	}
	file := filepath.Join(dir, "orders.jsonl")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

var duration = regexp.MustCompile(` in [0-9.]+m?s`)

func TestImport(t *testing.T) {
	service := newService(t)
	file := importFile(t, t.TempDir(), service, service.AddUsers(1)[0].String(), 3)
	content, _ := os.ReadFile(file)
	os.WriteFile(file, []byte(strings.Replace(string(content), "ada@example.com", "nobody", 1)+"{}x\n"), 0o600)
	got := command(t, "orders", "import", file, "--dry-run")
	wantResult(t, got, result{2, "" +
		"line 1: invalid: patient_details.email: must be an email address: one @ and no spaces\n" +
		"line 4: invalid: is not valid JSON in UTF-8 at byte 2: data after the JSON value\n" +
		"4 records: 0 applied, 2 invalid, 2 pending\nnothing was sent\n",
		"checking: 0 records read\nlabhealth: 2 records are invalid\n"})
	if left, _ := filepath.Glob(file + ".*"); len(left) > 0 || len(service.Orders()) > 0 {
		t.Errorf("a dry run left %v and %d orders", left, len(service.Orders()))
	}
	got = command(t, "orders", "import", file)
	got.stdout = duration.ReplaceAllString(got.stdout, " in 1s")
	got.stderr = regexp.MustCompile(`importing: \d`).ReplaceAllString(got.stderr, "importing: 2")
	wantResult(t, got, result{5, "" +
		"4 records: 2 applied, 2 invalid\nsent 2 requests in 1s\nrecords without an order, and why: " + file + ".rejected.csv\n" +
		"correct these records in the file and repeat the command: " + file + ".journal keeps the others from being imported again\n",
		"checking: 0 records read\nimporting: 2 of 4\nlabhealth: 2 records have no order\n"})
	for _, suffix := range []string{".journal", ".rejected.csv"} {
		if info, err := os.Stat(file + suffix); err != nil || info.Mode() != 0o600 {
			t.Error(suffix, info, err)
		}
	}
	os.WriteFile(file, content, 0o600)
	got = command(t, "orders", "import", file)
	got.stdout = duration.ReplaceAllString(got.stdout, " in 1s")
	if got.code != 0 || !strings.HasPrefix(got.stdout, "3 records: 3 applied\nsent 1 request in 1s\n") || len(service.Orders()) != 3 {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(file + ".rejected.csv"); err == nil {
		t.Error("the old file of rejections is left")
	}
}

func TestImportCSV(t *testing.T) {
	newService(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "clinic.csv")
	os.WriteFile(file, []byte("Kit;client_user_id;patient_details.first_name;patient_details.last_name;DOB;patient_details.gender;patient_details.phone_number;"+
		"patient_details.email;patient_address.receiver_name;patient_address.first_line;patient_address.city;patient_address.state;patient_address.zip;Notes\n"+
		"K-1;c-1;Ada;Example;12/10/1985;female;+14155550123;ada@example.com;Ada Example;1 Example Street;Monterey;CA;93940;\n"+
		"K-2;c-2;Bo;Example;12/10/85;male;+14155550123;bo@example.com;Bo Example;2 Example Street;Monterey;CA;93940;call first\n"), 0o600)
	args := []string{"orders", "import", file, "--separator", ";", "--date-layout", "01/02/2006", "--lab-test", "Lipid Panel", "--billing", "client_bill",
		"--collection", "walk_in_test", "--country", "US", "--rename", "Kit=sample_id", "--rename", "Notes=-", "--rename", "DOB=patient_details.dob"}
	got := command(t, append(args, "--dry-run")...)
	wantResult(t, got, result{2, "" +
		"line 3: invalid: patient_details.dob (column DOB): is not a valid date of the form MM/DD/YYYY: its year has two digits\n" +
		"2 records: 0 applied, 1 invalid, 1 pending\nnothing was sent\n", "checking: 0 records read\nlabhealth: 1 record is invalid\n"})
	if got = command(t, args...); got.code != 5 || !strings.HasPrefix(got.stdout, "2 records: 1 applied, 1 invalid\n") {
		t.Errorf("%+v", got)
	}
}

// The words, columns and mistakes of an office: values, composed fields, warnings, and names of
// unknown columns, which are for the terminal.
func TestImportOfOffice(t *testing.T) {
	service := newService(t)
	file := filepath.Join(t.TempDir(), "office.csv")
	write := func(header string) {
		os.WriteFile(file, []byte(header+"\n"+
			"K-1,u-1,Ada,Example,1985-12-10,F,+14155550123,ada@example.com,1 Example Street,Monterey,CA,93940\n"+
			"K-2,u-2,Renée,Example,1985-12-10,X,12,renee@example.com,2 Example Street,Monterey,CA,93940\n"), 0o600)
	}
	const header = "sample_id,client_user_id,First,Last,patient_details.dob,Sex,patient_details.phone_number,patient_details.email," +
		"patient_address.first_line,patient_address.city,patient_address.state,patient_address.zip"
	write(header)
	args := []string{"orders", "import", file, "--lab-test", service.LabTests.WalkIn.String(), "--billing", "client_bill", "--collection", "walk_in_test",
		"--country", "US", "--rename", "First=patient_details.first_name", "--rename", "Last=patient_details.last_name", "--rename", "Sex=patient_details.gender",
		"--value", "patient_details.gender:f=female", "--compose", "patient_address.receiver_name={First} {Last}"}
	got := command(t, append(args, "--dry-run", "--settle", "45s")...) // shorter than the time limit of the library
	wantResult(t, got, result{0, "" +
		"line 3: warning: patient_details.first_name (column First): is not a name that labs accept: letters without accents, digits and - . , ' " +
		"with single spaces between words, and a letter or digit first\n" +
		"line 3: warning: patient_details.gender (column Sex): is not one of female, male, other, unknown\n" +
		"2 records: 0 applied, 2 pending\nnothing was sent\n1 record has a warning: the service or a lab may reject the order\n", "checking: 0 records read\n"})
	if got = command(t, args...); got.code != exitIncomplete || !strings.HasPrefix(got.stdout, "2 records: 1 applied, 1 rejected\n") {
		t.Errorf("%+v", got)
	}
	rejected, err := os.ReadFile(file + ".rejected.csv")
	if err != nil || !strings.Contains(string(rejected), ",rejected,\"the service does not accept the characters, or the form of the value\",patient_details.first_name,First,422,") {
		t.Errorf("%v: %s", err, rejected)
	}

	write(strings.Replace(header, "First", "Vorname", 1))
	var out, errs terminal
	if code := run(t.Context(), args, streams{strings.NewReader(""), &out, &errs}); code != exitUsage || !strings.Contains(errs.String(), "column C: Vorname\n") {
		t.Errorf("%d %s", code, errs.String())
	}
	if got = command(t, args...); got.code != exitUsage || strings.Contains(got.stderr, "Vorname") || !strings.Contains(got.stderr, "unknown columns, whose values would not be sent: 3 (C); use --rename") {
		t.Errorf("%+v", got)
	}
	write(header)
	for _, c := range []struct{ flag, value, want string }{
		{"--value", "gender=F", "--value must be FIELD:CELL=VALUE"}, {"--value", "gender:F=f", `--value: "gender" is not a field (patient_details.gender?)`},
		{"--compose", "x", "--compose must be FIELD=TEXT"}, {"--compose", "x={First}", `--compose: "x" is not a field`},
	} {
		if got := command(t, append(args, c.flag, c.value)...); got.code != exitUsage || !strings.Contains(got.stderr, c.want) || apiName.MatchString(got.stderr) {
			t.Errorf("%+v, want %s", got, c.want)
		}
	}
}

func TestAdvance(t *testing.T) {
	service := newService(t)
	id := newOrder(t, service, false).String()
	const first = "received.walk_in_test.requisition_created"
	wantResult(t, command(t, "orders", "advance", id, "--to", first), result{0, "the order " + id + " is " + first + "\n", ""})
	wantResult(t, command(t, "orders", "advance", id, "--interpretation", "critical"), result{0, "the order " + id + " is completed.walk_in_test.completed\n", ""})
	if got := command(t, "orders", "list", "--critical"); !strings.Contains(got.stdout, id) {
		t.Errorf("%+v", got)
	}
	wantResult(t, command(t, "orders", "advance", id, "--interpretation", "odd"), result{2, "", "labhealth: --interpretation must be normal, abnormal or critical, not \"odd\"\n"})
}

func TestGenerateSecret(t *testing.T) {
	first, second := command(t, "webhooks", "generate"), command(t, "webhooks", "generate")
	if first.code != 0 || first.stdout == second.stdout {
		t.Error(first, second)
	}
	if _, err := webhooks.NewVerifier(strings.TrimSpace(first.stdout)); err != nil {
		t.Error(err)
	}
}

// TestCommand is the process that other tests start.
func TestCommand(t *testing.T) {
	args := os.Getenv("LABHEALTH_TEST_COMMAND")
	if args == "" {
		t.Skip("other tests start it")
	}
	os.Exit(run(context.Background(), strings.Split(args, "\n"), streams{os.Stdin, os.Stdout, os.Stderr}))
}

// TestImportKilled kills an import twice. In the end, each record has one order.
func TestImportKilled(t *testing.T) {
	const records = 200
	service := newService(t)
	file := importFile(t, t.TempDir(), service, service.AddUsers(1)[0].String(), records)
	t.Setenv("LABHEALTH_TEST_COMMAND", strings.Join([]string{"orders", "import", file, "--rate", "100", "--timeout", "5s", "--settle", "6s"}, "\n"))
	for range 2 {
		before := len(service.Orders())
		cmd := exec.Command(os.Args[0], "-test.run=^TestCommand$")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(30 * time.Second); len(service.Orders()) < before+20 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
	killed := len(service.Orders())
	if killed == 0 || killed >= records {
		t.Fatalf("%d orders after two kills", killed)
	}
	t.Setenv("LABHEALTH_TEST_COMMAND", "")
	got := command(t, "orders", "import", file, "--json", "--timeout", "5s", "--settle", "6s")
	seen := map[string]int{}
	for line := range strings.Lines(command(t, "orders", "list", "--json", "--show-patient").stdout) {
		var order struct {
			SampleID string `json:"sample_id"`
		}
		if err := json.Unmarshal([]byte(line), &order); err != nil {
			t.Fatal(err)
		}
		seen[order.SampleID]++
	}
	if got.code != 0 || len(seen) != records || len(service.Orders()) != records || !strings.Contains(got.stdout, `"applied":200,`) {
		t.Errorf("%d orders of %d samples: %+v", len(service.Orders()), len(seen), got)
	}
}

func TestMask(t *testing.T) {
	for _, test := range []struct{ in, want, shown string }{
		{`{"id":1,"new":{"id":2,"who":"Ada"}}`, `{"id":1,"***":{"id":2,"***":"***"}}`, `{"id":1,"new":{"id":2,"who":"Ada"}}`},
		{`{"value":"sk","results":[{"value":1,"notes":"Ada"}]}`, `{"value":"***","results":[{"value":1,"notes":"***"}]}`, `{"value":"***","results":[{"value":1,"notes":"Ada"}]}`},
		{`{"url":"https://u:p@x.example/a?b#c"}`, `{"url":"https://***@x.example/a?***#***"}`, `{"url":"https://***@x.example/a?***#***"}`},
		{`{"sample_information":{"Ada":{}},"icd_codes":null}`, `{"sample_information":"***","icd_codes":null}`, `{"sample_information":{"Ada":{}},"icd_codes":null}`},
		{`{"a":1,"b":{"c":2,"d":null},"id":3}`, `{"***":"***","***2":{"***":"***","***2":null},"id":3}`, `{"a":1,"b":{"c":2,"d":null},"id":3}`},
		{`{"team_id":["a<b",12345678901234567890]}`, `{"team_id":["a<b",12345678901234567890]}`, `{"team_id":["a<b",12345678901234567890]}`},
	} {
		for show, want := range map[bool]string{false: test.want, true: test.shown} {
			got, err := mask([]byte(test.in), show)
			if err != nil || string(got) != want {
				t.Errorf("%v: %s\n%s, want\n%s", err, test.in, got, want)
			}
		}
	}
	for _, in := range []string{``, `{`, `{"a":`, `1 2`} {
		if got, err := mask([]byte(in), true); err == nil {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func TestEventsShow(t *testing.T) {
	newService(t)
	const user = "5b41f610-ebc5-4803-8f0c-a61c3bdc7f02"
	input := `{"event_type":"daily.data.glucose.created","user_id":"` + user + `","client_user_id":"Ada","extra":"Ada","data":{"source":{"slug":"libre","new":1},"data":[` +
		`{"timestamp":"2026-11-23T08:00:00Z","value":5.1,"unit":"mmol/L","mood":"Ada"},{"timestamp":"2026-11-23T09:00:00Z","value":5.2,"unit":"mmol/L"},{"timestamp":"soon","value":1}]}}` + "\n"
	got := commandWith(t.Context(), t, input, "events", "show", "-")
	wantResult(t, got, result{1, "" +
		"type       daily.data.glucose.created\ndata       webhooks.Samples\nuser       " + user + "\n" +
		"keys       3 samples of glucose, 2026-11-23 08:00:00Z to 2026-11-23 09:00:00Z; 1 without a readable time\n" +
		"malformed  data.data.2.timestamp: not a valid date-time\n" +
		"unknown    ***\nunknown    data.data.*.***\nunknown    data.source.***\nerror      some of the data cannot be read\n",
		"labhealth: an event has parts that cannot be read\n"})
	got = commandWith(t.Context(), t, `{"event_type":"new.type","data":{"a":1}}`+"\n"+`{"event_type":"other"}`+"\n", "events", "show", "-", "--json")
	wantResult(t, got, result{0, `{"type":"new.type","data":"webhooks.Unknown","malformed":[],"unknown":[]}` + "\n" +
		`{"type":"other","data":"webhooks.Unknown","malformed":[],"unknown":[]}` + "\n", ""})
	wantResult(t, commandWith(t.Context(), t, "<html>", "events", "show", "-"), result{2, "no event: not an event: at byte 0: it is not JSON\n",
		"labhealth: there is something that is not an event\n"})
}

func TestDoctor(t *testing.T) {
	service := newService(t, labhealthtest.WithClock(time.Now))
	t.Setenv("LABHEALTH_WEBHOOK_SECRET", testSecret)
	verifier, err := webhooks.NewVerifier(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := webhooks.NewHandler(verifier, func(context.Context, *webhooks.Event) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	receiver := httptest.NewServer(handler)
	defer receiver.Close()
	healthy := "" +
		"ok       settings  " + service.URL + ", a service of this machine\n" +
		"ok       service   responds in 1s\n" +
		"ok       key       the service accepts the key, which is of the region us\n" +
		"ok       clock     differs by 0s from the service\n" +
		"ok       secret    1 secret is well-formed\n"
	replace := func(r result) result {
		r.stdout = regexp.MustCompile(` in \d+m?s`).ReplaceAllString(r.stdout, " in 1s")
		r.stdout = regexp.MustCompile(`differs by [01]s`).ReplaceAllString(r.stdout, "differs by 0s")
		return r
	}
	got := replace(command(t, "doctor", "--webhook", receiver.URL, "--send"))
	wantResult(t, got, result{0, healthy +
		"ok       webhook   the endpoint rejects an unsigned event (401)\n" +
		"ok       webhook   the endpoint rejects an event with a wrong signature (401)\n" +
		"ok       webhook   the endpoint acknowledges a signed event (204 in 1s)\n", ""})
	open := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer open.Close()
	got = replace(command(t, "doctor", "--webhook", open.URL))
	const advice = "                   → verify each delivery before anything else, in Go with webhooks.NewHandler: anyone who knows the URL can send events\n"
	wantResult(t, got, result{1, healthy +
		"failed   webhook   the endpoint accepts an unsigned event (200)\n" + advice +
		"failed   webhook   the endpoint accepts an event with a wrong signature (200)\n" + advice +
		"-        webhook   no signed event was sent\n                   → add --send if your endpoint may receive a test event\n",
		"labhealth: 2 checks failed\n"})
	t.Setenv("LABHEALTH_API_KEY", "sk_us_wrong")
	t.Setenv("LABHEALTH_WEBHOOK_SECRET", "nonsense")
	got = replace(command(t, "doctor"))
	if got.code != 1 || !strings.Contains(got.stdout, "failed   key       the service rejects the key\n") || !strings.Contains(got.stdout, "failed   secret    ") ||
		strings.Contains(got.stdout+got.stderr, "sk_us_wrong") || strings.Contains(got.stdout+got.stderr, "nonsense") {
		t.Errorf("%+v", got)
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	t.Setenv("LABHEALTH_URL", secure.URL)
	got = command(t, "doctor")
	if got.code != 1 || !strings.Contains(got.stdout, "failed   service   GET /v2/user/: the server's certificate is from an unknown authority: not sent (check whether a proxy intercepts TLS") {
		t.Errorf("%+v", got)
	}
	t.Setenv("LABHEALTH_URL", "http://127.0.0.1:1")
	got = command(t, "doctor")
	if got.code != 1 || !strings.Contains(got.stdout, "failed   service   GET /v2/user/: connection refused: not sent (check the host and the port of the base URL") {
		t.Errorf("%+v", got)
	}
}

// terminal is a buffer that is a terminal.
type terminal struct{ bytes.Buffer }

func (*terminal) IsTerminal() bool { return true }

func TestTerminal(t *testing.T) {
	service := newService(t)
	id := newOrder(t, service, false).String()
	t.Setenv("TERM", "xterm")
	for reply, want := range map[string]int{"n\n": 1, "\n": 1, "": 1, "yes\n": 0} {
		var in, out, errs terminal
		in.WriteString(reply)
		code := run(t.Context(), []string{"orders", "cancel", id}, streams{&in, &out, &errs})
		if code != want || !strings.HasPrefix(errs.String(), "Cancel the order "+id+"? This cannot be undone. [y/N] ") {
			t.Errorf("%q: %d\n%s", reply, code, errs.String())
		}
	}
	colored := func(args ...string) bool {
		var out terminal
		run(t.Context(), append(args, "orders", "get", id), streams{strings.NewReader(""), &out, &out})
		return strings.Contains(out.String(), "\x1b[")
	}
	if !colored() || colored("--color", "never") {
		t.Error("colors in a terminal")
	}
	t.Setenv("NO_COLOR", "1")
	if colored() || !colored("--color", "always") {
		t.Error("NO_COLOR")
	}
	if strings.Contains(command(t, "orders", "list").stdout, "\x1b") || !strings.Contains(command(t, "orders", "list", "--color=always").stdout, "\x1b") {
		t.Error("colors without a terminal")
	}
}

func TestCompletion(t *testing.T) {
	service := newService(t)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		got := command(t, "completion", shell)
		if got.code != 0 || len(got.stdout) < 1000 {
			t.Errorf("%s: %+v", shell, got)
		}
		if shell != "bash" && shell != "zsh" {
			continue
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not installed", shell)
			continue
		}
		cmd := exec.Command(path, "-n")
		cmd.Stdin = strings.NewReader(got.stdout)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s -n: %v\n%s", shell, err, out)
		}
	}
	id := newOrder(t, service, false)
	for _, test := range []struct{ args, want string }{
		{"orders get ", id.String() + "\treceived.walk_in_test.ordered\n:36\n"},
		{"orders list --interpretation ", "normal\nabnormal\ncritical\n:4\n"},
		{"--environment ", "production-us\nproduction-eu\nsandbox-us\nsandbox-eu\n:4\n"},
	} {
		got := command(t, append([]string{"__complete"}, strings.Split(test.args, " ")...)...)
		if got.stdout != test.want {
			t.Errorf("%q:\n%s", test.args, got.stdout)
		}
	}
}

// TestHelp reads all help texts as the style of the project wants them.
func TestHelp(t *testing.T) {
	newService(t)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: short help %q", cmd.CommandPath(), cmd.Short)
		}
		if cmd.Runnable() && !cmd.HasSubCommands() && !strings.Contains(cmd.Example, "labhealth "+name(cmd)) {
			t.Errorf("%s has no example: %q", cmd.CommandPath(), cmd.Example)
		}
		if cmd.Runnable() && !cmd.HasSubCommands() && cmd.Long == "" {
			t.Errorf("%s has no long help", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Long) {
			if len([]rune(strings.TrimRight(line, "\n"))) > 120 && cmd.Name() != "completion" {
				t.Errorf("%s: a line of the help is too long: %s", cmd.CommandPath(), line)
			}
		}
		for _, c := range cmd.Commands() {
			if c.Name() != "completion" {
				walk(c)
			}
		}
	}
	walk(newRoot(&app{}))
	wantResult(t, command(t, "help", "exit-codes"), result{0, exitCodesHelp + "\n\n", ""})
}

// TestCanary has patient data and keys wherever the service, a proxy or a user can put them.
func TestCanary(t *testing.T) {
	service := newService(t)
	t.Setenv("LABHEALTH_API_KEY", canarytest.Key)
	t.Setenv("LABHEALTH_MANAGEMENT_KEY", canarytest.Key)
	t.Setenv("LABHEALTH_WEBHOOK_SECRET", canarytest.Key)
	const id = "5b41f610-ebc5-4803-8f0c-a61c3bdc7f02"
	all, _ := json.Marshal(canarytest.All)
	object := fmt.Sprintf(`{"id":"%s","user_id":"%[1]s","key":%[2]s,"value":%[2]s,"message":%[2]s,"detail":%[2]s,"notes":%[2]s,"client_user_id":%[2]s,"new":{"new":[%[2]s]},`+
		`"sample_id":%[2]s,"patient_details":{"first_name":%[2]s,"new":%[2]s},"sample_information":{%[2]s:1},"metadata":{"patient":%[2]s,"dob":%[2]s},"passthrough":%[2]s,`+
		`"results":[{"name":"x","result":"1","notes":%[2]s}],"details":{"type":"testkit","data":{"shipment":{"outbound_tracking_number":%[2]s}}}}`, id, all)
	bodies := map[int]string{
		200: fmt.Sprintf(`{"orders":[%s],"users":[%[1]s],"data":[%[1]s],"order":%[1]s,"total":1,"page":1,"size":50,%s`, object, object[1:]),
		400: object, 401: object, 404: string(all), 500: canarytest.All,
		422: fmt.Sprintf(`{"detail":[{"loc":["body",%s],"msg":%[1]s,"type":%[1]s,"input":%[1]s}]}`, all),
	}
	checker := canarytest.New(t)
	for _, args := range []string{
		"orders list", "orders get " + id, "orders watch --for 1ms " + id, "orders results " + id, "orders cancel --yes " + id, "orders pdf -o - " + id,
		"users list", "users get " + id, "users create u", "users delete --yes " + id, "users undo " + id, "webhooks list", "keys list", "doctor",
	} {
		for status, body := range bodies {
			if status == 500 && !strings.Contains(args, "--yes") {
				continue // reads are repeated after pauses
			}
			service.ClearFaults()
			for _, operation := range labhealthtest.Operations() {
				if err := service.FailBefore(operation, -1, labhealthtest.FaultResponse(status, body)); err != nil {
					t.Fatal(err)
				}
			}
			for _, more := range [][]string{nil, {"--json"}} {
				got := command(t, append(strings.Fields(args), more...)...)
				checker.Text(args, got.stdout)
				checker.Text(args, got.stderr)
				if status == 200 && args == "orders list" && more != nil && !strings.Contains(got.stdout, hidden) {
					t.Errorf("nothing is hidden: %+v", got)
				}
			}
		}
	}
	for _, args := range []string{"--help", "orders import --help", "keys create --help", "completion bash", "version", "orders list " + canarytest.Key} {
		got := command(t, strings.Fields(args)...)
		checker.Text(args, got.stdout+got.stderr)
	}
}

// TestImportInterrupted interrupts an import, which finishes what it has begun and can be resumed.
func TestImportInterrupted(t *testing.T) {
	service := newService(t)
	file := importFile(t, t.TempDir(), service, service.AddUsers(1)[0].String(), 50)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(service.Orders()) < 5 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	got := commandWith(ctx, t, "", "orders", "import", file, "--rate", "50")
	if got.code != 130 || !strings.HasSuffix(got.stdout, "not finished: the same command resumes the import\n") ||
		!strings.HasSuffix(got.stderr, "labhealth: interrupted: the same command resumes the import\n") {
		t.Errorf("%+v", got)
	}
	if got = command(t, "orders", "import", file); got.code != 0 || len(service.Orders()) != 50 {
		t.Errorf("%d orders: %+v", len(service.Orders()), got)
	}
}

// TestImportJSON imports files of one order and of a list.
func TestImportJSON(t *testing.T) {
	service := newService(t)
	dir := t.TempDir()
	content, err := os.ReadFile(importFile(t, dir, service, service.AddUsers(1)[0].String(), 2))
	if err != nil {
		t.Fatal(err)
	}
	var one bytes.Buffer
	first, second, _ := strings.Cut(string(content), "\n")
	json.Indent(&one, []byte(first), "", "  ")
	const workbook = "an Excel workbook (.xlsx) or another ZIP file, such as .ods or .numbers: save it as \"CSV UTF-8\"\n"
	for name, test := range map[string]struct {
		content string
		want    result
	}{
		"one.json":    {one.String(), result{0, "1 records: 0 applied, 1 pending\nnothing was sent\n", "checking: 0 records read\n"}},
		"mark.json":   {"\uFEFF" + one.String(), result{0, "1 records: 0 applied, 1 pending\nnothing was sent\n", "checking: 0 records read\n"}},
		"book.json":   {"PK\x03\x04", result{2, "", "checking: 0 records read\nlabhealth: the file cannot be read: the source is " + workbook}},
		"book.xlsx":   {"PK\x03\x04", result{2, "", "checking: 0 records read\nlabhealth: the file cannot be read: the source is " + workbook}},
		"book.csv":    {"PK\x03\x04", result{2, "", "checking: 0 records read\nlabhealth: the file cannot be read: the source is " + workbook}},
		"list.json":   {"[" + first + ",\n" + second + "]", result{0, "2 records: 0 applied, 2 pending\nnothing was sent\n", "checking: 0 records read\n"}},
		"broken.json": {"{\n\"a\":\n}", result{2, "", "labhealth: " + filepath.Join(dir, "broken.json") + " is not JSON: see line 3\n"}},
	} {
		file := filepath.Join(dir, name)
		os.WriteFile(file, []byte(test.content), 0o600)
		wantResult(t, command(t, "orders", "import", file, "--dry-run"), test.want)
	}
}

// TestSandboxFlag uses a running sandbox by its state file.
func TestSandboxFlag(t *testing.T) {
	setEnvironment(t, nil)
	startBox(t, "--users", "2", "--orders", "1", "--no-console")
	for _, args := range []string{"orders list", "users list", "keys list", "webhooks list", "doctor"} {
		if got := command(t, append([]string{"--sandbox"}, strings.Fields(args)...)...); got.code != 0 {
			t.Errorf("%s: %+v", args, got)
		}
	}
	wantResult(t, command(t, "--sandbox", "--base-url", "http://127.0.0.1:1", "orders", "list"), result{2, "",
		"labhealth: --sandbox has its own address: omit --base-url, --management-url and --environment\n"})
}
