package bulk

import (
	"os"
	"testing"
)

// SkipSync makes a test that does not depend on syncs faster.
func SkipSync(t *testing.T) {
	sync := syncFile
	t.Cleanup(func() { syncFile = sync })
	syncFile = func(*os.File) error { return nil }
}

// RejectionWindow changes the number of rejections that are in memory at once.
func RejectionWindow(t *testing.T, n int) {
	window := rejectionWindow
	t.Cleanup(func() { rejectionWindow = window })
	rejectionWindow = n
}

// SafeCell is safeCell.
func SafeCell(s string) string { return safeCell(s) }
