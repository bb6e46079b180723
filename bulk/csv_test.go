package bulk_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

// problems returns the problems of all records of a CSV file, as "line column: reason", and the
// error that ends it.
func problems(content string, opts bulk.CSVOptions) (list []string, _ error) {
	for _, err := range bulk.CSV(strings.NewReader(content), opts) {
		var r *bulk.RecordError
		switch {
		case errors.As(err, &r):
			for _, p := range r.Problems {
				list = append(list, fmt.Sprintf("%d %s: %s", r.Line, p.Column, p.Reason))
			}
		case err != nil:
			return list, err
		}
	}
	return list, nil
}

// The documentation of CSV lists all columns.
func TestCSVColumnsAreDocumented(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "csv.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var doc string
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "CSV" {
			doc = f.Doc.Text()
		}
	}
	var documented []string
	prefix := ""
	for line := range strings.Lines(doc) {
		if !strings.HasPrefix(line, "\t") {
			continue
		}
		text := strings.TrimSpace(line)
		switch {
		case strings.HasSuffix(text, "."):
			prefix = text
		case strings.Contains(text, ", or "):
			documented = append(documented, "user_id", "client_user_id")
		default:
			for name := range strings.SplitSeq(strings.TrimSuffix(text, ","), ", ") {
				documented = append(documented, prefix+name)
			}
		}
	}
	slices.Sort(documented)
	checkEqual(t, "documented columns", documented, bulk.CSVColumns())
}

// Files as spreadsheets and other programs write them.
func TestCSVForms(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		opts    bulk.CSVOptions
	}{
		"a byte order mark":       {"\uFEFFsample_id,patient_address.city\nS-1,Monterey\n", bulk.CSVOptions{}},
		"CRLF and no end":         {"sample_id,patient_address.city\r\nS-1,Monterey", bulk.CSVOptions{}},
		"quoted":                  {"\"sample_id\",\"patient_address.city\"\r\n\"S-1\",\"Monterey\"\r\n", bulk.CSVOptions{}},
		"empty rows":              {"\n\r\nsample_id,patient_address.city\n,\n\nS-1,Monterey\n,\n \n\"\",\"\"\n\r\n", bulk.CSVOptions{}},
		"empty columns":           {"sample_id,,patient_address.city,,\nS-1,,Monterey,,\n", bulk.CSVOptions{}},
		"case and spaces":         {" Sample ID ,PATIENT_ADDRESS.City\n S-1 ,\tMonterey\n", bulk.CSVOptions{}},
		"semicolons":              {"sample_id;patient_address.city\nS-1;Monterey\n", bulk.CSVOptions{Comma: ';'}},
		"tabs":                    {"sample_id\tpatient_address.city\nS-1\tMonterey\n", bulk.CSVOptions{Comma: '\t'}},
		"a line for Excel":        {"\uFEFFsep=;\r\nsample_id;patient_address.city\r\nS-1;Monterey\r\n", bulk.CSVOptions{}},
		"another line for Excel":  {"SEP=\t\nsample_id\tpatient_address.city\nS-1\tMonterey\n", bulk.CSVOptions{Comma: '\t'}},
		"renamed in another case": {"SAMPLE NO,town\nS-1,Monterey\n", bulk.CSVOptions{Rename: map[string]string{"Sample_No": "sample_id", "Town": "patient_address.city"}}},
	} {
		t.Run(name, func(t *testing.T) {
			list, errs := read(t, bulk.CSV(strings.NewReader(test.content), test.opts))
			want := []labhealth.ImportOrderBody{{SampleID: "S-1", PatientAddress: labhealth.PatientAddress{City: "Monterey"}}}
			if diff := cmp.Diff(want, list); diff != "" || errs != nil {
				t.Errorf("records (-want +got):\n%s%v", diff, errs)
			}
		})
	}
}

