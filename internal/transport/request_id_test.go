package transport

import (
	"net/http"
	"testing"
)

// Only what looks like an ID is one: a name, a date, a phone number and a record number are none.
func TestRequestID(t *testing.T) {
	for id, want := range map[string]bool{
		"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01": true,
		"3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01":                    true,
		"3F1C6A52-FADE-4B7A-9C11-5E2D7A904B01":                    true,
		"01ARZ3NDEKTSV4RRFFQ69G5FAV":                              true,
		"req_011CSHoEeqs5C35K2UUqFy7B":                            true,
		"req-1":                                                   true,
		"00-5f0c":                                                 true,
		"18446744073709551615":                                    true,
		"Ada":                                                     false, "Ada.Example": false, "ada-example": false, "Ada_1990": false, "ada1990": false, "Ada-1": false,
		"1990-01-31": false, "19900131": false, "15550199231": false, "987-65-4329": false, "734.8125": false,
		"MRN-0077123": false, "mrn-0077123": false, "Example.Ada.1990-01-31": false, "ada@example.com": false, "Ada 1": false,
	} {
		if got := RequestID(http.Header{"X-Request-Id": {id}}); (got == id) != want || got != "" && !want {
			t.Errorf("%q: got %q", id, got)
		}
	}
}
