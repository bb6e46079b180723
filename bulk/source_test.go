package bulk_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

// read ranges twice over a source and checks that it yields the same both times.
func read(t *testing.T, source bulk.Source) (list []labhealth.ImportOrderBody, errs []string) {
	t.Helper()
	for n := range 2 {
		var bodies []labhealth.ImportOrderBody
		var messages []string
		for record, err := range source {
			if err != nil {
				messages = append(messages, err.Error())
			} else {
				bodies = append(bodies, record.Body)
			}
		}
		if n == 1 && (cmp.Diff(list, bodies) != "" || cmp.Diff(errs, messages) != "") {
			t.Error("the second range differs from the first")
		}
		list, errs = bodies, messages
	}
	return list, errs
}

const whole = `{
	"user_id": "00000000-0000-4000-8000-00000000000a", "billing_type": "client_bill",
	"order_set": {"lab_test_ids": ["5b41f610-ebc5-4803-8f0c-a61c3bdc7f02", "5b41f610-ebc5-4803-8f0c-a61c3bdc7f03"],
		"add_on": {"marker_ids": [901, 902], "provider_ids": ["P-901"]}, "lab_account_id": "00000000-0000-4000-8000-000000000003"},
	"collection_method": "walk_in_test",
	"physician": {"first_name": "Jane", "last_name": "Doctor", "npi": "1234567890", "email": "jane@example.com",
		"licensed_states": ["CA", "NV"], "signature_image": {"content": "AAAA", "content_type": "image/png"}},
	"patient_details": {"first_name": "Ada", "last_name": "Example", "dob": "2015-12-10", "gender": "female",
		"phone_number": "+14155550123", "email": "ada@example.com",
		"medical_proxy": {"first_name": "Anne", "last_name": "Example", "phone_number": "+14155550124", "email": "anne@example.com",
			"household_income": 50000, "household_size": 3,
			"address": {"first_line": "1 Example Street", "second_line": "", "country": "US", "zip": "93940", "city": "Monterey",
				"state": "CA", "access_notes": "ring twice"}},
		"race": "asian", "ethnicity": "other", "sexual_orientation": "dont_know", "gender_identity": "female",
		"household_income": 50001, "household_size": 4},
	"patient_address": {"receiver_name": "Ada Example", "first_line": "1 Example Street", "city": "Monterey", "state": "CA",
		"zip": "93940", "country": "US", "second_line": "Suite 2", "access_notes": "ring"},
	"sample_id": "S-1", "lab_account_id": "00000000-0000-4000-8000-000000000004"
}`

func oneLine(content string) string {
	return strings.ReplaceAll(strings.ReplaceAll(content, "\n", " "), "\t", " ")
}

func wholeRecord(t *testing.T) labhealth.ImportOrderBody {
	t.Helper()
	var body labhealth.ImportOrderBody
	if err := json.Unmarshal([]byte(whole), &body); err != nil {
		t.Fatal(err)
	}
	if body.PatientDetails.MedicalProxy.Address.State != "CA" || len(body.OrderSet.AddOn.MarkerIDs) != 2 {
		t.Fatal("the fixture is not read")
	}
	return body
}

func TestJSONLines(t *testing.T) {
	content := "\uFEFF" + oneLine(whole) + "\r\n\n  \n" +
		`{"sample_id":"S-2","user_id":"nonsense","patient_details":{"dob":"1990-02-30","first_name":7,"household_size":"x"}}` + "\n" +
		`{"sample_id":"S-3","sampel":"Ada","patient_details":{"Dob":"1990-01-01","medical_proxy":{"name":"Ada","address":{"street":"Ada"}}},"Ada Example":1}` + "\n" +
		`{"sample_id":"S-4","user_id":` + "\n" +
		`["S-5"]` + "\n" +
		"{\"sample_id\":\"S-\xff6\"}\n" +
		`{"sample_id":"S-7","sample_id":"S-8","billing_type":null} trailing` + "\n" +
		`{"sample_id":"` + strings.Repeat("x", 200_000) + `"}`
	list, errs := read(t, bulk.JSONLines(strings.NewReader(content)))
	if diff := cmp.Diff([]labhealth.ImportOrderBody{wholeRecord(t), {SampleID: strings.Repeat("x", 200_000)}}, list); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	checkEqual(t, "errors", errs, []string{
		"bulk: a record cannot be read, line 4: body.user_id is not a valid uuid: body.patient_details.dob is not a valid date: " +
			"body.patient_details.first_name is not a valid string: body.patient_details.household_size is not a valid integer",
		"bulk: a record cannot be read, line 5: body.sampel is not a field of the request: body.patient_details.Dob is not a field of the request: " +
			"body.patient_details.medical_proxy.name is not a field of the request: " +
			"body.patient_details.medical_proxy.address.street is not a field of the request: body.? is not a field of the request",
		"bulk: a record cannot be read, line 6: is not valid JSON in UTF-8 at byte 29: " + reasonOf(`{"sample_id":"S-4","user_id":`),
		"bulk: a record cannot be read, line 7: is not a JSON object",
		"bulk: a record cannot be read, line 8: is not valid JSON in UTF-8 at byte 16: " + reasonOf("{\"sample_id\":\"S-\xff6\"}"),
		"bulk: a record cannot be read, line 9: is not valid JSON in UTF-8 at byte 58: " + reasonOf(`{} trailing`),
	})
	for _, err := range bulk.JSONLines(strings.NewReader(content)) {
		var r *bulk.RecordError
		if errors.As(err, &r) && r.Line == 4 && r.SampleID != "S-2" {
			t.Errorf("sample id %q", r.SampleID)
		}
	}
	for range bulk.JSONLines(strings.NewReader(content)) {
		break // a range that stops early
	}
}

