//go:build !unix

package bulk_test

// playStopped is not used: processes cannot be stopped.
func playStopped() int { return 2 }
