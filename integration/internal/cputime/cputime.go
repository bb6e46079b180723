// Package cputime measures the processor time of the process.
package cputime

import (
	"syscall"
	"time"
)

// Now returns what the process has taken so far.
func Now() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
