package conformance

var userCalls = []apiCall{}
