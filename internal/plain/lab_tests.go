// Lab tests as plain structs, and invented ones as JSON.

package plain

import "fmt"

// LabTestPage has the fields of a page of lab tests.
type LabTestPage struct {
	Data       []LabTest `json:"data"`
	NextCursor *string   `json:"next_cursor"`
}

// LabTestJSON returns an invented lab test with three markers.
func LabTestJSON(n int) string {
	marker := func(k int) string {
		return fmt.Sprintf(`{"id":%d,"name":"Marker %[1]d","slug":"marker-%[1]d","description":"Measures substance %[1]d in blood","lab_id":27,"provider_id":"P%05[1]d",`+
			`"type":"biomarker","unit":"mg/dL","price":"12.50","aoe":null,"a_la_carte_enabled":true,"common_tat_days":2,"worst_case_tat_days":null,"is_orderable":true}`, n*3+k)
	}
	return fmt.Sprintf(`{"id":%q,"slug":"panel-%d","name":"Panel %[2]d","sample_type":"serum","method":"walk_in_test","price":%d.0,"is_active":true,"status":"active","fasting":%t,`,
		id(n, 4), n, 20+n%70, n%3 == 0) +
		`"lab":{"id":27,"slug":"sample-lab","name":"Sample Laboratory","first_line_address":"2 Sample Street","city":"Springfield","zipcode":"94105",` +
		`"collection_methods":["testkit","walk_in_test"],"sample_types":["dried_blood_spot","serum"],"logo_url":null},` +
		`"markers":` + string(listJSON(3, marker)) + `,"is_delegated":false,"auto_generated":false,"has_collection_instructions":false,"common_tat_days":3,"worst_case_tat_days":null}`
}

// LabTestPageJSON returns a page of invented lab tests.
func LabTestPageJSON(tests int) []byte {
	return fmt.Appendf(nil, `{"data":%s,"next_cursor":"cursor-1"}`, listJSON(tests, LabTestJSON))
}
