package bulk_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

// The marks with which spreadsheets keep a cell as text are not part of its value.
func TestCSVTextMarks(t *testing.T) {
	for cell, want := range map[string]string{
		`"=""02139"""`: "02139", `="02139"`: "02139", ` ="02139" `: "02139", `" =""02139"" "`: "02139", `="0""2"`: `0"2`, `=""`: "", `"="""""`: "",
		"'02139": "02139", "'+14155550123": "+14155550123", "'0012-A7": "0012-A7", "\u201902139": "02139", "'415 555 0123": "415 555 0123",
		"'t Hooft": "'t Hooft", "'s-Hertogenbosch": "'s-Hertogenbosch", "O'Brien": "O'Brien", "a=b": "a=b", "'40s Diner": "'40s Diner",
		"Ada\u00a0Example": "Ada Example", "\u00a0S-1\u3000": "S-1", "A\u202f1": "A 1",
	} {
		id, wantID := cell, want
		if strings.HasPrefix(want, "'") { // which no sample ID does
			id, wantID = "S-1", "S-1"
		}
		content := "sample_id,patient_details.last_name,Other\n" + id + "," + cell + "," + cell + "\nlast,,\n"
		opts := bulk.CSVOptions{Rename: map[string]string{"Other": "-"}, Row: func(row bulk.Row, body *labhealth.ImportOrderBody) error {
			body.PatientAddress.City = row.Get("other")
			return nil
		}}
		list, errs := read(t, bulk.CSV(strings.NewReader(content), opts))
		if len(errs) > 0 || len(list) != 2 {
			t.Errorf("%s: %q", cell, errs)
			continue
		}
		checkEqual(t, cell, []string{list[0].SampleID, list[0].PatientDetails.LastName, list[0].PatientAddress.City}, []string{wantID, want, want})
	}
}

// What is no value, but what a spreadsheet has made of one, is invalid in every column.
func TestCSVSpreadsheetCells(t *testing.T) {
	const formula, science, errorValue = "is a formula of a spreadsheet, not its value", "is in scientific notation: a spreadsheet has dropped its digits", "is an error value of a spreadsheet"
	for cell, want := range map[string]string{
		"=A1&B1": formula, `="a`: formula, `"=T(""02139"")"`: formula, "=+1": formula, "=1+1": formula, `="a"&"b"`: formula,
		`"==""02139"""`: formula, `"= ""02139"""`: formula,
		"1.23E+11": science, `"1,23e+11"`: science, "1.23456789E11": science, "-1.5E+10": science, "1.2E-05": science, "'1.23E+11": science,
		"#N/A": errorValue, "#SPILL!": errorValue, "#WERT!": errorValue, "#NV": errorValue, "Err:502": errorValue, "#####": errorValue,
	} {
		for _, column := range []string{"sample_id", "patient_details.first_name", "patient_details.phone_number", "patient_address.zip"} {
			list, err := problems(column+",lab_account_id\n"+cell+",\n", bulk.CSVOptions{})
			if err != nil || !slices.Equal(list, []string{"2 " + column + ": " + want}) {
				t.Errorf("%s in %s: %q %v", cell, column, list, err)
			}
		}
	}
	for _, cell := range []string{"1E5", "12E3", "E+10", "S=1", "#12", "#A", "1.5E", "2E-4"} {
		if list, err := problems("sample_id,lab_account_id\n"+cell+",\n", bulk.CSVOptions{}); list != nil || err != nil {
			t.Errorf("%s: %q %v", cell, list, err)
		}
	}
	for _, cell := range []string{"'02139'", "''02139", "' 02139", `"""02139"""`, "`02139", "\u201c02139\u201d", "02139'"} {
		for _, column := range []string{"sample_id", "physician.npi", "patient_details.phone_number", "patient_address.zip"} {
			list, err := problems(column+",lab_account_id\n"+cell+",\n", bulk.CSVOptions{})
			if err != nil || !slices.Equal(list, []string{"2 " + column + ": starts or ends with a quote"}) {
				t.Errorf("%s in %s: %q %v", cell, column, list, err)
			}
		}
	}
	if list, err := problems("sample_id,patient_address.zip\nS-1,2139.0\n", bulk.CSVOptions{}); err != nil || len(list) != 1 || !strings.Contains(list[0], "fewer than 5 digits") {
		t.Errorf("%q %v", list, err)
	}
	// A quote elsewhere leaves open where the next row starts.
	for _, row := range []string{`=a"b`, `="a,b"`, "=\"a\nb\""} {
		list, err := problems("sample_id,lab_account_id\n"+row+",\n", bulk.CSVOptions{})
		if err == nil {
			t.Errorf("%s: %q", row, list)
		}
	}
}

// Files of other formats say what they are, and how to make a CSV file of them.
func TestFilesOfOtherFormats(t *testing.T) {
	const save = `: save it as "CSV UTF-8"`
	for start, want := range map[string]string{
		"PK\x03\x04\x14\x00\x06\x00":       "an Excel workbook (.xlsx) or another ZIP file, such as .ods or .numbers" + save,
		"PK\x05\x06\x00\x00":               "an Excel workbook (.xlsx) or another ZIP file, such as .ods or .numbers" + save,
		"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1": "an Excel workbook (.xls), or protected by a password" + save,
		"\x1f\x8b\x08\x00":                 "compressed with gzip: decompress it",
		"%PDF-1.7\n":                       "a PDF file" + save,
		"{\\rtf1\\ansi":                    "an RTF file" + save,
		"<html><table><tr>":                "HTML or XML" + save,
		"\uFEFF<?xml version=\"1.0\"?>":    "HTML or XML" + save,
		"\n <!DOCTYPE html>":               "HTML or XML" + save,
	} {
		content := start + strings.Repeat("\x00\x01", 100)
		for name, source := range map[string]bulk.Source{
			"CSV": bulk.CSV(strings.NewReader(content), bulk.CSVOptions{}), "JSON lines": bulk.JSONLines(strings.NewReader(content)),
		} {
			if _, errs := read(t, source); !slices.Equal(errs, []string{"bulk: the source is " + want}) {
				t.Errorf("%s, %q: %q", name, start, errs)
			}
		}
	}
}

