package console

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// vendored are the files of other projects, unchanged from their npm packages.
var vendored = map[string]struct{ source, sum string }{
	"idiomorph.min.js":      {"idiomorph 0.8.0, dist/idiomorph.min.js", "4cbd535caf7663a51eda9bce6595371c384fc430d54b8d414e29a61167f19f96"},
	"idiomorph.LICENSE.txt": {"idiomorph 0.8.0, LICENSE", "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38"},
	"uPlot.iife.min.js":     {"uPlot 1.6.32, dist/uPlot.iife.min.js", "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"},
	"uPlot.min.css":         {"uPlot 1.6.32, dist/uPlot.min.css", "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"},
	"uPlot.LICENSE.txt":     {"uPlot 1.6.32, LICENSE", "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd"},
}

// Scripts of other projects are those that NOTICE names, and all assets together are small.
func TestAssets(t *testing.T) {
	notice, err := os.ReadFile("../../../../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir(assets, "assets")
	if err != nil {
		t.Fatal(err)
	}
	size, found := 0, 0
	for _, entry := range entries {
		b, err := fs.ReadFile(assets, "assets/"+entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		size += len(b)
		v, isVendored := vendored[entry.Name()]
		if !isVendored {
			if !strings.HasPrefix(entry.Name(), "console.") {
				t.Errorf("%s has no source", entry.Name())
			}
			continue
		}
		found++
		if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != v.sum {
			t.Errorf("%s is not that of %s: %x", entry.Name(), v.source, sum)
		}
		if name, _, _ := strings.Cut(v.source, ","); !strings.Contains(string(notice), name+" (") {
			t.Errorf("NOTICE does not name %s", name)
		}
	}
	if found != len(vendored) || size > 300_000 {
		t.Errorf("%d of %d vendored files, %d bytes of assets", found, len(vendored), size)
	}
}
