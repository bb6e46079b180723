package conformance

var orderCalls = []apiCall{}
