// Writes vocabulary_gen.go.

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/labhealth/labhealth-go/internal/reference"
)

// shownEnums are the enumerations whose values a redacted body shows. Those that describe a person
// or a result, such as Gender, Interpretation and USState, are left out, and so are those that have
// no name. An enumeration is added only if it says nothing about a patient.
var shownEnums = []string{
	"AppointmentEventStatus", "AppointmentPSCLabs", "AppointmentProvider", "AppointmentServiceType", "AppointmentStatus", "AppointmentType",
	"AttemptStatus", "Availability", "Billing", "ClientFacingLabs", "ConsentType", "DelegatedFlowType", "DemoProviders", "Env",
	"HistoricalPullNonRetriableErrorDetails", "HistoricalPullRetriableErrorDetails", "HistoricalPullStatus", "LabAccountDelegatedFlow",
	"LabAccountStatus", "LabLocationCapability", "LabTestCollectionMethod", "LabTestGenerationMethodFilter", "LabTestSampleType",
	"LabTestStatus", "Labs", "LabsProviders", "MarkerType", "OAuthProviders", "OrderActivationType", "OrderLowLevelStatus", "OrderOrigin",
	"OrderStatus", "OrderStatusDetail", "OrderTopLevelStatus", "OrderTransactionStatus", "PriorityResource", "Providers", "QuestionType",
	"Resource", "SourceAuthType", "SourceType",
}

// hiddenNames are fields whose values are never shown: they identify a patient, or are free text.
var hiddenNames = []string{"client_user_id", "device_id", "source_device_id", "external_user_id", "name", "patient_id", "sample_id", "slug", "value"}

// extraNames are fields of errors, which the public API reference leaves out.
var extraNames = []string{"ctx", "detail", "error", "error_message", "input", "loc", "message", "msg", "type", "url", "body", "query", "path", "header"}

// extraValues are values of the fields "type" of errors and "region", which the public API
// reference leaves out or does not name.
var extraValues = []string{
	"assertion_error", "bool_parsing", "bool_type", "date_from_datetime_parsing", "date_parsing", "date_type", "datetime_from_date_parsing",
	"datetime_parsing", "datetime_type", "dict_type", "enum", "eu", "extra_forbidden", "float_parsing", "float_type", "greater_than",
	"greater_than_equal", "int_from_float", "int_parsing", "int_type", "json_invalid", "less_than", "less_than_equal", "list_type",
	"literal_error", "missing", "model_attributes_type", "model_type", "none_required", "string_pattern_mismatch", "string_too_long",
	"string_too_short", "string_type", "too_long", "too_short", "union_tag_invalid", "union_tag_not_found", "url_parsing", "us",
	"uuid_parsing", "uuid_type", "value_error",
}

// vocabulary collects the words that the redacted form of a request or response may have.
type vocabulary struct {
	names, ids, enums map[string]bool // of fields and parameters
	values, paths     map[string]bool
	maps              map[string]bool // fields that are maps
	others            map[string]bool // fields that are something else, at least in some places
}

// vocabularyFile returns the source of vocabulary_gen.go, from the public API reference.
func vocabularyFile() []byte {
	v := &vocabulary{
		names: setOf(extraNames), ids: map[string]bool{}, enums: setOf([]string{"region", "type"}), values: setOf(extraValues),
		paths: map[string]bool{}, maps: map[string]bool{}, others: map[string]bool{},
	}
	for _, f := range reference.Fields() {
		v.add(f.Name, reference.ParseType(f.API, f.Type))
	}
	for _, o := range reference.Operations() {
		for _, p := range o.Parameters {
			v.add(p.Name, reference.ParseType(o.API, p.Type))
		}
		for word := range strings.SplitSeq(o.Path, "/") {
			if word != "" && !strings.HasPrefix(word, "{") {
				v.paths[word] = true
			}
		}
	}
	for _, name := range hiddenNames {
		delete(v.ids, name)
		delete(v.enums, name)
	}
	for name := range v.others {
		delete(v.maps, name)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, header, "labhealth")
	list := func(name, comment string, words map[string]bool) {
		fmt.Fprintf(&b, "// %[1]s %[2]s\nconst %[1]s = \"\" +\n%[3]s\n\n", name, comment, quoted(slices.Sorted(maps.Keys(words))))
	}
	list("fieldNames", "are the names of all fields and parameters.", v.names)
	list("idNames", "are the fields and parameters that hold an ID of the service.", v.ids)
	list("mapNames", "are the fields whose own field names are data.", v.maps)
	list("pathWords", "are the parts of the paths of all operations.", v.paths)
	list("enumNames", "are the fields and parameters that hold an enumeration that says nothing about a patient.", v.enums)
	list("enumValues", "are the values of these enumerations.", v.values)
	return b.Bytes()
}

func (v *vocabulary) add(name string, typ reference.Type) {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return
	}
	v.names[name] = true
	if typ.Kind == reference.Map {
		v.maps[name] = true
	} else {
		v.others[name] = true
	}
	v.addValues(name, typ)
}

func (v *vocabulary) addValues(name string, typ reference.Type) {
	switch typ.Kind {
	case reference.Basic:
		if strings.HasPrefix(typ.Name, "uuid") {
			v.ids[name] = true
		}
	case reference.Enumeration:
		if slices.Contains(shownEnums, typ.Name) {
			v.enums[name] = true
			maps.Copy(v.values, setOf(typ.Values))
		}
	case reference.Array:
		v.addValues(name, *typ.Elem)
	case reference.Union:
		for _, variant := range typ.Variants {
			v.addValues(name, variant)
		}
	case reference.Component, reference.Inline, reference.Const, reference.Map:
	}
}

func setOf(words []string) map[string]bool {
	set := map[string]bool{}
	for _, word := range words {
		if word != "" {
			set[word] = true
		}
	}
	return set
}

// quoted returns words as the lines of a string constant.
func quoted(words []string) string {
	var lines []string
	line := ""
	for _, word := range words {
		if len(line)+len(word) > 110 {
			lines, line = append(lines, line), ""
		}
		line += word + " "
	}
	lines = append(lines, cmp.Or(line, " "))
	for i := range lines {
		lines[i] = fmt.Sprintf("\t%q", lines[i])
	}
	return strings.Join(lines, " +\n")
}
