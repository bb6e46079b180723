// Where workers read on in the inbox.

package sqlstore

import (
	"math"
	"sync"
	"time"
)

// Rows that were taken and deleted stay in the index until no transaction of the database can see
// them. A cursor starts the next scan of each slot behind them.
//
// A row behind the cursor can appear later: receipts commit in another order than that of their
// times, and a worker that is killed, or rolls back in another process, returns its rows. Scans
// that start earlier find them. Each level of rescans has an interval, and starts where the cursor
// was between one and two intervals ago: a row that appears within the interval after the cursor
// passed it is taken within two intervals and a step. All others are found by scans of the whole
// queue, which take at most a tenth of the time.
//
// Between rescans, only those slots are scanned that are known to have rows.
type cursor struct {
	mu       sync.Mutex
	at       positions   // rows before these were taken
	busy     [Slots]bool // there may be rows from there on
	first    int         // the slot that is next, so that none waits for the others
	rescans  [len(rescanIntervals)]rescan
	scanning bool          // a scan of the whole queue is running
	ended    time.Time     // when the last one was over
	cost     time.Duration // how long it took
}

// positions are times in a queue, one for each slot.
type positions [Slots]int64

const start = math.MinInt64 // of a queue

var rescanIntervals = [...]time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second, 100 * time.Second}

// rescan is the state of one level.
type rescan struct {
	older, newer positions // of the cursor, before the last rescan but one, and before the last one
	began        time.Time
}

func newCursor() *cursor {
	c := new(cursor)
	for slot := range Slots {
		c.at[slot] = start
		for i := range c.rescans {
			c.rescans[i].older[slot], c.rescans[i].newer[slot] = start, start
		}
	}
	return c
}

// scan is a scan of the rows of slots from a position on.
type scan struct {
	slots    []int64 // in the order in which they are scanned
	from     positions
	began    time.Time
	whole    bool
	isRescan bool
}

// next returns the scan to run. idle says that there was nothing in the busy slots. The caller
// calls end afterwards.
func (c *cursor) next(now time.Time, idle bool) scan {
	const cheap = 5 * time.Millisecond
	c.mu.Lock()
	defer c.mu.Unlock()
	s := scan{from: c.at, began: now}
	all := idle
	for i := range c.rescans {
		r := &c.rescans[i]
		if now.Sub(r.began) < rescanIntervals[i] {
			continue
		}
		all = true
		for slot := range Slots {
			if r.older[slot] < s.from[slot] {
				s.from[slot], s.isRescan = r.older[slot], true
			}
		}
		r.older, r.newer, r.began = r.newer, c.at, now
	}
	if !c.scanning && (now.Sub(c.ended) >= 9*c.cost || idle && c.cost <= cheap) {
		c.scanning, all = true, true
		s.whole, s.isRescan = true, true
		for slot := range Slots {
			s.from[slot] = start
		}
	}
	for i := range Slots {
		if slot := (c.first + i) % Slots; all || c.busy[slot] {
			s.slots = append(s.slots, int64(slot))
		}
	}
	return s
}

// place is the place of a row in a queue.
type place struct{ slot, due int64 }

// end records the result of a scan: its rows, and whether it stopped because there were enough.
func (c *cursor) end(s scan, now time.Time, rows []place, enough bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.whole {
		c.scanning, c.ended, c.cost = false, now, now.Sub(s.began)
	}
	last := map[int64]int64{}
	for _, row := range rows {
		last[row.slot] = row.due
	}
	stopped := false
	for _, slot := range s.slots {
		due, found := last[slot]
		switch {
		case stopped:
			c.busy[slot] = true
			if s.isRescan {
				c.at[slot] = min(c.at[slot], s.from[slot])
			}
		case found:
			stopped = enough && slot == rows[len(rows)-1].slot
			c.pass(s, slot, due, stopped)
		default:
			c.busy[slot] = false
		}
	}
	if len(rows) > 0 {
		c.first = int(rows[len(rows)-1].slot+1) % Slots
	}
}

// pass records the last row of a slot, behind which there may be more.
func (c *cursor) pass(s scan, slot, due int64, more bool) {
	c.busy[slot] = more
	if c.at[slot] == start { // the first row: there is nothing to rescan yet
		for i := range c.rescans {
			c.rescans[i].older[slot], c.rescans[i].newer[slot] = due, due
		}
	}
	switch {
	case c.at[slot] < s.from[slot]: // rows were returned in the meantime
		c.busy[slot] = true
	case s.isRescan && more, c.at[slot] < due:
		c.at[slot] = due
	}
}

// found says that a slot has rows, such as one that was just stored or is returned.
func (c *cursor) found(row place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at[row.slot] = min(c.at[row.slot], row.due)
	c.busy[row.slot] = true
}
