package bulk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

const allRejected = "bulk: every record so far (%d) was rejected with status %d and no field errors, and none is recorded as rejected: " +
	"check the base URL and whether the team may import orders; if the orders may exist already, start the run again with the same journal and Options.Reconcile; " +
	"if each record is wrong, see Options.RejectionLimit: " +
	"labhealth: POST /v3/order/import: %d %s (request req-1)"

// A run whose first records are all rejected with the same status, as with a wrong base URL, stops
// and records none of them as rejected, so that the corrected run sends them.
func TestRejectionOfEveryRecord(t *testing.T) {
	tests := []struct {
		name    string
		status  int
		records int
		opts    bulk.Options
		before  int // records that an earlier run applied
		err     string
		want    bulk.Report
		most    int // requests
	}{
		{"wrong path", 404, 300, bulk.Options{}, 0, fmt.Sprintf(allRejected, 10, 404, 404, "Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment; APIError.Message has the service's text)"), bulk.Report{Pending: 300}, 13},
		{"wrong path, one worker", 404, 300, bulk.Options{Concurrency: 1}, 0, fmt.Sprintf(allRejected, 10, 404, 404, "Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment; APIError.Message has the service's text)"),
			bulk.Report{Pending: 300}, 10},
		{"wrong path, many workers", 404, 300, bulk.Options{Concurrency: 64}, 0, fmt.Sprintf(allRejected, 10, 404, 404, "Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment; APIError.Message has the service's text)"),
			bulk.Report{Pending: 300}, 73},
		{"not enabled", 400, 300, bulk.Options{}, 0, fmt.Sprintf(allRejected, 10, 400, 400, "Bad Request: rejected (APIError.Message has the service's text)"), bulk.Report{Pending: 300}, 13},
		{"another limit", 400, 300, bulk.Options{RejectionLimit: 3, Concurrency: 1}, 0, fmt.Sprintf(allRejected, 3, 400, 400, "Bad Request: rejected (APIError.Message has the service's text)"),
			bulk.Report{Pending: 300}, 3},
		{"resumed", 404, 300, bulk.Options{}, 100, fmt.Sprintf(allRejected, 10, 404, 404, "Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment; APIError.Message has the service's text)"),
			bulk.Report{Applied: 100, Before: 100, Pending: 200}, 13},
		{"wrong path, few records", 404, 3, bulk.Options{}, 0, fmt.Sprintf(allRejected, 3, 404, 404, "Not Found: rejected (the path or an ID does not exist: check the base URL, WithPath, the IDs and the environment; APIError.Message has the service's text)"), bulk.Report{Pending: 3}, 3},
		{"few records", 400, 3, bulk.Options{}, 0, "<nil>", bulk.Report{Rejected: 3}, 3},
		{"no limit", 404, 300, bulk.Options{RejectionLimit: -1}, 0, "<nil>", bulk.Report{Rejected: 300}, 300},
		{"field errors", 422, 300, bulk.Options{}, 0, "bulk: the last 10 rejected records were all rejected for the same field, body.user_id (missing), and none of them is recorded as rejected: " +
			"correct the field in the source; if each record is wrong by itself, see Options.RejectionLimit: " +
			"labhealth: POST /v3/order/import: 422 Unprocessable Entity: rejected: body.user_id (missing) (request req-1)", bulk.Report{Pending: 300}, 13},
		{"field errors, no limit", 422, 300, bulk.Options{RejectionLimit: -1}, 0, "<nil>", bulk.Report{Rejected: 300}, 300},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, j := &service{latency: time.Millisecond}, new(bulk.Memory)
				list := numbered(test.records)
				if test.before > 0 {
					if _, err := bulk.Run(t.Context(), s.client(t), from(list[:test.before]), j, bulk.Options{}); err != nil {
						t.Fatal(err)
					}
				}
				sent := len(s.sent)
				fault := fmt.Sprint(test.status)
				if strings.HasPrefix(test.name, "field errors") {
					fault += " fields"
				}
				s.onImport = func(int, labhealth.ImportOrderBody) string { return fault }
				report, err := bulk.Run(t.Context(), s.client(t), from(list), j, test.opts)
				checkEqual(t, "error", fmt.Sprint(err), test.err)
				var api *labhealth.APIError
				if err != nil && !errors.As(err, &api) {
					t.Error("the error does not wrap the service's response")
				}
				if n := len(s.sent) - sent; n > test.most || int64(n) != report.Sent {
					t.Errorf("%d requests, want up to %d", n, test.most)
				}
				test.want.Records, test.want.Sent = int64(test.records), report.Sent
				checkCounts(t, report, test.want)
				if err == nil {
					return
				}
				for e := range j.Entries() {
					if e.Step == bulk.StepRejected {
						t.Fatal("the journal contains a rejection")
					}
				}
				s.onImport = nil
				report, err = bulk.Run(t.Context(), s.client(t), from(list), j, bulk.Options{})
				if err != nil || report.Applied != int64(test.records) || len(s.orders) != test.records || !report.Done() {
					t.Errorf("the corrected run: %v, %v, %d orders", report, err, len(s.orders))
				}
			})
		})
	}
}

