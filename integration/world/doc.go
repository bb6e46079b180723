// Package world simulates a whole deployment from one seed: an importer (package bulk), a receiver
// (webhooks.Handler, sqlstore.Store, Worker and Reconciler on SQLite), the service, and the
// networks, disks and clocks between them. Each schedule runs in one bubble of testing/synctest.
//
//	go test -C integration ./world                                          committed seeds and some thousand schedules
//	LABHEALTH_WORLD_SCHEDULES=100000 go test -C integration -timeout 2h ./world   as many
//	LABHEALTH_WORLD_TIME=1h go test -C integration -timeout 2h ./world            as many as fit
//	LABHEALTH_WORLD_SEED=7 go test -C integration -v ./world                one seed, with its history
//	LABHEALTH_WORLD_REPLAY=200 go test -C integration -v -run Replay ./world      how often seeds replay
//	LABHEALTH_WORLD_BUGS=1 go test -C integration -timeout 1h -v -run Bugs ./world       plants bugs
//	LABHEALTH_WORLD_BUGS=search go test -C integration -timeout 1h -v -run Bugs ./world  without committed seeds
//
// A disk keeps what is written and what is synced apart: a kill keeps both, a power cut keeps,
// loses or tears each write since the last sync. SQLite runs on it through a VFS in Go. A third of
// the schedules aim at one rare sequence of faults each. More than a third have no receiver, which
// costs most of the time.
//
// Schedules run in processes of their own, so that a panic, a deadlock or a timeout names its seed.
package world
