package conformance

var labTestCalls = []apiCall{}
