package bulk

import (
	"os"
	"testing"
	"time"
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

// BootClock replaces the clock of the leases.
func BootClock(t *testing.T, boot func() string, sinceBoot func() time.Duration) {
	id, up := bootID, uptime
	t.Cleanup(func() { bootID, uptime = id, up })
	bootID, uptime = boot, sinceBoot
}

// ShortenLeases makes leases and what they save short enough for a test with processes.
func ShortenLeases(margin, settle time.Duration) { leaseMargin, minSettle = margin, settle }