// Files that cannot be read say why, without the content of their cells.
func TestCSVFileErrors(t *testing.T) {
	utf16LE := func(mark, s string) string {
		var b []byte
		for _, u := range utf16.Encode([]rune(mark + s)) {
			b = append(b, byte(u), byte(u>>8))
		}
		return string(b)
	}
	const header = "sample_id,patient_details.last_name,patient_address.city\n"
	for name, test := range map[string]struct {
		content string
		opts    bulk.CSVOptions
		want    string
	}{
		"no header": {"S-1,Example,Monterey\n", bulk.CSVOptions{},
			"bulk: no column of the CSV file is known: its first row must be the header, with names of CSVColumns or of CSVOptions.Rename"},
		"UTF-16":                {utf16LE("\uFEFF", header), bulk.CSVOptions{}, "bulk: the source is encoded in UTF-16: save it as UTF-8"},
		"UTF-16 without a mark": {utf16LE("", header), bulk.CSVOptions{}, "bulk: the source is encoded in UTF-16: save it as UTF-8"},
		"semicolons":            {"sample_id;patient_address.city\nS-1;Monterey\n", bulk.CSVOptions{}, "bulk: the cells of the CSV file are separated by semicolons: set CSVOptions.Comma to ';'"},
		"tabs":                  {"sample_id\tpatient_address.city\nS-1\tMonterey\n", bulk.CSVOptions{}, `bulk: the cells of the CSV file are separated by tabs: set CSVOptions.Comma to '\t'`},
		"commas":                {"sample_id,patient_address.city\n", bulk.CSVOptions{Comma: ';'}, "bulk: the cells of the CSV file are separated by commas: set CSVOptions.Comma to ','"},
		"two separators":        {"sep=;\nsample_id\n", bulk.CSVOptions{Comma: ','}, `bulk: the first line of the CSV file is "sep=;", and CSVOptions.Comma is ','`},
		"carriage returns":      {"sample_id,patient_address.city\rS-1,Monterey\r", bulk.CSVOptions{}, "bulk: the CSV file has line breaks that are carriage returns: save it with line feeds"},
		"Windows-1252":          {"sample_id,Stra\xdfe\n", bulk.CSVOptions{}, `bulk: the name of column 2 (B) is not valid UTF-8: the file may be in Windows-1252; save it as "CSV UTF-8"`},
		"unknown columns": {"sampel_id,sample_id,Client ID,DOB,First Name,Ada Example,1985-12-10,+14155550123,ada@example.com,S00017,Zip,Grace,frist_name,\n", bulk.CSVOptions{},
			"bulk: the CSV file has unknown columns, whose values would not be sent: 1 (A), 3 (C), " +
				"" +
				`4 (D) "DOB" (patient_details.dob?), 5 (E) "First Name" (patient_details.first_name?), 6 (F), 7 (G), 8 (H), 9 (I), 10 (J), ` +
				`11 (K) "Zip" (patient_address.zip?), 12 (L), 13 (M); map them in CSVOptions.Rename to one of CSVColumns, or to "-"`},
		"column 28": {"sample_id" + strings.Repeat(",", 27) + "Notes\n", bulk.CSVOptions{},
			`bulk: the CSV file has unknown columns, whose values would not be sent: 28 (AB); map them in CSVOptions.Rename to one of CSVColumns, or to "-"`},
		"the same column twice": {"Sample ID,sample_id\n", bulk.CSVOptions{}, "bulk: the CSV file has two columns for sample_id"},
		"renamed to nothing": {"sample_id\n", bulk.CSVOptions{Rename: map[string]string{"Zip": "patient_adress.zip"}},
			`bulk: CSVOptions.Rename: "patient_adress.zip" is not one of CSVColumns`},
		"renamed without a path": {"sample_id\n", bulk.CSVOptions{Rename: map[string]string{"Zip": "zip"}},
			`bulk: CSVOptions.Rename: "zip" is not one of CSVColumns (patient_address.zip?)`},
		"renamed twice": {"sample_id\n", bulk.CSVOptions{Rename: map[string]string{"Zip": "patient_address.zip", "ZIP": "-"}},
			`bulk: CSVOptions.Rename: "ZIP" and "Zip" are the same name`},
		"users without Users": {"sample_id,client_user_id\n", bulk.CSVOptions{},
			`bulk: the column client_user_id needs CSVOptions.Users; if CSVOptions.Row reads it, rename it to "-"`},
		"ambiguous dates": {header, bulk.CSVOptions{DateLayouts: []string{"01/02/2006", "2/1/2006"}},
			`bulk: CSVOptions.DateLayouts: dates such as 04/05/2003 mean different days in "01/02/2006" and "2/1/2006"`},
		"ambiguous with a time": {header, bulk.CSVOptions{DateLayouts: []string{"02/01/2006 15:04", "01/02/2006"}},
			`bulk: CSVOptions.DateLayouts: dates such as 05/04/2003 00:00 mean different days in "02/01/2006 15:04" and "01/02/2006"`},
		"short years": {header, bulk.CSVOptions{DateLayouts: []string{"01/02/06"}},
			`bulk: CSVOptions.DateLayouts: "01/02/06" is not a layout of package time with a year of four digits, a month and a day`},
		"no day": {header, bulk.CSVOptions{DateLayouts: []string{"01/2006"}},
			`bulk: CSVOptions.DateLayouts: "01/2006" is not a layout of package time with a year of four digits, a month and a day`},
		"not a layout": {header, bulk.CSVOptions{DateLayouts: []string{"MM/DD/YYYY"}},
			`bulk: CSVOptions.DateLayouts: "MM/DD/YYYY" is not a layout of package time with a year of four digits, a month and a day`},
		"a default patient": {header, bulk.CSVOptions{Defaults: labhealth.ImportOrderBody{PatientAddress: labhealth.PatientAddress{City: "Monterey"}}},
			"bulk: CSVOptions.Defaults must not have a sample ID, a user ID, patient details, or an address apart from its country"},
		"a separator of two bytes": {header, bulk.CSVOptions{Comma: '→'}, "bulk: CSVOptions.Comma must be an ASCII character other than a quote or a line break"},
		"an open quote": {header + "S-1,Example,Monterey\nS-2,\"Example\nS-3,Example,Monterey\n", bulk.CSVOptions{},
			`bulk: line 3, column "patient_details.last_name" of the CSV file: the quote at the start of this cell is never closed, so that the rest of the file cannot be read`},
		"an open quote before a quoted cell": {header + "S-1,Example,\"Monterey\nS-2,\"Example\",Monterey\n", bulk.CSVOptions{},
			`bulk: line 2, column "patient_address.city" of the CSV file: the quote at the start of this cell may not be closed: ` +
				"the next quote is followed by other text; the start of the next row is unknown"},
		"a quote in a cell": {header + "S-1, \"Example\nS-2\",Monterey\n", bulk.CSVOptions{},
			`bulk: line 2, column "patient_details.last_name" of the CSV file: a cell that contains quotes must be quoted as a whole, with its quotes doubled; ` +
				"the start of the next row is unknown"},
		"a quote that ends in the wrong row": {header + "S-1,\"Example\nS-2,Example,Monterey\nS-3,Example\",Monterey,\"\"\nS-4,\"Example\nS-5,\",\n", bulk.CSVOptions{},
			""},
		"cells that are missing after a quote": {header + "S-1,\"Example\nS-2,Example\"\n", bulk.CSVOptions{},
			"bulk: line 2: a row of 2 lines does not have as many cells as the header, so that a quote in it may not be closed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := read(t, bulk.CSV(strings.NewReader(test.content), test.opts))
			if test.want == "" {
				return
			}
			checkEqual(t, "errors", errs, []string{test.want})
		})
	}
}

