package conformance

var appointmentCalls = []apiCall{}
