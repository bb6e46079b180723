package bulk_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

const officeHeader = "Kit,User,First,Last,DOB,Sex,Phone,Email,Street,City,State,Zip\n"

// officeOptions reads a file of an office whose columns, words and names are its own.
func officeOptions() bulk.CSVOptions {
	return bulk.CSVOptions{
		Rename: map[string]string{
			"Kit": "sample_id", "User": "user_id", "First": "patient_details.first_name", "Last": "patient_details.last_name",
			"DOB": "patient_details.dob", "Sex": "patient_details.gender", "Phone": "patient_details.phone_number",
			"Email": "patient_details.email", "Street": "patient_address.first_line", "City": "patient_address.city",
			"State": "patient_address.state", "Zip": "patient_address.zip",
		},
		Values:  map[string]map[string]string{"patient_details.gender": {"F": "female", "m": "male"}},
		Compose: map[string]string{"patient_address.receiver_name": "{First} {Last}"},
		Defaults: labhealth.ImportOrderBody{
			BillingType: labhealth.BillingClientBill, CollectionMethod: labhealth.CollectionMethodWalkInTest,
			OrderSet:       labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{ada}},
			PatientAddress: labhealth.PatientAddress{Country: "US"},
		},
	}
}

func officeRow(kit, first, sex, zip string) string {
	return fmt.Sprintf("%s,%s,%s,Example,1985-12-10,%s,+14155550123,ada@example.com,1 Example Street,Monterey,CA,%s\n", kit, ada, first, sex, zip)
}

func TestCSVValuesAndComposedFields(t *testing.T) {
	content := officeHeader + officeRow("K-1", "Ada", "f", "93940") + officeRow("K-2", "", "M", "93940") + officeRow("K-3", "Cy", "divers", "93940")
	list, errs := read(t, bulk.CSV(strings.NewReader(content), officeOptions()))
	var got []string
	for _, body := range list {
		got = append(got, string(body.PatientDetails.Gender)+", "+body.PatientAddress.ReceiverName)
	}
	checkEqual(t, "gender and receiver", got, []string{"female, Ada Example", "male, Example", "divers, Cy Example"})
	if errs != nil {
		t.Error(errs)
	}

	// A cell of the field comes first. A cell that cannot be what was entered is a problem, too.
	opts := officeOptions()
	opts.Rename["First"], opts.Rename["To"] = "-", "patient_address.receiver_name"
	opts.Compose["patient_details.first_name"] = "{First}"
	content = strings.Replace(officeHeader, "\n", ",To\n", 1) +
		strings.Replace(officeRow("K-1", "Ada", "F", "93940"), "\n", ",Bo Sample\n", 1) + strings.Replace(officeRow("K-2", "#N/A", "F", "93940"), "\n", ",x\n", 1)
	list, errs = read(t, bulk.CSV(strings.NewReader(content), opts))
	if len(list) != 1 || list[0].PatientAddress.ReceiverName != "Bo Sample" || list[0].PatientDetails.FirstName != "Ada" {
		t.Errorf("%d records", len(list))
	}
	if len(errs) != 1 || !strings.Contains(errs[0], "line 3: body.patient_address.receiver_name is an error value of a spreadsheet") {
		t.Error(errs)
	}

	for want, change := range map[string]func(*bulk.CSVOptions){
		`bulk: CSVOptions.Values: "gender" is not one of CSVColumns (patient_details.gender?)`: func(o *bulk.CSVOptions) { o.Values = map[string]map[string]string{"gender": nil} },
		`bulk: CSVOptions.Compose: "To" is not one of CSVColumns`:                              func(o *bulk.CSVOptions) { o.Compose = map[string]string{"To": "{First}"} },
		`bulk: CSVOptions.Compose: the file does not have exactly one column "Middle"`:         func(o *bulk.CSVOptions) { o.Compose["patient_address.receiver_name"] = "{First} {Middle}" },
		`bulk: CSVOptions.Compose: "First Last" has no column in braces`:                       func(o *bulk.CSVOptions) { o.Compose["patient_address.receiver_name"] = "First Last" },
	} {
		opts := officeOptions()
		change(&opts)
		if _, errs := read(t, bulk.CSV(strings.NewReader(officeHeader), opts)); !slices.Equal(errs, []string{want}) {
			t.Errorf("%q, want %q", errs, want)
		}
	}
}