// What spreadsheets do to cells has a reason that names the column and not the value.
func TestCSVDamagedCells(t *testing.T) {
	const header = "sample_id,DOB,Phone,patient_address.zip,patient_address.country,Clinic,patient_details.household_size,\n"
	opts := bulk.CSVOptions{
		DateLayouts: []string{"01/02/2006", "2006-01-02"},
		Rename:      map[string]string{"DOB": "patient_details.dob", "Phone": "patient_details.phone_number", "Clinic": "-"},
		Row: func(row bulk.Row, body *labhealth.ImportOrderBody) error {
			if row.Get("Clinic") == "Leiden" {
				body.PatientAddress.Country = "NL"
			}
			return nil
		},
	}
	const date = "2 DOB: is not a valid date of the form MM/DD/YYYY or YYYY-MM-DD"
	for row, want := range map[string]string{
		"S-1,12/10/1985,+14155550123,02139,US,x,3,":   "",
		"S-1,2/1/1985,+14155550123,02139-0001,US,,,":  "",
		"S-1,1985-12-10,+14155550123,SW1A,UK,,,":      "",
		"S-1,,,1234,NL,,,":                            "",
		"S-1,,,1234,,Leiden,,":                        "",
		"S-1,,,,,#N/A,,":                              "2 Clinic: is an error value of a spreadsheet",
		"S-1,10/12/85,,,,,,":                          date + ": its year has two digits",
		"S-1,12/10/1985 00:00:00,,,,,,":               date + ": it has a time of day",
		"S-1,1985-12-10T00:00:00Z,,,,,,":              date + ": it has a time of day",
		"S-1,31391,,,,,,":                             date + ": it is a number, as spreadsheets store dates",
		"S-1,13/10/1985,,,,,,":                        date + ": day and month may be swapped, also in rows that have no problem",
		"S-1,13/13/1985,,,,,,":                        date,
		"S-1,12/10/0085,,,,,,":                        "2 DOB: is a date before the year 1800",
		"S-1,02/30/1985,,,,,,":                        date,
		"S-1,,1.41556E+10,,,,,":                       "2 Phone: is in scientific notation: a spreadsheet has dropped its digits",
		"S-1,,\"1,41556E+10\",,,,,":                   "2 Phone: is in scientific notation: a spreadsheet has dropped its digits",
		"S-1,,14155550123.0,,,,,":                     "2 Phone: ends in .0: a spreadsheet has treated it as a number",
		"S-1,,,2139,US,,,":                            "2 patient_address.zip: has fewer than 5 digits: a spreadsheet has dropped the leading zero",
		"S-1,,,2139-0001,,,,":                         "2 patient_address.zip: has fewer than 5 digits: a spreadsheet has dropped the leading zero",
		"#REF!,,,,,,,":                                "2 sample_id: is an error value of a spreadsheet",
		"S-1,########,,,,,,":                          "2 DOB: is an error value of a spreadsheet",
		"S-1,,,,,Stra\xdfe,,":                         `2 Clinic: is not valid UTF-8: the file may be in Windows-1252; save it as "CSV UTF-8"`,
		"\"S-1\nx\",,,,,,,":                           "2 sample_id: has a line break or another control character: a quote before it may not be closed",
		"S-1,,\"+1,,US,x,1,\nS-2,,+1\",,,,,":          "2 Phone: has a line break and as many separators as a row: a quote may not be closed, and other rows may be in this cell",
		"S-1,,,,,,three,":                             "2 patient_details.household_size: is not a valid integer",
		"S-1,,,,,,,Ada":                               "2 : has a value in column 8 (H), which has no name",
		"S-1,,,,,,,,Ada":                              "2 : has 9 cells, and the header has 8",
		"S-1,,,,,,,,":                                 "2 : has 9 cells, and the header has 8",
		"S-1,,,,,,":                                   "2 : has 7 cells, and the header has 8",
		"S-1,12/10/1985,+14155550123,02139,US,x,\r\n": "2 : has 7 cells, and the header has 8",
	} {
		list, err := problems(header+row+"\n", opts)
		if got := strings.Join(list, "; "); got != want || err != nil {
			t.Errorf("%q: %q, want %q; %v", row, got, want, err)
		}
	}
}