// An import whose remaining records are all rejected is finished by the run that resumes it: the
// orders of the earlier run show that the base URL is not wrong.
func TestRejectionOfRemainingRecords(t *testing.T) {
	for _, target := range []string{"https://api.example.com", ""} {
		synctest.Test(t, func(t *testing.T) {
			s, j, opts := &service{}, new(bulk.Memory), bulk.Options{Target: target}
			if _, err := bulk.Run(t.Context(), s.client(t), from(numbered(3)), j, opts); err != nil {
				t.Fatal(err)
			}
			s.onImport = func(int, labhealth.ImportOrderBody) string { return "404" }
			report, err := bulk.Run(t.Context(), s.client(t), from(numbered(5)), j, opts)
			if target == "" {
				if err == nil || report.Rejected != 0 || report.Done() {
					t.Errorf("without a target: %v, %v", report, err)
				}
				return
			}
			if err != nil || report.Applied != 3 || report.Rejected != 2 || !report.Done() {
				t.Errorf("%v, %v", report, err)
			}
		})
	}
}

// Rejections do not stop a run, and the records are not sent again, once an order, another status
// or field errors show that the service reads the records.
func TestRejectionOfFirstRecords(t *testing.T) {
	for name, fifth := range map[string]string{"an order": "", "an order in a truncated response": "cut", "another status": "409", "field errors": "400 fields"} {
		for _, workers := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s, %d workers", name, workers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					// The latency keeps a worker from getting ahead of the others by more
					// rejections than the limit.
					s, j := &service{latency: time.Millisecond}, new(bulk.Memory)
					s.onImport = func(n int, _ labhealth.ImportOrderBody) string {
						if n == 5 {
							return fifth
						}
						return "400"
					}
					report, err := bulk.Run(t.Context(), s.client(t), from(numbered(30)), j, bulk.Options{Concurrency: workers})
					if err != nil {
						t.Fatal(err)
					}
					applied := int64(0)
					if fifth == "" || fifth == "cut" {
						applied = 1
					}
					checkCounts(t, report, bulk.Report{Records: 30, Applied: applied, Rejected: 30 - applied, Sent: 30})
					report, err = bulk.Run(t.Context(), s.client(t), from(numbered(30)), j, bulk.Options{})
					if err != nil {
						t.Fatal(err)
					}
					checkCounts(t, report, bulk.Report{Records: 30, Applied: applied, Rejected: 30 - applied, Before: applied})
				})
			})
		}
	}
}

// The target may be corrected only as long as the journal shows that nothing was imported.
func TestCorrectedTarget(t *testing.T) {
	const wrong, right = "https://api.example.com/v3", "https://api.example.com"
	tests := []struct {
		fault string // of each record in the first run
		limit int    // of rejections in the first run
		err   string // of the second run
	}{
		{"404", 0, "<nil>"},
		{"401", 0, "<nil>"},
		{"422 fields", 0, "<nil>"},
		{"", 0, `bulk: the journal belongs to an import into "https://api.example.com/v3", not "https://api.example.com"`},
		{"422 fields", -1, `bulk: the journal belongs to an import into "https://api.example.com/v3", not "https://api.example.com"`},
		{"500", 0, `bulk: the journal belongs to an import into "https://api.example.com/v3", not "https://api.example.com"`},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.fault, " ", test.limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, j := &service{}, new(bulk.Memory)
				s.onImport = func(int, labhealth.ImportOrderBody) string { return test.fault }
				s.onList = func(int, map[string][]string) string { return "404" }
				bulk.Run(t.Context(), s.client(t), from(numbered(20)), j, bulk.Options{Target: wrong, RejectionLimit: test.limit})
				s.onImport, s.onList = nil, nil
				for range 2 {
					report, err := bulk.Run(t.Context(), s.client(t), from(numbered(20)), j, bulk.Options{Target: right})
					checkEqual(t, "error", fmt.Sprint(err), test.err)
					if err == nil && (report.Applied != 20 || len(s.orders) != 20) {
						t.Errorf("%v, %d orders", report, len(s.orders))
					}
				}
				if test.err == "<nil>" {
					if _, err := bulk.Run(t.Context(), s.client(t), from(numbered(20)), j, bulk.Options{Target: wrong}); err == nil {
						t.Error("the target was changed after an import")
					}
				}
			})
		})
	}
}

