package conformance

var teamAPICalls = []apiCall{}
