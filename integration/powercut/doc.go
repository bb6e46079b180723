// Package powercut cuts the power of programs that use this module, and checks that what they
// acknowledged survives. The disk is that of package cutfs. Before a cut the programs are also
// killed and restarted: a restarted program reads what was written and never synced, and must not
// acknowledge it without a sync.
//
//	go test -C integration -v ./powercut                                                   some cuts of each row
//	LABHEALTH_CUTS=50 go test -C integration -v -run TestSQLite ./powercut                 another number
//	LABHEALTH_TEST_LONG=1 go test -C integration -v -timeout 6h ./powercut                 100 to 1,000 cuts of each row, and the mutants
//	LABHEALTH_CUT_SEED=7 LABHEALTH_CUTS=1 go test -C integration -v -run 'TestSQLite/^full-on-strict$' ./powercut   one cut
//
// The tests are TestSQLite, TestBulk, TestPostgreSQL and TestNATS; -v names their rows and counts
// cuts and losses. With a seed, select one row: a row with unsafe settings fails if it loses
// nothing, which one cut may not show. A failure prints the command that repeats it.
//
// A seed decides when a process is killed, when the power is cut, and what remains on the disk. It
// does not decide in which order goroutines and processes run, so a failure may need several
// attempts (-count=20). The tests need Linux, /dev/fuse and root, and are skipped without these.
package powercut