// A date with a time of day is invalid, because a time zone may have moved it: 23:00 is what
// JavaScript makes of midnight, 10 December, east of UTC. Midnight is the date as written.
func TestDatesWithTimes(t *testing.T) {
	const reason = "has a time of day, so that a time zone may have moved it to another day: want the date, or midnight"
	layouts := []string{"2006-01-02T15:04:05Z07:00", "2006-01-02 15:04", "01/02/2006 03:04 PM"}
	for text, want := range map[string]bool{
		"1985-12-10T00:00:00.000Z": true, "1985-12-10T00:00:00+02:00": true, "1985-12-10T00:00:00-11:00": true, "1985-12-10 00:00": true,
		"12/10/1985 12:00 AM":      true,
		"1985-12-09T23:00:00.000Z": false, "1985-12-09T23:00:00Z": false, "1985-12-10T22:00:00+02:00": false, "1985-12-10T00:00:00.001Z": false,
		"1985-12-10T00:00:01Z": false, "1985-12-09 18:30": false, "12/09/1985 11:00 PM": false, "12/10/1985 12:00 PM": false,
	} {
		for name, source := range map[string]bulk.Source{
			"CSV":        bulk.CSV(strings.NewReader("sample_id,patient_details.dob\nS-1,"+text+"\n"), bulk.CSVOptions{DateLayouts: layouts}),
			"JSON lines": bulk.JSONLines(strings.NewReader(`{"sample_id":"S-1","patient_details":{"dob":"` + text + `"}}`)),
			"escaped":    bulk.JSONLines(strings.NewReader(`{"sample_id":"S-1","patient_details":{"dob":"` + strings.ReplaceAll(text, "-", `\u002d`) + `"}}`)),
		} {
			if name != "CSV" && len(text) < 20 {
				continue // a form that only the layouts know
			}
			list, errs := read(t, source)
			switch {
			case want && (len(errs) > 0 || list[0].PatientDetails.DOB != labhealth.Date{Year: 1985, Month: 12, Day: 10}):
				t.Errorf("%s, %s: %v", name, text, errs)
			case !want && (len(errs) != 1 || !strings.HasSuffix(errs[0], ": body.patient_details.dob "+reason)):
				t.Errorf("%s, %s: %v", name, text, errs)
			}
		}
	}
}

// reasonOf returns the reason for which a line is invalid.
func reasonOf(line string) string {
	for _, err := range bulk.JSONLines(strings.NewReader(line)) {
		var r *bulk.RecordError
		if errors.As(err, &r) {
			_, reason, _ := strings.Cut(r.Problems[0].Reason, ": ")
			return reason
		}
	}
	return "nothing"
}

