package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/console"
)

// hidden replaces values that are not printed.
const hidden = "***"

// shownFields are the fields whose values are no patient data, whatever object has them.
var shownFields = set(
	"id", "user_id", "team_id", "order_id", "lab_test_id", "lab_account_id", "health_insurance_id", "order_transaction_id",
	"appointment_id", "transaction_id", "parent_id",
	"status", "status_detail", "low_level_status", "type", "event_type", "created_at", "updated_at", "created_on", "activate_by",
	"priority", "billing_type", "has_abn", "interpretation", "has_missing_results", "expected_result_by_date",
	"worst_case_result_by_date", "origin", "success", "ingestion_start", "ingestion_end", "is_critical",
	// of results
	"laboratory", "date_reported", "date_collected", "date_received", "clia_#",
	// of webhooks and keys
	"url", "label", "role", "description", "disabled", "filter_types", "rate_limit",
)

// shownObjects are the fields whose objects and lists hold no patient data except in hiddenFields:
// the catalog, the links between orders, the sources, the measurements, and the teams of a key.
var shownObjects = set("lab_test", "order_transaction", "connected_sources", "results", "missing_results", "team_role_bindings")

// hiddenFields are hidden in shownObjects too, beside the fields that the console hides. Those are
// names, contacts and texts; hiddenFields are the IDs by which people and their samples are found.
// measuredFields are measurements, which the console hides and a command prints on request.
var (
	hiddenFields   = set("patient_name", "sample_id", "source_sample_id", "client_user_id")
	measuredFields = set("result")
)

// secretFields are hidden even if patient data is shown. They belong to the keys; in results, value
// is a measurement.
var secretFields = set("key", "value", "secret")

// opaqueFields are replaced as a whole, because the names in their objects are data.
var opaqueFields = set("sample_information", "performing_laboratories", "icd_codes")

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}

// mask returns a JSON value without whitespace, whose values are replaced by "***" unless they are
// known to be neither patient data nor secret. Unknown fields are hidden: a service may put patient
// data into fields that this program does not have. The names of these fields are replaced too:
// they may be those of people. Objects, lists, null and the order of the fields remain.
func mask(document []byte, showPatient bool) ([]byte, error) {
	if len(document) == 0 {
		return nil, errors.New("it is empty")
	}
	m := masker{decoder: json.NewDecoder(bytes.NewReader(document)), showPatient: showPatient}
	m.decoder.UseNumber()
	if err := m.value("", false, false); err != nil {
		return nil, err
	}
	if _, err := m.decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one value")
	}
	return escapeJSON(m.out.Bytes()), nil
}

type masker struct {
	decoder     *json.Decoder
	out         bytes.Buffer
	showPatient bool
}

// value copies the value of a field. Below a shown object, the values are shown unless they are in
// hiddenFields. Measurements have no secrets.
func (m *masker) value(field string, shown, measured bool) error {
	if opaqueFields[field] && !m.showPatient {
		return m.opaque()
	}
	token, err := m.decoder.Token()
	if err != nil {
		return err
	}
	// Measurements have no secrets: their value is a number.
	measured = measured || field == "results" || field == "missing_results"
	shown = (shown || shownObjects[field]) && !isHidden(field)
	if open, ok := token.(json.Delim); ok {
		return m.container(field, open, shown, measured)
	}
	if token != nil && m.hides(field, shown, measured) {
		token = hidden
	}
	if url, ok := token.(string); ok && field == "url" {
		token = withoutQuery(url)
	}
	m.write(token)
	return nil
}

// isHidden reports whether a field is hidden in shown objects too.
func isHidden(field string) bool {
	return hiddenFields[field] || console.PatientFields[field] && !measuredFields[field]
}

// hides reports whether the value of a field is hidden.
func (m *masker) hides(field string, shown, measured bool) bool {
	if secretFields[field] && !measured {
		return true
	}
	return !m.showPatient && !shown && !shownFields[field]
}

// opaque hides a value as a whole, unless it is null.
func (m *masker) opaque() error {
	var value any
	err := m.decoder.Decode(&value)
	if value != nil {
		value = hidden
	}
	m.write(value)
	return err
}

// container copies an object, or a list, whose elements are values of the field.
func (m *masker) container(field string, open json.Delim, shown, measured bool) error {
	m.out.WriteString(open.String())
	unknown := 0
	for first := true; m.decoder.More(); first = false {
		if !first {
			m.out.WriteByte(',')
		}
		if open == '{' {
			token, err := m.decoder.Token()
			if err != nil {
				return err
			}
			field, _ = token.(string)
			m.write(m.name(field, &unknown))
			m.out.WriteByte(':')
		}
		if err := m.value(field, shown, measured); err != nil {
			return err
		}
	}
	closed, err := m.decoder.Token()
	m.out.WriteString(fmt.Sprint(closed))
	return err
}

// name returns the name that is printed of a field. Those that are hidden have a number, so that
// the names of an object differ.
func (m *masker) name(name string, unknown *int) string {
	if m.showPatient || console.IsKnownField(name) || shownFields[name] || secretFields[name] || opaqueFields[name] || hiddenFields[name] {
		return name
	}
	if *unknown++; *unknown > 1 {
		return fmt.Sprint(hidden, *unknown)
	}
	return hidden
}

// write writes a string, a number, a boolean or null.
func (m *masker) write(v any) {
	encoder := json.NewEncoder(&m.out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v)           // which cannot fail
	m.out.Truncate(m.out.Len() - 1) // the line break
}