func TestCSVDefaults(t *testing.T) {
	test, other, account := uuid.New(), uuid.New(), uuid.New()
	doctor := &labhealth.PhysicianCreateRequest{FirstName: "Jane", LastName: "Doctor", NPI: "1234567890", LicensedStates: []string{"CA"}}
	opts := bulk.CSVOptions{
		Defaults: labhealth.ImportOrderBody{
			BillingType: labhealth.BillingClientBill, CollectionMethod: labhealth.CollectionMethodWalkInTest, LabAccountID: &account,
			OrderSet:  labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{test}},
			Physician: doctor, PatientAddress: labhealth.PatientAddress{Country: "US"},
		},
		Row: func(_ bulk.Row, body *labhealth.ImportOrderBody) error {
			if body.Physician.NPI == "1234567890" { // does not change the defaults
				body.Physician.LicensedStates[0] += "!"
				*body.LabAccountID = uuid.Nil
			}
			return nil
		},
	}
	content := "sample_id,billing_type,order_set.lab_test_ids,order_set.add_on.marker_ids,physician.last_name,patient_address.country\n" +
		"S-1,,,,,\nS-2,patient_bill," + other.String() + ",,Other,CA\nS-3,,,7,,\n"
	list, errs := read(t, bulk.CSV(strings.NewReader(content), opts))
	changed := *doctor
	changed.LicensedStates = []string{"CA!"}
	none := uuid.Nil
	base := labhealth.ImportOrderBody{
		SampleID: "S-1", BillingType: "client_bill", CollectionMethod: "walk_in_test", LabAccountID: &none,
		OrderSet: labhealth.OrderSetRequest{LabTestIDs: []uuid.UUID{test}}, Physician: &changed, PatientAddress: labhealth.PatientAddress{Country: "US"},
	}
	second, third := base, base
	second.SampleID, second.BillingType, second.LabAccountID = "S-2", "patient_bill", &account
	second.OrderSet.LabTestIDs, second.PatientAddress.Country = []uuid.UUID{other}, "CA"
	second.Physician = &labhealth.PhysicianCreateRequest{LastName: "Other"} // not mixed with another physician
	third.SampleID, third.OrderSet = "S-3", labhealth.OrderSetRequest{AddOn: &labhealth.AddOnOrder{MarkerIDs: []int64{7}}}
	if diff := cmp.Diff([]labhealth.ImportOrderBody{base, second, third}, list); diff != "" || errs != nil {
		t.Errorf("records (-want +got):\n%s%v", diff, errs)
	}
}