// withLines returns a source whose records are in the lines from 2 on, as in a CSV file.
func withLines(list []labhealth.ImportOrderBody) bulk.Source {
	return func(yield func(bulk.Record, error) bool) {
		for i, body := range list {
			if !yield(bulk.Record{Body: body, Line: i + 2}, nil) {
				return
			}
		}
	}
}

// Each kind of rejection has its line, its record and a reason, in the order of the source, in the
// run that finds it and in later ones.
func TestRejections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := &service{}, new(bulk.Memory)
		faults := map[string]string{"R": "422 fields", "=2+5": "409", "U": "lost", "P": "401"}
		s.onImport = func(_ int, body labhealth.ImportOrderBody) string { return faults[body.SampleID] }
		s.onList = func(int, map[string][]string) string { return "404" }
		list := records("OK", "C", "R", "=2+5", "I", "C", "U", "D", "D", "P")
		list[4].PatientDetails.Email, list[4].PatientDetails.LastName = "none", ""
		list[5].PatientAddress.City = "Carmel"
		opts := bulk.Options{Concurrency: 1, KeepMessages: true, RejectionLimit: -1}
		if _, err := bulk.Run(t.Context(), s.client(t), withLines(list), j, opts); !errors.Is(err, labhealth.ErrUnauthorized) {
			t.Fatal(err)
		}
		list[0].PatientAddress.City = "Carmel"
		var lines, table, quiet bytes.Buffer
		opts.Rejections, opts.RejectionsCSV = &lines, &table
		if _, err := bulk.Run(t.Context(), s.client(t), withLines(list), j, opts); err == nil {
			t.Fatal("no error without a list")
		}
		const fields = `"fields":[{"path":"body.patient_details.last_name","reason":"is required: 1 to 50 characters"},` +
			`{"path":"body.patient_details.email","reason":"must be an email address: one @ and no spaces"}]`
		checkEqual(t, "rejections", lines.String(),
			`{"outcome":"changed","record":1,"line":2,"sample_id":"OK","reason":"its order exists, but was imported from other values, which are not changed"}
{"outcome":"conflict","record":2,"line":3,"sample_id":"C","reason":"line 7 has the same sample ID and other values, so none of them is sent","other_record":6,"other_line":7}
{"outcome":"rejected","record":3,"line":4,"sample_id":"R","reason":"the service rejected it with status 422","status":422,"request_id":"req-1","fields":[{"path":"body.user_id","reason":"missing"}],"message":"body.user_id: Ada Example"}
{"outcome":"rejected","record":4,"line":5,"sample_id":"=2+5","reason":"the service rejected it with status 409","status":409,"request_id":"req-1","message":"not for Ada Example"}
{"outcome":"invalid","record":5,"line":6,"sample_id":"I","reason":"it is invalid and was not sent",`+fields+`}
{"outcome":"conflict","record":6,"line":7,"sample_id":"C","reason":"line 3 has the same sample ID and other values, so none of them is sent","other_record":2,"other_line":3}
{"outcome":"unknown","record":7,"line":8,"sample_id":"U","reason":"its order may exist: the response was lost, and the next run looks it up"}
{"outcome":"pending","record":10,"line":11,"sample_id":"P","reason":"it has no order yet: the next run sends it","status":401,"request_id":"req-1","message":"not for Ada Example"}
`)
		checkEqual(t, "rejections as CSV", table.String(), `line,record,sample_id,outcome,reason,field,column,status,request_id,other_line,other_record,message
2,1,OK,changed,"its order exists, but was imported from other values, which are not changed",,,,,,,
3,2,C,conflict,"line 7 has the same sample ID and other values, so none of them is sent",,,,,7,6,
4,3,R,rejected,the service requires it,user_id,,422,req-1,,,body.user_id: Ada Example
5,4,'=2+5,rejected,the service rejected it with status 409,,,409,req-1,,,not for Ada Example
6,5,I,invalid,is required: 1 to 50 characters,patient_details.last_name,,,,,,
6,5,I,invalid,must be an email address: one @ and no spaces,patient_details.email,,,,,,
7,6,C,conflict,"line 3 has the same sample ID and other values, so none of them is sent",,,,,3,2,
8,7,U,unknown,"its order may exist: the response was lost, and the next run looks it up",,,,,,,
11,10,P,pending,it has no order yet: the next run sends it,,,401,req-1,,,not for Ada Example
`)
		opts.KeepMessages, opts.Rejections, opts.RejectionsCSV = false, &quiet, &quiet
		if _, err := bulk.Run(t.Context(), s.client(t), withLines(list), j, opts); err == nil {
			t.Fatal("no error without a list")
		}
		if strings.Contains(quiet.String(), "Ada") {
			t.Errorf("the text of the service is written without KeepMessages:\n%s", &quiet)
		}
	})
}

