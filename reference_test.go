package labhealth

// referenceArea connects a part of the public API reference with the code. Components and
// enumerations of the management API have the prefix "management ".
type referenceArea struct {
	// components has the zero value of the Go type of each component.
	components map[string]any
	// enums has the zero value of the Go type of each enumeration. The inline enumeration of a
	// field is named "Component.field".
	enums map[string]any
	// operations has the method of each operation, such as "Orders.Cancel".
	operations map[string]string
	// exceptions has the reason of each intended difference, by component, "Component.field",
	// enumeration or operation.
	exceptions map[string]string
}

var referenceAreas = []*referenceArea{
	&orderReference, &labTestReference, &appointmentReference, &userReference, &teamReference, &wearableReference,
	&managementReference,
}
