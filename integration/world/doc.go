// Package world simulates a whole deployment from one seed: an importer (package bulk), a receiver
// (webhooks.Handler, sqlstore.Store, Worker and Reconciler on SQLite), the service, and the
// networks, disks and clocks between them. Each schedule runs in one bubble of testing/synctest.
// The invariants are in invariants_test.go.
//
//	go test -C integration -v ./world                                                         1,500 schedules
//	LABHEALTH_WORLD_SCHEDULES=100000 go test -C integration -v -timeout 2h ./world            another number, from a random seed
//	LABHEALTH_WORLD_TIME=1h go test -C integration -v -timeout 2h ./world                     as many as fit
//	LABHEALTH_WORLD_SEED=7 go test -C integration -v -run TestWorld ./world                   one seed, with its history
//	LABHEALTH_WORLD_REPLAY=200 go test -C integration -v -run TestReplay ./world              how often seeds have the same history again
//	LABHEALTH_TEST_LONG=1 go test -C integration -v -timeout 1h -run TestMutants ./world      planted defects, which must be found
//
// A disk keeps what is written and what is synced apart: a kill keeps both, a power cut keeps,
// loses or tears each write since the last sync. SQLite runs on it through a VFS in Go. A third of
// the schedules aim at one rare sequence of faults each. More than a third have no receiver, which
// takes most of the time.
//
// Schedules run in processes of their own, so that a panic, a deadlock or a timeout names its seed.
package world
