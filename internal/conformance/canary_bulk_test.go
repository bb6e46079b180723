package conformance

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
	"github.com/labhealth/labhealth-go/internal/canarytest"
)

// canaryLines are records with canaries, as lines of JSON. All but the first cannot be read.
var canaryLines = func() string {
	valid, _ := json.Marshal(canaryImport())
	line := string(valid)
	lines := []string{
		line,
		strings.Replace(line, `"`+canaryDOB+`"`, `"11/23/1957 `+canaryLast+`"`, 1),
		strings.Replace(line, `"first_name":"`+canaryFirst+`"`, `"first_name":["`+canaryFirst+`"]`, 1),
		strings.Replace(line, `"email":"`+canaryEmail+`"`, `"email":"`+canaryEmail+`, `+canaryEmail+`"`, 1),
		strings.Replace(line, `"phone_number":"`, `"phone_number":"`+strings.Repeat(canaryNotes, 100), 1),
		line[:len(line)/2],
		allCanaries,
	}
	for i := range lines[1:] { // records that share their sample ID are not sent
		lines[i+1] = strings.Replace(lines[i+1], canarySample, canarySample+string(rune('b'+i)), 1)
	}
	return strings.Join(lines, "\n") + "\n"
}()

// canaryCSV has rows with canaries. None of them can be read.
var canaryCSV = "sample_id,user_id,patient_details.first_name,patient_details.dob,patient_details.email\n" + strings.Join([]string{
	strings.Join([]string{canarySample, canaryUser, canaryFirst, "11/23/1957", canaryEmail}, ","),
	strings.Join([]string{canarySample + "2", canaryUser, canaryFirst + " " + canaryLast, canaryDOB + "T", canaryEmail + " " + canaryEmail}, ","),
	canaryFirst + "," + canaryLast,
	`"` + canaryNotes,
}, "\n")

// bulkOutputs are what an import writes, or passes to a program. Each returns what to check after
// the run. All may have the sample ID, which is what they are for, and no other value.
var bulkOutputs = map[string]func(check *canarytest.Checker, where string, opts *bulk.Options) (after func()){
	"rejections": func(check *canarytest.Checker, where string, opts *bulk.Options) func() {
		var out bytes.Buffer
		opts.Rejections = &out
		return func() {
			check.Text(where, out.String())
			for line := range strings.Lines(out.String()) {
				var r bulk.Rejection
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					check.Text(where, err.Error())
				}
				check.Printed(where, r)
				check.Printed(where, &r)
			}
		}
	},
	"OnError": func(check *canarytest.Checker, where string, opts *bulk.Options) func() {
		opts.OnError = func(_ string, err error) { check.Error(where, err) }
		return func() {}
	},
	"progress": func(check *canarytest.Checker, where string, opts *bulk.Options) func() {
		opts.Progress = func(p bulk.Progress) { check.Value(where, p) }
		return func() {}
	},
}

// An import shows nothing of its records but their sample IDs, whatever the service responds.
func TestCanaryInImports(t *testing.T) {
	all := canarytest.New(t)
	check := all.Except(canarySample)
	runs := 0
	for _, echo := range []string{
		"422 with input", "400 with a text", "400 with an object", "400 with a message", "known phrase and more", "request id", "302", "429",
	} {
		srv := startFaults(t, false, -1, func(x exchange) bool { echoes[echo](x); return true })
		for format, source := range map[string]bulk.Source{
			"JSON lines": bulk.JSONLines(strings.NewReader(canaryLines)),
			"CSV":        csvSource(canaryCSV),
		} {
			runs++
			where := echo + ", " + format
			path := filepath.Join(t.TempDir(), "journal")
			journal := must[*bulk.File](t)(bulk.OpenFile(path))
			opts := bulk.Options{RejectionLimit: -1, Outage: 1, Target: "sandbox"}
			var after []func()
			for name, output := range bulkOutputs {
				after = append(after, output(check, where+", "+name, &opts))
			}
			client := canaryClient(t, all, where, srv.URL, labhealth.WithRetry(labhealth.RetryPolicy{MaxAttempts: 1}))
			report, err := bulk.Run(t.Context(), client, source, journal, opts)
			all.Error(where+" error", err)
			all.Value(where+" report", report)
			for _, look := range after {
				look()
			}
			journal.Close()
			check.Text(where+" journal", string(must[[]byte](t)(os.ReadFile(path))))
			for _, err := range source {
				all.Text(where+" record", errorText(err))
				check.Error(where+" record", err)
			}
			if format == "JSON lines" && report.Sent == 0 {
				t.Errorf("%s: nothing was sent: %v", where, report)
			}
			client.CloseIdleConnections()
		}
	}
	t.Logf("%d imports, %d outputs: %v; %v", runs, len(bulkOutputs)+4, check, all)
}