// Text that is not what it looks like is invalid, whatever the source.
func TestMisleadingText(t *testing.T) {
	const wide = "has full-width characters or digits other than 0 to 9: write it in ASCII"
	for text, want := range map[string]string{
		"\uff10\uff12\uff11\uff13\uff19": wide, "\uff21\uff44\uff41": wide, "Ada\uff0c": wide, "\u0660\u0661": wide, "\U0001d7ce1": wide,
		"Ada\u200b": "has an invisible character", "\u202aAda\u202c": "has an invisible character", "A\u00adda": "has an invisible character",
		"Zo\u00eb": "", "Zoe\u0308": "", "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627": "", "\u5c71\u7530": "", "O\u2019Brien": "",
	} {
		list := records("S-1", "S-2", "S-3", "S-4")
		list[0].PatientDetails.FirstName = text
		list[1].PatientAddress.Zip = text
		list[2].PatientDetails.MedicalProxy = &labhealth.GuarantorDetails{FirstName: "A", LastName: "B", PhoneNumber: text, Address: labhealth.Address{
			FirstLine: "1", Country: "US", Zip: "1", City: "C", State: "S"}}
		list[3].PatientAddress.AccessNotes = &text
		var lines bytes.Buffer
		_, err := bulk.Run(t.Context(), nil, withLines(list), nil, bulk.Options{DryRun: true, Rejections: &lines})
		if err != nil {
			t.Fatal(err)
		}
		got := readReasons(t, []byte(onlyInvalid(lines.String())), nil)
		reasons := map[int]string{2: ": " + want, 3: ": " + want, 4: ": " + want}
		if want == "" {
			reasons = map[int]string{}
		}
		if !maps.Equal(got, reasons) {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// onlyInvalid returns the lines of records that are invalid.
func onlyInvalid(lines string) (invalid string) {
	for line := range strings.Lines(lines) {
		if strings.Contains(line, `"outcome":"invalid"`) {
			invalid += line
		}
	}
	return invalid
}

// Sample IDs that differ only in Unicode normalization or width are never two orders.
func TestSampleIDsInSeveralForms(t *testing.T) {
	for i, pair := range [][2]string{
		{"Pr\u00fcf-1", "Pru\u0308f-1"}, {"\u00c5-1", "A\u030a-1"}, {"\u00c5-1", "\u212b-1"}, {"S-1", "\uff33-1"}, {"S-1", "S-\uff11"}, {"S-1", "S\uff0d1"},
		{"S 1", "S\u00a01"}, {"S 1", "S\u30001"}, {"S-1", "S-\u00b9"}, {"S-1", "S-\u2460"}, {"S-1", "S-\U0001d7cf"}, {"S-4", "S-\u2163"},
		{"\uac00-1", "\u1100\u1161-1"}, {"\u304c-1", "\u304b\u3099-1"}, {"\u1ed1-1", "o\u0302\u0301-1"}, {"\u03a9-1", "\u2126-1"},
		{"\u03ac-1", "\u1f71-1"}, {"\u8c48-1", "\uf900-1"}, {"\u30a2-1", "\uff71-1"}, {"fi-1", "\ufb01-1"}, {"S-1", "S-1\u200d"}, {"K-1", "\u212a-1"},
	} {
		for _, ids := range [][]string{{pair[0], pair[1]}, {pair[1], pair[0]}} {
			synctest.Test(t, func(t *testing.T) {
				s := &service{twice: true}
				var table bytes.Buffer
				report, err := bulk.Run(t.Context(), s.client(t), withLines(records(ids...)), new(bulk.Memory), bulk.Options{RejectionsCSV: &table})
				if err != nil || len(s.orders) > 1 || report.Applied > 1 || report.Invalid+report.Duplicates == 0 {
					t.Errorf("%d, %+q: %v, %v, %d orders", i, ids, report, err, len(s.orders))
				}
				if report.Duplicates == 0 && !strings.Contains(table.String(), ",sample_id,") && !strings.Contains(table.String(), ",conflict,") {
					t.Errorf("%+q: no reason in\n%s", ids, &table)
				}
			})
		}
	}
	// One form is what the service gets.
	synctest.Test(t, func(t *testing.T) {
		s := new(service)
		ids := []string{"Pr\u00fcf-1", "\u00c5-1", "\u0411-1", "\uac00-1", "\u1ed1-1", "stra\u00dfe", "\u5c71"}
		report, err := bulk.Run(t.Context(), s.client(t), from(records(ids...)), new(bulk.Memory), bulk.Options{})
		if err != nil || report.Applied != int64(len(ids)) {
			t.Error(report, err)
		}
	})
	var table bytes.Buffer
	if _, err := bulk.Run(t.Context(), nil, withLines(records("Pru\u0308f-1")), nil, bulk.Options{DryRun: true, RejectionsCSV: &table}); err != nil {
		t.Fatal(err)
	}
	if want := `invalid,"has a character that can be written in several ways, so that one ID could get two orders: use ASCII, or letters in composed form (NFC)",sample_id,`; !strings.Contains(table.String(), want) {
		t.Errorf("no %q in\n%s", want, &table)
	}
}
