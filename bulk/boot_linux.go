// The time since the boot, on Linux.

package bulk

import (
	"os"
	"strings"
	"syscall"
	"time"
)

// systemBoot identifies the boot of the system, and the clock of this process since then. It is
// empty if it is unknown.
func systemBoot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	clock, err := os.Readlink("/proc/self/ns/time") // a time namespace has its own offset
	if err != nil {
		return ""
	}
	if systemUptime() == 0 {
		return ""
	}
	return strings.TrimSpace(string(id)) + " " + clock
}

// systemUptime returns the time since the boot, rounded up to whole seconds. It counts while the
// system is suspended, and setting the clock does not change it. It is 0 if it is unknown. The
// system call is used because some containers have another /proc/uptime.
func systemUptime() time.Duration {
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) != nil {
		return 0
	}
	return time.Duration(info.Uptime) * time.Second
}
