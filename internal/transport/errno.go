// The kinds of system errors.

//go:build !plan9

package transport

import (
	"errors"
	"syscall"
)

// errnos are the kinds of system errors. The numbers are those of Windows sockets, which package
// syscall has no constants for.
var errnos = map[syscall.Errno]System{
	syscall.ECONNREFUSED: Refused, 10061: Refused,
	syscall.ECONNRESET: Reset, syscall.ECONNABORTED: Reset, syscall.EPIPE: Reset, 10054: Reset, 10053: Reset,
	syscall.EHOSTUNREACH: Unreachable, syscall.ENETUNREACH: Unreachable, syscall.ENETDOWN: Unreachable,
	10065: Unreachable, 10051: Unreachable, 10050: Unreachable,
	syscall.EACCES: Forbidden, syscall.EPERM: Forbidden, 10013: Forbidden,
	syscall.EMFILE: OutOfFiles, syscall.ENFILE: OutOfFiles, 10024: OutOfFiles,
}

// SystemOf returns the kind of the system error behind err.
func SystemOf(err error) System {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errnos[errno]
	}
	return 0
}
