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