func TestCSVRow(t *testing.T) {
	content := "sample_id,Patient Name,Note,Note\nS-1,Ada Example,,\nS-2,Ada,,\nS-3,Bo Example,,\nS-4,,,\nS-5,Cy Example,,\n"
	opts := bulk.CSVOptions{Rename: map[string]string{"Patient Name": "-", "Note": "-"}}
	rename := opts.Rename
	opts.Row = func(row bulk.Row, body *labhealth.ImportOrderBody) error {
		first, last, ok := strings.Cut(row.Get("patient_name"), " ")
		body.PatientDetails.FirstName, body.PatientDetails.LastName = first, last
		switch {
		case row.Has("Note") || row.Has("Clinic") || !row.Has("Patient Name"):
			t.Error("Has")
		case row.Line == 4:
			return &bulk.RecordError{SampleID: "other", Problems: []bulk.Problem{{Path: "body.sample_id", Reason: "is blocked"}, {Reason: "is strange"}}}
		case first == "":
			return errors.Join(bulk.Problem{Column: "Patient Name", Reason: "is missing"}, body.Validate())
		case !ok:
			return &bulk.Problem{Column: "Patient Name", Reason: "must be two words"}
		}
		return nil
	}
	list, errs := read(t, bulk.CSV(strings.NewReader(content), opts))
	if len(list) != 2 || list[0].PatientDetails.LastName != "Example" || list[1].SampleID != "S-5" {
		t.Errorf("%d records", len(list))
	}
	if len(errs) != 3 || errs[0] != "bulk: a record cannot be read, line 3: Patient Name must be two words" ||
		errs[1] != "bulk: a record cannot be read, line 4: body.sample_id is blocked: is strange" || !strings.Contains(errs[2], "line 5: Patient Name is missing: body.user_id is required") {
		t.Errorf("errors: %q", errs)
	}
	list2, err := problems(content, opts)
	if err != nil || list2[0] != "3 Patient Name: must be two words" || list2[1] != "4 sample_id: is blocked" {
		t.Errorf("%q %v", list2, err)
	}

	for name, want := range map[string]string{
		"Clinic": `bulk: line 2: CSVOptions.Row reads the column "Clinic", and the file does not have exactly one with that name`,
		"Note":   `bulk: line 2: CSVOptions.Row reads the column "Note", and the file does not have exactly one with that name`,
		"":       "bulk: line 2: the clinic's system is down",
	} {
		row := func(row bulk.Row, _ *labhealth.ImportOrderBody) error {
			if name == "" {
				return errors.New("the clinic's system is down")
			}
			row.Get(name)
			return nil
		}
		if _, errs := read(t, bulk.CSV(strings.NewReader(content), bulk.CSVOptions{Rename: rename, Row: row})); !slices.Equal(errs, []string{want}) {
			t.Errorf("%q: %q", name, errs)
		}
	}
}

