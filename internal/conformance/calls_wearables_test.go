package conformance

var wearableCalls = []apiCall{}
