package bulk_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

// hostileHeader is the header of hostileFile.
const hostileHeader = "sample_id,user_id,patient_details.first_name,patient_details.last_name,patient_details.dob,patient_details.gender," +
	"patient_details.phone_number,patient_details.email,patient_address.receiver_name,patient_address.first_line," +
	"patient_address.second_line,patient_address.city,patient_address.state,patient_address.zip,patient_address.access_notes,Notes\n"

// hostileFile returns a CSV file, in which each cell of a patient has the number of the patient.
func hostileFile(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString(hostileHeader)
	for i := range 2 + r.IntN(8) {
		second := ""
		if r.IntN(3) == 0 {
			second = fmt.Sprintf(`"Apt, 5 Q%04dQ"`, i)
		}
		fmt.Fprintf(&b, "SQ%04[1]dQ,b2f0c7a4-0000-4000-8000-%012[1]d,FQ%04[1]dQ,LQ%04[1]dQ,1980-01-%02[2]d,female,+1415555%04[1]d,"+
			"eQ%04[1]dQ@example.com,RQ%04[1]dQ,1 St Q%04[1]dQ,%[3]s,CQ%04[1]dQ,CA,93940,note Q%04[1]dQ,xQ%04[1]dQ\n", i, i+1, second)
	}
	return b.String()
}

var patientTag = regexp.MustCompile(`Q\d{4}Q`)

// Stray quotes and separators never make one record out of the rows of two patients. With
// LABHEALTH_TEST_LONG=1 there are 500,000 files, and their seed is random.
func TestStrayQuotes(t *testing.T) {
	t.Parallel()
	seed, files := uint64(1), 5_000
	if os.Getenv("LABHEALTH_TEST_LONG") != "" {
		seed, files = rand.Uint64(), 500_000
	}
	r := rand.New(rand.NewPCG(seed, 0))
	strays := []string{`"`, `"`, `"`, `,"`, `",`, ","}
	check := func(data string) {
		t.Helper()
		for rec, err := range bulk.CSV(strings.NewReader(data), bulk.CSVOptions{
			Rename:   map[string]string{"Notes": "-"},
			Defaults: labhealth.ImportOrderBody{BillingType: "client_bill", CollectionMethod: "walk_in_test", PatientAddress: labhealth.PatientAddress{Country: "US"}},
		}) {
			if err != nil || rec.Body.Validate() != nil {
				continue
			}
			body, err := json.Marshal(rec.Body)
			if err != nil {
				t.Fatal(err)
			}
			patients := patientTag.FindAllString(string(body), -1)
			slices.Sort(patients)
			if patients = slices.Compact(patients); len(patients) > 1 {
				t.Fatalf("seed %d: line %d has the patients %v:\n%s\n%s", seed, rec.Line, patients, body, data)
			}
		}
	}
	// The same column of two rows, as an export without escapes writes nicknames and inches.
	lines := strings.SplitAfter(hostileFile(rand.New(rand.NewPCG(0, 0))), "\n")
	for column := range strings.Count(hostileHeader, ",") {
		first, second := strings.Split(lines[1], ","), strings.Split(lines[2], ",")
		first[column], second[column] = `"`+first[column], second[column]+`"`
		check(lines[0] + strings.Join(first, ",") + strings.Join(second, ","))
	}
	for range files {
		data := hostileFile(r)
		for range 2 + r.IntN(3) {
			at := len(hostileHeader) + r.IntN(len(data)-len(hostileHeader))
			data = data[:at] + strays[r.IntN(len(strays))] + data[at:]
		}
		check(data)
	}
}

// A list that is behind by less than Options.Settle, and does not have orders that the journal has,
// delays a resumed run and does not end it. The service accepts duplicate sample IDs.
func TestListIsBehindTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, j := &service{twice: true}, new(bulk.Memory)
		opts := bulk.Options{Timeout: 2 * time.Second, Settle: 5 * time.Second}
		if _, err := bulk.Run(t.Context(), s.client(t), from(numbered(5)), j, opts); err != nil {
			t.Fatal(err)
		}
		ready := time.Now().Add(3 * time.Second)
		s.onList = func(int, map[string][]string) string {
			if time.Now().Before(ready) {
				return "behind"
			}
			return ""
		}
		report, err := bulk.Run(t.Context(), s.client(t), from(numbered(7)), j, opts)
		if err != nil || !report.Done() {
			t.Errorf("%v, %v", report, err)
		}
		for id, n := range s.ordersBySample() {
			if n != 1 {
				t.Errorf("%s has %d orders", id, n)
			}
		}
	})
}
