package bulk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

// TestSpreadsheet imports 300 rows of a spreadsheet that have 20 mistakes of 10 kinds, in a process
// that is killed while it creates users, and again while it imports.

// spreadsheetMistake changes a cell of a row.
type spreadsheetMistake struct {
	column int // -1 for the last cell, which is removed
	cell   string
	want   string // column: reason
	isSent bool   // the service finds it, so that the user exists
}

var spreadsheetMistakes = []spreadsheetMistake{
	{4, "12/10/85", "DOB: is not a valid date of the form MM/DD/YYYY: its year has two digits", false},
	{4, "12/10/1985 0:00", "DOB: is not a valid date of the form MM/DD/YYYY: it has a time of day", false},
	{6, "1.41556E+10", "Phone: is in scientific notation: a spreadsheet has dropped its digits", false},
	{11, "2139", "Zip: has fewer than 5 digits: a spreadsheet has dropped the leading zero", false},
	{7, "ada.example.com", "Email: must be an email address: one @ and no spaces", false},
	{1, "", "Client ID: is required: the row has neither a user ID nor a client user ID", false},
	{9, "Caf\xe9", `City: is not valid UTF-8: the file may be in Windows-1252; save it as "CSV UTF-8"`, false},
	{-1, "", ": has 13 cells, and the header has 14", false},
	{12, "no", "Consent: must be yes", false},
	{6, "12", "Phone: value_error", true},
}

const spreadsheetHeader = "Kit,Client ID,First Name,Last Name,DOB,Sex,Phone,Email,Street,City,State,Zip,Consent,Notes\r\n"

// writeSpreadsheet writes the file. It returns the reasons by line, and the sample IDs and the
// client user IDs that the service has in the end. lines are the lines of the records.
func writeSpreadsheet(t *testing.T, name string) (reasons map[int]string, orders, users map[string]bool, lines []int) {
	t.Helper()
	reasons, orders, users = map[int]string{}, map[string]bool{}, map[string]bool{}
	content, line := spreadsheetHeader, 2
	for i := range 300 {
		cells := []string{
			fmt.Sprint("K-", i), fmt.Sprint("client ", i), "Ada", "Example", "2/9/1985", "F", "+14155550123", "ada@example.com",
			"1 Example Street", "Monterey", "CA", "93940", "yes", "",
		}
		height := 1
		switch {
		case i%15 == 7: // 20 rows
			m := spreadsheetMistakes[i/15%10]
			if m.column < 0 {
				cells = cells[:len(cells)-1]
			} else {
				cells[m.column] = m.cell
			}
			reasons[line] = m.want
			if m.isSent {
				users[cells[1]] = true
			}
		case i%15 == 3:
			cells[1] = "client 1" // who has several orders
			cells[13], height = "\"call first,\r\nthen \"\"ring\"\"\"", 2
			fallthrough
		default:
			orders[cells[0]], users[cells[1]] = true, true
		}
		content += strings.Join(cells, ",") + "\r\n"
		lines = append(lines, line)
		line += height
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return reasons, orders, users, lines
}

// playSpreadsheet runs the import in the working directory.
func playSpreadsheet() int {
	client, err := labhealth.NewClient(os.Getenv("LABHEALTH_API_KEY"), labhealth.WithBaseURL(os.Getenv("LABHEALTH_URL")))
	if err != nil {
		return 1
	}
	rejections, err := os.Create("rejections.jsonl")
	if err != nil {
		return 1
	}
	report, err := importSpreadsheet(context.Background(), client, "clinic.csv", uuid.MustParse(os.Getenv("LABHEALTH_TEST_ID")), bulk.Options{
		Rate: 250, Timeout: 500 * time.Millisecond, Settle: 700 * time.Millisecond, Rejections: rejections,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	json.NewEncoder(os.Stdout).Encode(report)
	return 0
}

func TestSpreadsheet(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long")
	}
	if runtime.GOOS == "windows" {
		t.Skip("a killed process looks like a failed one")
	}
	dir := t.TempDir()
	reasons, orders, users, lines := writeSpreadsheet(t, filepath.Join(dir, "clinic.csv"))
	at, _ := startService(t, "LABHEALTH_BULK_FAULTS=none")
	client, err := labhealth.NewClient(at.Key, labhealth.WithBaseURL(at.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	before := len(clientIDs(t, client))

	// run runs the importer until it ends, or kills it as soon as isDue.
	run := func(isDue func() bool) (report bulk.Report) {
		t.Helper()
		cmd := role(t, "spreadsheet", "LABHEALTH_URL="+at.URL, "LABHEALTH_API_KEY="+at.Key, "LABHEALTH_TEST_ID="+at.Test.String())
		cmd.Dir = dir
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waited := make(chan error, 1)
		go func() { waited <- cmd.Wait() }()
		for isDue != nil && !isDue() {
			select {
			case err := <-waited:
				t.Fatalf("ended before it was due: %v\n%s%s", err, &stdout, &stderr)
			case <-time.After(5 * time.Millisecond):
			}
		}
		if isDue != nil {
			cmd.Process.Kill()
		}
		switch err := <-waited; {
		case isDue != nil && !wasKilled(err):
			t.Fatalf("not killed: %v\n%s", err, &stderr)
		case isDue == nil && (err != nil || json.Unmarshal(stdout.Bytes(), &report) != nil):
			t.Fatalf("%v\n%s", err, &stderr)
		}
		return report
	}
	run(func() bool { return len(clientIDs(t, client)) > before+100 })
	run(func() bool { _, count := listOrders(t, at); return count > 100 })
	_, killed := listOrders(t, at)
	start := time.Now()
	report := run(nil)
	t.Logf("killed with %d orders; finished %.1f s later: %v", killed, time.Since(start).Seconds(), &report)

	created, count := listOrders(t, at)
	checkEqual(t, "orders", slices.Sorted(maps.Keys(created)), slices.Sorted(maps.Keys(orders)))
	if count != len(orders) || count != 280 || killed >= count {
		t.Errorf("%d orders, %d before the kill", count, killed)
	}
	wantUsers := slices.Sorted(maps.Keys(users))
	for _, u := range clientIDs(t, client) {
		if !strings.HasPrefix(u, "client ") {
			wantUsers = append(wantUsers, u) // of the service at its start
		}
	}
	slices.Sort(wantUsers)
	checkEqual(t, "users", clientIDs(t, client), wantUsers)
	rejections, err := os.ReadFile(filepath.Join(dir, "rejections.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	checkEqual(t, "mistakes", readReasons(t, rejections, lines), reasons)
}