// repeated is a large file: a start, a text that is repeated, and an end. It counts what is read.
type repeated struct {
	io.Reader
	start, text, end string
	n                int
}

func (r *repeated) Seek(int64, int) (int64, error) {
	readers := []io.Reader{strings.NewReader(r.start)}
	for range r.n {
		readers = append(readers, strings.NewReader(r.text))
	}
	r.Reader = io.MultiReader(append(readers, strings.NewReader(r.end))...)
	return 0, nil
}

// A record of 40 MiB is one invalid record, and does not need so much memory.
func TestHugeRecords(t *testing.T) {
	mebi := strings.Repeat("x", 1<<20)
	line := func(s string) string { return `{"sample_id":"` + s + `"}` + "\n" }
	for name, source := range map[string]bulk.Source{
		"JSON lines":             bulk.JSONLines(&repeated{start: line("S-1") + `{"sample_id":"`, text: mebi, n: 40, end: "\"}\n" + line("S-3")}),
		"JSON lines, just above": bulk.JSONLines(&repeated{start: line("S-1"), text: mebi, n: 16, end: "\n" + line("S-3")}),
		"CSV":                    bulk.CSV(&repeated{start: "sample_id,billing_type\nS-1,\nS-2,", text: mebi, n: 40, end: "\nS-3,\n"}, bulk.CSVOptions{}),
		"CSV, quoted":            bulk.CSV(&repeated{start: "sample_id,billing_type\r\nS-1,\r\nS-2,\"", text: mebi, n: 40, end: "\"\r\nS-3,\"\"\r\n"}, bulk.CSVOptions{}),
		"CSV, many cells":        bulk.CSV(&repeated{start: "sample_id,billing_type\nS-1,\nS-2,", text: strings.Repeat(",", 1<<20), n: 20, end: "\nS-3,\n"}, bulk.CSVOptions{}),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var got []string
			for record, err := range source {
				var r *bulk.RecordError
				if errors.As(err, &r) {
					got = append(got, fmt.Sprint(r.Line, " ", r.Problems[0].Reason))
				} else {
					got = append(got, fmt.Sprint(record.Line, " ", record.Body.SampleID, err))
				}
			}
			runtime.ReadMemStats(&after)
			first, reason := 1, " is longer than 16 MiB"
			if strings.HasPrefix(name, "CSV") {
				first, reason = 2, reason+", or has more than 65,535 cells"
			}
			checkEqual(t, "records", got, []string{
				fmt.Sprint(first, " S-1<nil>"), fmt.Sprint(first+1, reason), fmt.Sprint(first+2, " S-3<nil>"),
			})
			if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 120 {
				t.Errorf("%d MiB were allocated", mib)
			}
		})
	}
}

