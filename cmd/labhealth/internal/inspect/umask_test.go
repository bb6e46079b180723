//go:build unix

package inspect

import "syscall"

func umask(mask int) int { return syscall.Umask(mask) }
