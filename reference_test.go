package labhealth

import (
	"net/http"
	"reflect"
	"testing"

	"github.com/labhealth/labhealth-go/internal/reference/referencetest"
)

// referenceArea connects a part of the public API reference with the code, as
// [referencetest.Area] does.
type referenceArea struct {
	// components has the zero value of the Go type of each component.
	components map[string]any
	// enums has the zero value of the Go type of each enumeration. The inline enumeration of a
	// field is named "Component.field".
	enums map[string]any
	// operations has the method of each operation, such as "Orders.Cancel".
	operations map[string]string
	// exceptions has the reason of each intended difference, by component, "Component.field",
	// enumeration, "Enumeration.value", operation, or operation with a query parameter, such as
	// "GET /v3/lab_test.name". The suffixes ".response" and ".body" stand for the result of a
	// method and for a body that the table does not have.
	exceptions map[string]string
}

var referenceAreas = []*referenceArea{
	&orderReference, &labTestReference, &appointmentReference, &userReference, &teamReference, &wearableReference, &insuranceReference,
}

func referenceChecks() []referencetest.Area {
	var areas []referencetest.Area
	for _, a := range referenceAreas {
		areas = append(areas, referencetest.Area{Components: a.components, Enums: a.enums, Operations: a.operations, Exceptions: a.exceptions})
	}
	return areas
}

// referenceTypes returns the Go types of all components.
func referenceTypes() []reflect.Type { return referencetest.Types(referenceChecks()...) }

func referenceMethods() referencetest.Methods {
	return referencetest.Methods{
		API: "team", Areas: referenceChecks(),
		Client: func(h *http.Client) (any, error) {
			return NewClient("key", WithBaseURL("https://api.example.com"), WithHTTPClient(h), WithRetry(RetryPolicy{MaxAttempts: 1}))
		},
		WithoutValidation: WithoutValidation(),
		ThreeAttempts:     WithCallRetry(RetryPolicy{MaxAttempts: 3, BaseWait: 1, MaxWait: 1}),
	}
}

// The types have every field of the tables with its type, nullability and default, and every
// enumeration has its values. There are no others.
func TestReferenceTypes(t *testing.T) {
	s := referencetest.Check(t, referenceChecks()...)
	t.Logf("%d components, %d fields, %d enumerations, %d values", s.Components, s.Fields, s.Enums, s.Values)
}

func TestReferenceComplete(t *testing.T)   { referenceMethods().Complete(t) }
func TestReferenceOperations(t *testing.T) { referenceMethods().Operations(t) }
func TestReferenceRepeats(t *testing.T)    { referenceMethods().Repeats(t) }
func TestReferenceDocuments(t *testing.T)  { referenceMethods().Documents(t) }