// A column that is missing is one error, and not one for each row.
func TestCSVMissingColumns(t *testing.T) {
	run := func(content string, opts bulk.CSVOptions) string {
		report, err := bulk.Run(t.Context(), nil, bulk.CSV(strings.NewReader(content), opts), nil, bulk.Options{DryRun: true})
		return fmt.Sprintf("%d %v", report.Records, err)
	}
	const text = "0 bulk: the source cannot be read: bulk: the CSV file has no column for %s, and without it every record is invalid: name the column in CSVOptions.Rename, or set the field with CSVOptions.Compose or CSVOptions.Defaults"
	without := func(change func(*bulk.CSVOptions)) bulk.CSVOptions {
		opts := officeOptions()
		change(&opts)
		return opts
	}
	content := officeHeader + officeRow("K-1", "Ada", "F", "93940") + officeRow("K-2", "Bo", "M", "93940")
	for name, c := range map[string]struct {
		opts bulk.CSVOptions
		want string
	}{
		"complete": {officeOptions(), "2 <nil>"},
		"two":      {without(func(o *bulk.CSVOptions) { o.Rename["DOB"], o.Compose = "-", nil }), fmt.Sprintf(text, "patient_details.dob, patient_address.receiver_name")},
		"user":     {without(func(o *bulk.CSVOptions) { o.Rename["User"] = "-" }), fmt.Sprintf(text, "user_id")},
		"with Row": {without(func(o *bulk.CSVOptions) {
			o.Rename["DOB"], o.Row = "-", func(bulk.Row, *labhealth.ImportOrderBody) error { return nil }
		}), "2 <nil>"},
		"sample ID": {without(func(o *bulk.CSVOptions) { o.Rename["Kit"] = "-" }), fmt.Sprintf(text, "sample_id")},
		"users": {without(func(o *bulk.CSVOptions) {
			o.Rename["User"], o.Users = "-", bulk.NewUsers(t.Context(), nil, bulk.Options{DryRun: true})
		}), fmt.Sprintf(text, "user_id or client_user_id")},
	} {
		if got := run(content, c.opts); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A dry run says what the service or a lab would reject, in the order of the source.
func TestDryRunWarnings(t *testing.T) {
	content := officeHeader + officeRow("K-1", "Ada", "F", "93940") + officeRow("K-2", "Renée", "W", "10001") + officeRow("K-3", "", "F", "93940")
	var lines, table bytes.Buffer
	opts := bulk.Options{DryRun: true, Rejections: &lines, RejectionsCSV: &table}
	report, err := bulk.Run(t.Context(), nil, bulk.CSV(strings.NewReader(content), officeOptions()), nil, opts)
	if err != nil {
		t.Fatal(err)
	}
	checkCounts(t, report, bulk.Report{Records: 3, Pending: 2, Invalid: 1})
	var got []string
	for decoder := json.NewDecoder(&lines); decoder.More(); {
		var r bulk.Rejection
		if err := decoder.Decode(&r); err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Fields {
			got = append(got, fmt.Sprintf("%d %s, %s: %s", r.Line, r.Outcome, p.Column, p.Reason))
		}
	}
	const name = "is not a name that labs accept: letters without accents, digits and - . , ' with single spaces between words, and a letter or digit first"
	checkEqual(t, "problems", got, []string{
		"3 warning, First: " + name, "3 warning, Sex: is not one of female, male, other, unknown", "3 warning, Zip: is a ZIP code of another state",
		"4 invalid, First: is required: 1 to 50 characters",
	})
	if row := `3,2,K-2,warning,"` + name + `",patient_details.first_name,First,,,,,`; !strings.Contains(table.String(), row) {
		t.Error(table.String())
	}
}

func TestUnknownColumns(t *testing.T) {
	_, err := problems("sample_id,Geburtstag,dob\n", bulk.CSVOptions{})
	var unknown *bulk.UnknownColumnsError
	if !errors.As(err, &unknown) || len(unknown.Columns) != 2 {
		t.Fatal(err)
	}
	if c := unknown.Columns[0]; c.Number != 2 || c.Letters() != "B" || c.Name != "Geburtstag" || c.Near != "" {
		t.Error(c.Number, c.Letters(), c.Name, c.Near)
	}
	if c := unknown.Columns[1]; c.Number != 3 || c.Letters() != "C" || c.Name != "dob" || c.Near != "patient_details.dob" {
		t.Error(c.Number, c.Letters(), c.Name, c.Near)
	}
}
