// The time since the boot, on other systems: unknown.

//go:build !linux

package bulk

import "time"

// systemBoot returns no boot: how long ago an earlier run sent is unknown.
func systemBoot() string { return "" }

func systemUptime() time.Duration { return 0 }
