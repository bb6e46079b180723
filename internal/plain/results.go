// Results as plain structs, and invented ones as JSON.

package plain

import (
	"encoding/json"
	"fmt"
	"time"
)

// The fields of the results of an order.
type (
	OrderResults struct {
		Metadata          ResultsMetadata       `json:"metadata"`
		Results           []Result              `json:"results"`
		MissingResults    []MissingResult       `json:"missing_results"`
		SampleInformation map[string]SampleData `json:"sample_information"`
		OrderTransaction  *Transaction          `json:"order_transaction"`
	}
	ResultsMetadata struct {
		Age            string  `json:"age"`
		DOB            string  `json:"dob"`
		Patient        string  `json:"patient"`
		SpecimenNumber string  `json:"specimen_number"`
		DateReported   string  `json:"date_reported"`
		CLIA           *string `json:"clia_#"`
		Provider       *string `json:"provider"`
		Laboratory     *string `json:"laboratory"`
		DateCollected  *string `json:"date_collected"`
		DateReceived   *string `json:"date_received"`
		Status         string  `json:"status"`
		Interpretation *string `json:"interpretation"`
		PatientID      *string `json:"patient_id"`
		AccountID      *string `json:"account_id"`
	}
	Result struct {
		Name                 string         `json:"name"`
		Slug                 string         `json:"slug"`
		Result               string         `json:"result"`
		ResultType           *string        `json:"result_type"`
		Type                 *string        `json:"type"`
		Value                *json.Number   `json:"value"`
		Unit                 *string        `json:"unit"`
		Timestamp            *time.Time     `json:"timestamp"`
		Notes                *string        `json:"notes"`
		ReferenceRange       *string        `json:"reference_range"`
		MinRangeValue        *float64       `json:"min_range_value"`
		MaxRangeValue        *float64       `json:"max_range_value"`
		IsAboveMaxRange      *bool          `json:"is_above_max_range"`
		IsBelowMinRange      *bool          `json:"is_below_min_range"`
		Interpretation       string         `json:"interpretation"`
		SourceInterpretation string         `json:"source_interpretation"`
		LOINC                *string        `json:"loinc"`
		LOINCSlug            *string        `json:"loinc_slug"`
		ProviderID           *string        `json:"provider_id"`
		SourceMarkers        []SourceMarker `json:"source_markers"`
		PerformingLaboratory *string        `json:"performing_laboratory"`
		SourceSampleID       *string        `json:"source_sample_id"`
	}
	MissingResult struct {
		Name                string         `json:"name"`
		Slug                string         `json:"slug"`
		InferredFailureType string         `json:"inferred_failure_type"`
		Note                *string        `json:"note"`
		LOINC               *string        `json:"loinc"`
		LOINCSlug           *string        `json:"loinc_slug"`
		ProviderID          *string        `json:"provider_id"`
		SourceMarkers       []SourceMarker `json:"source_markers"`
	}
	SourceMarker struct {
		MarkerID   int64   `json:"marker_id"`
		Name       string  `json:"name"`
		Slug       string  `json:"slug"`
		ProviderID *string `json:"provider_id"`
	}
	SampleData struct {
		SampleID               *string                         `json:"sample_id"`
		ControlNumber          *string                         `json:"control_number"`
		PerformingLaboratories map[string]PerformingLaboratory `json:"performing_laboratories"`
	}
	PerformingLaboratory struct {
		Name            string  `json:"name"`
		PhoneNumber     *string `json:"phone_number"`
		MedicalDirector *string `json:"medical_director"`
	}
)

// ResultsJSON returns invented results of an order.
func ResultsJSON(results int) []byte {
	result := func(k int) string {
		return fmt.Sprintf(`{"name":"Measurement %d","slug":"measurement-%[1]d","value":%[2]d.5,"result":"%[2]d.5","type":"numeric","unit":"mg/dL","timestamp":%[3]q,`+
			`"notes":null,"reference_range":"40-%[4]d","min_range_value":40,"max_range_value":%[4]d,"is_above_max_range":false,"is_below_min_range":false,`+
			`"interpretation":"normal","source_interpretation":"N","loinc":"%[5]d-3","loinc_slug":"measurement-%[1]d","provider_id":"P%05[1]d",`+
			`"source_markers":[{"marker_id":%[1]d,"name":"Marker %[1]d","slug":"marker-%[1]d","provider_id":"P%05[1]d"}],"performing_laboratory":"A1","source_sample_id":"sample-1"}`,
			k, 50+k%40, at(1, k%60), 100+k%50, 2000+k)
	}
	return []byte(`{"metadata":{"age":"52","dob":"14/03/1973","patient":"Example, Ada","specimen_number":"S-00000013","date_reported":"2025-04-13T03:00:07",` +
		`"clia_#":"01D0000000","provider":"Dr. Sample","laboratory":"Sample Laboratory","date_collected":"2025-04-11T09:30:00","date_received":"2025-04-12T10:00:00",` +
		`"status":"final","interpretation":"normal","patient_id":null,"account_id":"27"},` +
		`"results":` + string(listJSON(results, result)) + `,"missing_results":[{"name":"Measurement 900","slug":"measurement-900",` +
		`"inferred_failure_type":"quantity_not_sufficient_failure","note":"Not enough sample","loinc":"2900-3","loinc_slug":"measurement-900","provider_id":null,"source_markers":null}],` +
		`"sample_information":{"sample-1":{"sample_id":"S-00000013","control_number":null,` +
		`"performing_laboratories":{"A1":{"name":"Sample Laboratory","phone_number":"+14155550123","medical_director":null}}}},` +
		`"order_transaction":{"id":"` + id(1, 7) + `","status":"completed","orders":[{"id":"` + id(1, 1) + `","created_at":"` + at(1, 0) + `","updated_at":"` + at(1, 9) + `",` +
		`"low_level_status":"completed","low_level_status_created_at":"` + at(1, 4) + `","origin":"initial","parent_id":null}]}}`)
}
