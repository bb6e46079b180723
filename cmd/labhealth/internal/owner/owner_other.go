//go:build !unix

package owner

import "io/fs"

func isOwn(fs.FileInfo) bool { return true }
