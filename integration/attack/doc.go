// Package attack attacks the client with random servers, networks and transports, and counts what
// the servers commit. A seed decides everything that happens to a few calls: the methods, their
// options and deadlines, what the network does with each byte, and the http.RoundTripper between
// the client and the network. The invariants are in invariants_test.go.
//
//	go test -C integration -v ./attack                                                  10,000 calls
//	LABHEALTH_ATTACK_CALLS=1000000 go test -C integration -v -run TestAttack ./attack    another number
//	LABHEALTH_ATTACK_TIME=1h go test -C integration -v -timeout 2h -run TestAttack ./attack
//	LABHEALTH_ATTACK_SEED=42 go test -C integration -v -run TestAttack ./attack          one seed, with its schedule and its outcomes
//	LABHEALTH_ATTACK_SCHEDULE='{…}' go test -C integration -v -run TestAttack ./attack   a schedule that a failure prints
//	LABHEALTH_TEST_LONG=1 go test -C integration -v -timeout 1h -run TestMutants ./attack
//
// The first seed is LABHEALTH_ATTACK_FROM, otherwise 1, or the time if a run is longer than the
// default. TestMutants plants defects in the client, each of which must be found within a minute.
//
// The servers are honest: they commit what they accept, and nothing that they reject with a 4xx. A
// server that commits and responds with a 429, and one whose HTTP/1 responses are out of step with
// the requests, is indistinguishable from an honest one.
//
// The network is in memory and in a bubble of testing/synctest, so that no wait takes real time.
// TestLoopback repeats a part of the calls over TCP.
package attack