// A sample ID that is not what it looks like, or a date of birth in the future, is not sent: the
// former would be another record than the one without the invisible character.
func TestImplausibleRecords(t *testing.T) {
	list := records("A", "A\u200b", "A\ufeff", "A\x00", "A\nB,C", "B")
	list[5].PatientDetails.DOB.Year = 2999
	var table bytes.Buffer
	report, err := bulk.Run(t.Context(), nil, withLines(list), nil, bulk.Options{DryRun: true, RejectionsCSV: &table})
	if err != nil || report.Pending != 1 || report.Invalid != 5 {
		t.Error(report, err)
	}
	for _, want := range []string{
		"3,2,A\u200b,invalid,has an invisible character,sample_id,", "4,3,A\ufeff,invalid,has an invisible character,sample_id,",
		"5,4,A ,invalid,has a line break or another control character: a quote before it may not be closed,sample_id,",
		"6,5,\"A B,C\",invalid,has a line break", "7,6,B,invalid,is in the future,patient_details.dob,",
	} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, &table)
		}
	}
}

// More rejections than are in memory at once are complete and in order, whatever the order in which
// they were rejected.
func TestManyRejections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := &service{}, new(bulk.Memory)
		s.onImport = func(int, labhealth.ImportOrderBody) string { return "422 fields" }
		bulk.RejectionWindow(t, 7)
		list := numbered(100)
		var lines bytes.Buffer
		for _, n := range []int{50, 100} {
			lines.Reset()
			if _, err := bulk.Run(t.Context(), s.client(t), withLines(list[100-n:]), j, bulk.Options{Rejections: &lines, RejectionLimit: -1}); err != nil {
				t.Fatal(err)
			}
		}
		var want strings.Builder
		for i := range 100 {
			fmt.Fprintf(&want, `{"outcome":"rejected","record":%d,"line":%d,"sample_id":"S-%05d","status":422,"request_id":"req-1",`+
				`"fields":[{"path":"body.user_id","reason":"missing"}]}`+"\n", i+1, i+2, i)
		}
		checkEqual(t, "rejections", withoutReasons(lines.String()), want.String())
	})
}

// What could be a formula in a spreadsheet is not one.
func TestSafeCells(t *testing.T) {
	for cell, want := range map[string]string{
		"S-1": "S-1", "=1": "'=1", "+1": "'+1", "-1": "'-1", "@x": "'@x", " =1": " '=1", "\t=1": " '=1", "a\r\n=1": "a  '=1", "a;=1": "a;'=1",
		"\ufeff=1": "\ufeff'=1", "\"=1": "\"'=1", "\uff1d1": "'\uff1d1", "a,b": "a,b", "2026-01-02": "2026-01-02", "": "", "x\x00=y": "x '=y",
		"'=1": "''=1", "a=b": "a=b",
	} {
		checkEqual(t, fmt.Sprintf("%q", cell), bulk.SafeCell(cell), want)
	}
}

// Rejections that cannot be written are an error. After the end of the context they have what is
// known.
func TestRejectionsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := records("A", "B")
		list[1].PatientDetails.Email = "none"
		for _, opts := range []bulk.Options{{Rejections: brokenWriter{}}, {RejectionsCSV: brokenWriter{}}} {
			report, err := bulk.Run(t.Context(), new(service).client(t), withLines(list), new(bulk.Memory), opts)
			if fmt.Sprint(err) != "bulk: the rejections cannot be written: disk full" || report.Applied != 1 {
				t.Error(report, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var lines bytes.Buffer
		passes := 0
		source := bulk.Source(func(yield func(bulk.Record, error) bool) {
			if passes++; passes == 2 {
				cancel()
			}
			withLines(list)(yield)
		})
		_, err := bulk.Run(ctx, new(service).client(t), source, new(bulk.Memory), bulk.Options{Rejections: &lines})
		if !errors.Is(err, context.Canceled) || strings.Count(lines.String(), "\n") != 1 || !strings.Contains(lines.String(), `"line":3`) {
			t.Errorf("%v\n%s", err, &lines)
		}
	})
}

// A run that does not reach the source knows no strays.
func TestNoStraysWithoutSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := &service{}, new(bulk.Memory)
		s.onImport = func(int, labhealth.ImportOrderBody) string { return "drop" }
		ctx, cancel := context.WithCancel(t.Context())
		opts := bulk.Options{OnError: func(string, error) { cancel() }}
		if report, err := bulk.Run(ctx, s.client(t), withLines(records("A")), j, opts); report.Unknown != 1 {
			t.Fatal(report, err)
		}
		var lines bytes.Buffer
		report, err := bulk.Run(ctx, s.client(t), withLines(records("A")), j, bulk.Options{Rejections: &lines})
		if !errors.Is(err, context.Canceled) || report.Strays != 0 || !report.Incomplete || lines.Len() > 0 {
			t.Errorf("%v, %v, %s", report, err, &lines)
		}
	})
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errDisk }
