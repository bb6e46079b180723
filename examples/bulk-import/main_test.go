package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

// program runs the program in dir and returns its exit status and its output.
func program(ctx context.Context, dir string, terminal bool, args ...string) (status int, stdout, stderr string) {
	var o, e bytes.Buffer
	args = append([]string{"-in", filepath.Join(dir, "orders.jsonl"), "-journal", filepath.Join(dir, "run.journal")}, args...)
	status = run(ctx, func() {}, args, &o, &e, terminal)
	return status, strings.ReplaceAll(o.String(), dir, "DIR"), e.String()
}

func TestProgram(t *testing.T) {
	dir := t.TempDir()
	took := regexp.MustCompile(` in [0-9.]+m?s`)
	failure := regexp.MustCompile(` +1 × labhealth: POST /v3/order/import: 40[04] .*\n`)
	want := func(status int, out string, wantStatus int, wantOut string) {
		t.Helper()
		if out = took.ReplaceAllString(out, " in 1s"); status != wantStatus || out != wantOut {
			t.Errorf("exit status %d, output:\n%s\nwant %d:\n%s", status, out, wantStatus, wantOut)
		}
	}
	const where = "records without an order, and why: DIR/run.journal.rejected.csv\n"

	status, out, _ := program(t.Context(), dir, false, "-n", "50", "-dry-run")
	want(status, out, 0, "50 records: 0 applied, 4 invalid, 46 pending\n"+where)
	if _, err := os.Stat(filepath.Join(dir, "run.journal")); err == nil {
		t.Error("a dry run created a journal")
	}

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	status, out, stderr := program(canceled, dir, false)
	if status != 3 || !strings.HasSuffix(out, "to resume, start the program again with the same -in and -journal\n") || !strings.Contains(stderr, "interrupted") {
		t.Errorf("exit status %d, output:\n%s%s", status, out, stderr)
	}

	status, out, stderr = program(t.Context(), dir, false)
	if len(failure.FindAllString(out, -1)) != 2 {
		t.Errorf("the failures are not shown:\n%s", out)
	}
	out = failure.ReplaceAllString(out, "")
	want(status, out, 0, "50 records: 44 applied, 2 rejected, 4 invalid\nsent 46 requests in 1s\n"+where)
	if strings.Contains(stderr, "\x1b") || !strings.HasPrefix(stderr, "checking: ") {
		t.Errorf("without a terminal: %q", stderr)
	}

	status, out, stderr = program(t.Context(), dir, true)
	want(status, out, 0, "50 records: 44 applied, 2 rejected, 4 invalid\n"+where)
	if !strings.Contains(stderr, "(50/50)") {
		t.Errorf("in a terminal: %q", stderr)
	}

	for name, lines := range map[string]int{"jsonl": 6, "csv": 7} { // with a header
		rejected, err := os.ReadFile(filepath.Join(dir, "run.journal.rejected."+name))
		if err != nil || strings.Count(string(rejected), "\n") != lines || strings.Contains(string(rejected), "Example") {
			t.Errorf("%v\n%s", err, rejected)
		}
	}

	// With the journal lost, the service has no orders, as it stopped with the program.
	if err := os.Remove(filepath.Join(dir, "run.journal")); err != nil {
		t.Fatal(err)
	}
	status, out, _ = program(t.Context(), dir, false, "-reconcile", "-settle", "1m1s", "-dry-run", "-messages")
	want(status, out, 0, "50 records: 0 applied, 4 invalid, 46 pending\n"+where)
	if left, _ := filepath.Glob(filepath.Join(dir, ".rejected-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestProgramErrors(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("LABHEALTH_BASE_URL", "")
	if status, _, stderr := program(t.Context(), dir, false, "-live"); status != 1 || !strings.Contains(stderr, "base URL is empty") {
		t.Error(status, stderr)
	}
	if status, _, _ := program(t.Context(), dir, false, "-nonsense"); status != 2 {
		t.Error(status)
	}
	if err := os.WriteFile(filepath.Join(dir, "run.journal"), []byte("notes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := program(t.Context(), dir, false, "-n", "5"); status != 1 || !strings.Contains(stderr, "is not a journal") {
		t.Error(status, stderr)
	}
}

// A wrong base URL costs a few requests. With the right one the same journal is resumed.
func TestWrongBaseURL(t *testing.T) {
	dir := t.TempDir()
	service := labhealthtest.NewServer(t, labhealthtest.WithSeed(1))
	if err := generate(filepath.Join(dir, "orders.jsonl"), 50, service.AddUsers(20), service.LabTests); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LABHEALTH_API_KEY", service.APIKey)
	t.Setenv("LABHEALTH_BASE_URL", service.URL+"/api")
	status, out, stderr := program(t.Context(), dir, false, "-live", "-concurrency", "1")
	if status != 3 || !strings.HasPrefix(out, "50 records: 0 applied, 4 invalid, 46 pending\nsent 10 requests in ") || !strings.Contains(stderr, "check the base URL") {
		t.Errorf("exit status %d, output:\n%s%s", status, out, stderr)
	}
	t.Setenv("LABHEALTH_BASE_URL", service.URL)
	if status, out, stderr = program(t.Context(), dir, false, "-live"); status != 0 || !strings.HasPrefix(out, "50 records: 44 applied, 2 rejected, 4 invalid\n") {
		t.Errorf("exit status %d, output:\n%s%s", status, out, stderr)
	}
}

// A file of a spreadsheet, with flags for what the service does not have in it.
func TestSpreadsheet(t *testing.T) {
	dir := t.TempDir()
	service := labhealthtest.NewServer(t, labhealthtest.WithSeed(1))
	t.Setenv("LABHEALTH_API_KEY", service.APIKey)
	t.Setenv("LABHEALTH_BASE_URL", service.URL)
	const content = "Kit;client_user_id;First Name;Last Name;DOB;gender;phone_number;email;receiver_name;first_line;city;state;zip;Notes\n" +
		"K-1;c-1;Ada;Example;12/10/1985;female;+14155550123;ada@example.com;Ada Example;1 Example Street;Monterey;CA;93940;\n" +
		"K-2;c-2;Bo;Example;12/10/85;male;+14155550123;bo@example.com;Bo Example;2 Example Street;Monterey;CA;93940;call first\n"
	file := filepath.Join(dir, "clinic.csv")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-live", "-in", file, "-comma", ";", "-dates", "01/02/2006", "-lab-test", service.LabTests.WalkIn.String(), "-billing", "client_bill",
		"-collection", "walk_in_test", "-country", "US", "-rename", "Kit=sample_id", "-rename", "Notes=-", "-rename", "DOB=patient_details.dob"}
	for _, name := range []string{"First Name", "Last Name", "gender", "phone_number", "email"} {
		args = append(args, "-rename", name+"=patient_details."+strings.ToLower(strings.ReplaceAll(name, " ", "_")))
	}
	for _, name := range []string{"receiver_name", "first_line", "city", "state", "zip"} {
		args = append(args, "-rename", name+"=patient_address."+name)
	}
	status, out, stderr := program(t.Context(), dir, false, args...)
	if status != 0 || !strings.HasPrefix(out, "2 records: 1 applied, 1 invalid\n") {
		t.Errorf("exit status %d, output:\n%s%s", status, out, stderr)
	}
	rejected, err := os.ReadFile(filepath.Join(dir, "run.journal.rejected.csv"))
	if err != nil || !strings.Contains(string(rejected), "3,2,K-2,invalid,is not a valid date of the form MM/DD/YYYY: its year has two digits,patient_details.dob,DOB,") {
		t.Errorf("%v\n%s", err, rejected)
	}
	if status, _, stderr = program(t.Context(), dir, false, "-live", "-in", file, "-lab-test", "no such test"); status != 1 || !strings.Contains(stderr, "0 lab tests") {
		t.Error(status, stderr)
	}
}
