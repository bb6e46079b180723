// Where workers and reactors read on in their queues.

package sqlstore

import (
	"math"
	"sync"
	"time"
)

// Rows that were taken and deleted stay in the index until no transaction of the database can see
// them. A cursor starts the next scan of each slot behind them, and scans only those slots that are
// known to have rows.
//
// A row behind the cursor can appear later: receipts commit in another order than that of their
// times, and a worker that is killed, or rolls back in another process, returns its rows. Scans of
// the whole queue find them, which take at most a tenth of the time.
type cursor struct {
	mu       sync.Mutex
	at       positions     // rows before these were taken
	busy     [Slots]bool   // there may be rows from there on
	first    int           // the slot that is next, so that none waits for the others
	whole    int           // the slot that is next in scans of the whole queue
	scanning bool          // such a scan is running
	ended    time.Time     // when the last one was over
	cost     time.Duration // how long it took
}

// positions are times in a queue, one for each slot.
type positions [Slots]int64

// start is the position before all rows.
const start = math.MinInt64

// beginning is the start of every slot.
var beginning = func() (all positions) {
	for slot := range all {
		all[slot] = start
	}
	return all
}()

func newCursor() *cursor { return &cursor{at: beginning} }

// scan is a scan of the rows of slots from a position on.
type scan struct {
	slots []int64 // in the order in which they are scanned
	from  positions
	began time.Time
	whole bool
}

// place is the place of a row in a queue.
type place struct{ slot, due int64 }

// take calls read with scans until it finds rows or there are none: of one slot or, for anySlot, of
// those behind the cursor. read returns the rows, and whether there are enough and may be more.
func (c *cursor) take(slot int64, read func(*scan) (found []place, enough bool, err error)) error {
	if slot != anySlot {
		_, _, err := read(&scan{slots: []int64{slot}, from: beginning})
		return err
	}
	for _, idle := range []bool{false, true} {
		s := c.next(time.Now(), idle)
		if len(s.slots) == 0 {
			continue
		}
		found, enough, err := read(&s)
		c.end(s, time.Now(), found, enough)
		if err != nil || len(found) > 0 || s.whole {
			return err
		}
	}
	return nil
}

// next returns the scan to run: of the busy slots or, if idle says that they had nothing, of all.
// The caller calls end afterwards.
func (c *cursor) next(now time.Time, idle bool) scan {
	const least = 100 * time.Millisecond // between scans of the whole queue, if there are other rows
	c.mu.Lock()
	defer c.mu.Unlock()
	s, first := scan{from: c.at, began: now}, c.first
	wait := 9 * c.cost
	if !idle {
		wait = max(wait, least)
	}
	if !c.scanning && now.Sub(c.ended) >= wait {
		c.scanning, s.whole, s.from, first = true, true, beginning, c.whole
	}
	for i := range Slots {
		if slot := (first + i) % Slots; idle || s.whole || c.busy[slot] {
			s.slots, c.busy[slot] = append(s.slots, int64(slot)), false // unless a row arrives until end
		}
	}
	return s
}

// end records the result of a scan: its rows, and whether it stopped because there were enough.
func (c *cursor) end(s scan, now time.Time, rows []place, enough bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.whole {
		c.scanning, c.ended, c.cost = false, now, now.Sub(s.began)
	}
	if len(rows) == 0 {
		return
	}
	last := map[int64]int64{}
	for _, row := range rows {
		last[row.slot] = row.due
	}
	stopped, next := false, int(rows[len(rows)-1].slot+1)%Slots
	for _, slot := range s.slots {
		due, found := last[slot]
		switch {
		case stopped:
			c.busy[slot] = true
		case found:
			stopped = enough && int(slot+1)%Slots == next
			c.pass(s, slot, due, stopped)
		}
	}
	if c.first = next; s.whole && stopped {
		c.whole = next
	}
}

// pass moves the position behind the last row of a slot that was found, after which there may be
// more.
func (c *cursor) pass(s scan, slot, due int64, more bool) {
	c.busy[slot] = c.busy[slot] || more
	switch {
	case c.at[slot] < s.from[slot]: // rows were returned in the meantime
		c.busy[slot] = true
	case c.at[slot] < due, s.whole && more:
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

// positions returns where the next scans start.
func (c *cursor) positions() positions {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}
