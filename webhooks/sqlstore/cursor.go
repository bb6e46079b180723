package sqlstore

import (
	"sync"
	"time"
)

// position is the place of a row in the inbox, which is ordered by due and number.
type position struct{ due, number int64 }

func (p position) before(q position) bool {
	return p.due < q.due || p.due == q.due && p.number < q.number
}

// Rows that were taken and deleted stay in the index until no transaction of the database can see
// them. A cursor starts the next scan behind them.
//
// A row behind the cursor can appear later: receipts commit in another order than that of their
// numbers, and a worker that is killed, or rolls back in another process, returns its rows. Scans
// that start earlier find them. Each level of rescans has an interval, and starts where the cursor
// was between one and two intervals ago: a row that appears within the interval after the cursor
// passed it is taken within two intervals and a step. All others are found by scans of the whole
// inbox, which take at most a tenth of the time.
type cursor struct {
	start position

	mu       sync.Mutex
	at       position // rows up to here were taken
	rescans  [len(rescanIntervals)]rescan
	scanning bool          // a scan of the whole inbox is running
	ended    time.Time     // when the last one was over
	cost     time.Duration // how long it took
}

var rescanIntervals = [...]time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, 100 * time.Second}

// rescan is the state of one level.
type rescan struct {
	older, newer position // of the cursor, before the last rescan but one, and before the last one
	began        time.Time
}

func newCursor(start position) *cursor { return &cursor{start: start, at: start} }

// scan is a scan of the rows behind a position.
type scan struct {
	from     position
	began    time.Time
	whole    bool
	isRescan bool
}

// next returns the scan to run. idle says that there was nothing behind the cursor. The caller
// calls end afterwards.
func (c *cursor) next(now time.Time, idle bool) scan {
	const cheap = 5 * time.Millisecond
	c.mu.Lock()
	defer c.mu.Unlock()
	s := scan{from: c.at, began: now}
	for i := range c.rescans {
		r := &c.rescans[i]
		if now.Sub(r.began) < rescanIntervals[i] {
			continue
		}
		if r.older.before(s.from) && c.at != c.start {
			s.from, s.isRescan = r.older, true
		}
		*r = rescan{r.newer, c.at, now}
	}
	if !c.scanning && (now.Sub(c.ended) >= 9*c.cost || idle && c.cost <= cheap) {
		c.scanning = true
		s.from, s.whole, s.isRescan = c.start, true, true
	}
	return s
}

// end records the result of a scan: the last row, if there is one, and whether there may be more.
func (c *cursor) end(s scan, now time.Time, last position, found, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.whole {
		c.scanning, c.ended, c.cost = false, now, now.Sub(s.began)
	}
	if !found {
		return
	}
	if c.at == c.start { // the first row: there is nothing to rescan yet
		for i := range c.rescans {
			c.rescans[i] = rescan{last, last, now}
		}
	}
	switch {
	case c.at.before(s.from): // rows were returned in the meantime
	case s.isRescan && more, c.at.before(last):
		c.at = last
	}
}

// giveBack moves the cursor back to a position.
func (c *cursor) giveBack(to position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to.before(c.at) {
		c.at = to
	}
}
