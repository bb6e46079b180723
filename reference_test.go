package labhealth

// referenceArea connects a part of the public API reference with the code, as
// [referencetest.Area] does. Components and enumerations of the management API have the prefix
// "management ".
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
	&orderReference, &labTestReference, &appointmentReference, &userReference, &teamReference, &wearableReference,
	&managementReference,
}
