// Package powercut cuts the power of programs that use this module, again and again, and looks for
// what they had acknowledged. The disk is that of package cutfs. Before each cut the programs are
// also killed and restarted: a restarted program sees what was written and never synced, and must
// not acknowledge it as it is.
//
//	go test -C integration ./powercut                           some cuts of each row
//	LABHEALTH_TEST_LONG=1 go test -timeout 2h ./powercut        1,000 cuts of each row
//	LABHEALTH_CUTS=50 go test -run TestSQLite ./powercut        another number
//	LABHEALTH_CUT_SEED=7 LABHEALTH_CUTS=1 go test -run …        the run that a failure names
//
// A seed decides when a process is killed, when the power goes, and what is left behind. It does not
// decide in which order the goroutines and the processes run, so a failure may need several
// attempts (-count=20). The tests need Linux, /dev/fuse and root, and are skipped without these.
package powercut