// A character that is lost or added damages the row, or stops the file. It never makes a record of
// a part of a cell, or of cells in other columns.
func TestCSVDamagedFile(t *testing.T) {
	var b strings.Builder
	b.WriteString("sample_id,patient_details.first_name,patient_details.last_name,patient_details.dob,patient_address.first_line,patient_address.city,Notes\r\n")
	notes := []string{"", "\"first, and \"\"urgent\"\"\"", "\"see\r\nS-1,Ada,Example\r\nabove\"", "\"\"", "plain"}
	for i := range 15 {
		fmt.Fprintf(&b, "S-%d,Ada,Example%d,1985-12-%02d,\"%d Example Street, left\",Monterey,%s\r\n", i, i, 1+i%28, i, notes[i%len(notes)])
	}
	content := b.String()
	read := func(content string) (records []string, last error) {
		for record, err := range bulk.CSV(strings.NewReader(content), bulk.CSVOptions{Rename: map[string]string{"Notes": "-"}}) {
			if last = err; err == nil && record.Body.SampleID != "" { // others are invalid
				p, a := record.Body.PatientDetails, record.Body.PatientAddress
				street := strings.NewReplacer(",", "", "\r", "", "\n", "", `"`, "").Replace(a.FirstLine) // which may be damaged
				records = append(records, fmt.Sprint(record.Body.SampleID, p.FirstName, p.LastName, p.DOB, street, a.City))
			}
		}
		return records, last
	}
	all, err := read(content)
	if err != nil || len(all) != 15 {
		t.Fatal(len(all), err)
	}
	wanted := map[string]bool{}
	for _, r := range all {
		wanted[r] = true
	}
	stopped := 0
	for i := strings.IndexByte(content, '\n') + 1; i < len(content); i++ {
		if !strings.ContainsRune("\",\r\n", rune(content[i])) {
			continue
		}
		for _, damaged := range []string{content[:i] + content[i+1:], content[:i] + `"` + content[i:], content[:i] + "," + content[i:], content[:i] + "\n" + content[i:]} {
			records, err := read(damaged)
			var r *bulk.RecordError
			if err != nil && !errors.As(err, &r) {
				stopped++
				continue
			}
			for _, r := range records {
				if !wanted[r] {
					t.Errorf("byte %d: %q is a record of\n%q", i, r, damaged[max(0, i-100):min(len(damaged), i+200)])
				}
			}
		}
	}
	t.Logf("%d files were stopped", stopped)
}

// However a file is damaged, no part of a cell becomes a record: each record is a row of package
// csv. An error in quotes ends the file.
func FuzzCSV(f *testing.F) {
	f.Add("sample_id,patient_address.city\nS-1,\"a\nS-2,b\"\nS-3,c\n", uint16(30), byte('"'))
	f.Add("patient_address.city,sample_id\r\n\"a \"\"b\"\" \",S-1\r\n\r\n,S-3", uint16(40), byte('\n'))
	f.Add("sep=;\n\uFEFFsample_id;\n\"S-1\";\r\n S-2 ;\n", uint16(7), byte('\r'))
	f.Fuzz(func(t *testing.T, content string, at uint16, b byte) {
		if int(at) < len(content) {
			content = content[:at] + string(b) + content[at:]
		}
		if strings.Contains(content, `="`) || strings.ContainsAny(content, "'\u2018\u2019") || strings.ContainsFunc(content, func(r rune) bool { return r > 0x7f && unicode.IsSpace(r) }) {
			t.Skip("package csv has no marks of spreadsheets")
		}
		byLine, syntaxErr := rowsByLine(content)
		for record, err := range bulk.CSV(strings.NewReader(content), bulk.CSVOptions{}) {
			var r *bulk.RecordError
			switch {
			case err == nil && record.Body.SampleID != "" && !slices.Contains(byLine[record.Line], record.Body.SampleID):
				t.Errorf("line %d is not a row with this sample ID: %q", record.Line, content)
			case err != nil && !errors.As(err, &r):
				return
			}
		}
		if syntaxErr != nil {
			t.Errorf("%v, but the file was read to its end: %q", syntaxErr, content)
		}
	})
}

// rowsByLine returns the rows that package csv reads, by the line of their start.
func rowsByLine(content string) (map[int][]string, error) {
	content = strings.TrimPrefix(content, "\uFEFF")
	rows := csv.NewReader(strings.NewReader(content))
	rows.FieldsPerRecord = -1
	if len(content) > 5 && strings.EqualFold(content[:4], "sep=") && strings.ContainsAny(content[5:6], "\r\n") {
		rows.Comma = rune(content[4])
	}
	byLine := map[int][]string{}
	for {
		row, err := rows.Read()
		switch {
		case errors.Is(err, io.EOF), err != nil && strings.Contains(err.Error(), "delimiter"):
			return byLine, nil
		case err != nil:
			return byLine, err
		}
		line, _ := rows.FieldPos(0)
		for _, cell := range row {
			byLine[line] = append(byLine[line], strings.TrimSpace(cell))
		}
	}
}
