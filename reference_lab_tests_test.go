package labhealth

var labTestReference = referenceArea{
	components: map[string]any{},
	enums:      map[string]any{},
	operations: map[string]string{},
	exceptions: map[string]string{},
}
