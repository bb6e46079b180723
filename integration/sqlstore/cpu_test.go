package sqlstore_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// cpuTime returns the CPU time that this process and the connections to its database have used, in
// seconds. It does not depend on what else the machine does. The time of a PostgreSQL server is 0
// if it runs on another machine.
func cpuTime(t testing.TB, d database) float64 {
	t.Helper()
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		t.Fatal(err)
	}
	all := time.Duration(own.Utime.Nano() + own.Stime.Nano()).Seconds()
	if d.dialect == sqlstore.SQLite {
		return all
	}
	db := d.open(t)
	defer db.Close()
	for _, pid := range column(t, db, `SELECT CAST(pid AS text) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			continue
		}
		_, fields, _ := strings.Cut(string(stat), ") ")
		var ticks [2]float64
		if n := strings.Fields(fields); len(n) > 12 {
			fmt.Sscan(n[11], &ticks[0])
			fmt.Sscan(n[12], &ticks[1])
		}
		all += (ticks[0] + ticks[1]) / 100
	}
	return all
}

// walBytes returns how many bytes PostgreSQL has written to its log, for all databases; 0 for
// others.
func walBytes(t testing.TB, d database) (bytes int64) {
	t.Helper()
	if d.dialect != sqlstore.PostgreSQL {
		return 0
	}
	db := d.open(t)
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), `SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn`).Scan(&bytes); err != nil {
		t.Fatal(err)
	}
	return bytes
}