func TestCSV(t *testing.T) {
	cells := map[string]string{
		"user_id": "00000000-0000-4000-8000-00000000000a", "billing_type": "client_bill", "collection_method": "walk_in_test",
		"order_set.lab_test_ids":      "5b41f610-ebc5-4803-8f0c-a61c3bdc7f02; 5b41f610-ebc5-4803-8f0c-a61c3bdc7f03",
		"order_set.add_on.marker_ids": "901;902", "order_set.add_on.provider_ids": "P-901",
		"order_set.lab_account_id": "00000000-0000-4000-8000-000000000003", "lab_account_id": "00000000-0000-4000-8000-000000000004",
		"physician.first_name": "Jane", "physician.last_name": "Doctor", "physician.npi": "1234567890", "physician.email": "jane@example.com",
		"physician.licensed_states": "CA;NV", "physician.signature_image.content": "AAAA", "physician.signature_image.content_type": "image/png",
		"patient_details.first_name": " Ada ", "patient_details.last_name": "Example", "patient_details.dob": "2015-12-10",
		"patient_details.gender": "female", "patient_details.phone_number": "+14155550123", "patient_details.email": "ada@example.com",
		"patient_details.race": "asian", "patient_details.ethnicity": "other", "patient_details.sexual_orientation": "dont_know",
		"patient_details.gender_identity": "female", "patient_details.household_income": "50001", "patient_details.household_size": "4",
		"patient_details.medical_proxy.first_name": "Anne", "patient_details.medical_proxy.last_name": "Example",
		"patient_details.medical_proxy.phone_number": "+14155550124", "patient_details.medical_proxy.email": "anne@example.com",
		"patient_details.medical_proxy.household_income": "50000", "patient_details.medical_proxy.household_size": "3",
		"patient_details.medical_proxy.address.first_line": "1 Example Street", "patient_details.medical_proxy.address.second_line": "",
		"patient_details.medical_proxy.address.country": "US", "patient_details.medical_proxy.address.zip": "93940",
		"patient_details.medical_proxy.address.city": "Monterey", "patient_details.medical_proxy.address.state": "CA",
		"patient_details.medical_proxy.address.access_notes": "ring twice",
		"patient_address.receiver_name":                      "Ada Example", "patient_address.first_line": "1 Example Street", "patient_address.city": "Monterey",
		"patient_address.state": "CA", "patient_address.zip": "93940", "patient_address.country": "US",
		"patient_address.second_line": "Suite 2", "patient_address.access_notes": "ring", "sample_id": "S-1", "client_user_id": "",
	}
	var header, row []string
	for _, name := range bulk.CSVColumns() {
		cell, ok := cells[name]
		if !ok {
			t.Errorf("column %s is not in the test", name)
		}
		header, row = append(header, name), append(row, cell)
	}
	if len(header) != len(cells) {
		t.Errorf("%d columns, want %d", len(header), len(cells))
	}
	list, errs := read(t, bulk.CSV(strings.NewReader(strings.Join(header, ",")+"\n"+strings.Join(row, ",")+"\n"), bulk.CSVOptions{Users: bulk.NewUsers(t.Context(), nil, bulk.Options{DryRun: true})}))
	want := wholeRecord(t)
	want.PatientDetails.MedicalProxy.Address.SecondLine = nil // an empty cell is omitted
	if diff := cmp.Diff([]labhealth.ImportOrderBody{want}, list); diff != "" || errs != nil {
		t.Errorf("records (-want +got):\n%s%v", diff, errs)
	}
}

func TestCSVProblems(t *testing.T) {
	content := "Sample,user_id,Remarks,patient_details.dob,order_set.add_on.marker_ids,patient_address.access_notes\r\n" +
		"S-1,00000000-0000-4000-8000-00000000000a,nothing,1990-01-31,,\"1 Example\nStreet, \"\"left\"\"\"\r\n" +
		"S-2,{00000000-0000-4000-8000-00000000000a},,31.01.1990,1;two,\r\n" +
		"S-3,too few\r\n" +
		"S-4,,,,,\xff\r\n" +
		"S-5,,,,,\"never closed"
	rename := map[string]string{"Sample": "sample_id", "Remarks": "-"}
	list, errs := read(t, bulk.CSV(strings.NewReader(content), bulk.CSVOptions{Rename: rename}))
	dob, notes := labhealth.Date{Year: 1990, Month: 1, Day: 31}, "1 Example\nStreet, \"left\""
	want := []labhealth.ImportOrderBody{{
		UserID: uuid.MustParse("00000000-0000-4000-8000-00000000000a"), SampleID: "S-1",
		PatientDetails: labhealth.PatientDetailsWithValidation{DOB: dob}, PatientAddress: labhealth.PatientAddress{AccessNotes: &notes},
	}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	checkEqual(t, "errors", errs, []string{
		"bulk: a record cannot be read, line 4: body.user_id is not a valid uuid: body.patient_details.dob is not a valid date of the form YYYY-MM-DD: " +
			"body.order_set.add_on.marker_ids is not a valid integer",
		"bulk: a record cannot be read, line 5: has 2 cells, and the header has 6",
		"bulk: a record cannot be read, line 6: body.patient_address.access_notes is not valid UTF-8: the file may be in Windows-1252; " +
			`save it as "CSV UTF-8"`,
		`bulk: line 7, column "patient_address.access_notes" of the CSV file: the quote at the start of this cell is never closed, ` +
			"so that the rest of the file cannot be read",
	})
	for header, want := range map[string]string{
		"": "bulk: the CSV file is empty",
		"sample_id,Ada Example": "bulk: the CSV file has unknown columns, whose values would not be sent: 2 (B); " +
			`map them in CSVOptions.Rename to one of CSVColumns, or to "-"`,
		"sample_id,sample_id": "bulk: the CSV file has two columns for sample_id",
	} {
		if _, errs := read(t, bulk.CSV(strings.NewReader(header), bulk.CSVOptions{})); !slices.Equal(errs, []string{want}) {
			t.Errorf("%q: %q, want %q", header, errs, want)
		}
	}
}

func TestUnreadableSource(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	for _, source := range []bulk.Source{bulk.JSONLines(f), bulk.CSV(f, bulk.CSVOptions{})} {
		if _, errs := read(t, source); len(errs) != 1 || !strings.HasPrefix(errs[0], "bulk: the source cannot be read from its start: ") {
			t.Errorf("%q", errs)
		}
	}
}
