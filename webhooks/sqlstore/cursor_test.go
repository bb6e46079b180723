package sqlstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// simulation is an inbox whose deleted rows are never removed, with one worker. Reading a row takes
// perRow, whether it is deleted or not.
type simulation struct {
	now    time.Time
	cursor *cursor
	rows   []simulated // by number
	whole  time.Duration
	worst  time.Duration // duration of the longest scan
}

type simulated struct {
	created, visible time.Time
	taken            time.Time // zero if it is waiting
}

const (
	perRow  = 10 * time.Microsecond
	perStep = 5 * time.Millisecond
	// 3000 rows from this one on are returned at once, by workers that are killed.
	returned = 20_000
)

// step takes a batch, and returns how many rows it found.
func (s *simulation) step(limit int) (found int) {
	for _, idle := range []bool{false, true} {
		scan := s.cursor.next(s.now, idle)
		if len(scan.slots) == 0 {
			continue
		}
		i, last := int(max(0, scan.from[0])), []place(nil)
		for ; i < len(s.rows) && found < limit && !s.rows[i].created.After(s.now); i++ {
			s.now = s.now.Add(perRow)
			if r := &s.rows[i]; r.taken.IsZero() && !r.visible.After(s.now) {
				r.taken = s.now
				found, last = found+1, []place{{0, int64(i)}}
			}
		}
		s.cursor.end(scan, s.now, last, found == limit)
		s.worst = max(s.worst, s.now.Sub(scan.began))
		if scan.whole {
			s.whole += s.now.Sub(scan.began)
		}
		if found > 0 || scan.whole {
			break
		}
	}
	s.now = s.now.Add(perStep)
	return found
}

// Rows that become visible late are taken within the time that Worker states, although the deleted
// rows are never removed and reading all of them takes seconds. Doing so takes a tenth of the time.
func TestCursor(t *testing.T) {
	for seed := range 4 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 1))
			start := time.Unix(1_000_000, 0)
			s := &simulation{now: start, cursor: newCursor()}
			interval := []time.Duration{0, 200 * time.Microsecond, 500 * time.Microsecond, 2 * time.Millisecond}[seed] // all at once, or over some time
			for i := range 100_000 {
				created := start.Add(time.Duration(i) * interval)
				late := time.Duration(random.Int64N(int64(5 * time.Millisecond)))
				switch random.IntN(10_000) {
				case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9:
					late = time.Duration(random.Int64N(int64(300 * time.Millisecond)))
				case 10, 11, 12:
					late = time.Duration(random.Int64N(int64(5 * time.Second)))
				case 13:
					late = time.Duration(random.Int64N(int64(100 * time.Second)))
				}
				if i >= returned && i < returned+3000 {
					late = 3 * time.Second
				}
				s.rows = append(s.rows, simulated{created: created, visible: created.Add(late)})
			}
			steps := 0
			for left := len(s.rows); left > 0; steps++ {
				left -= s.step(100)
				if steps > 1_000_000 {
					t.Fatalf("%d rows are never taken", left)
				}
			}
			if total := s.now.Sub(start); s.whole > total/9+s.worst {
				t.Errorf("scans of the whole inbox took %v of %v", s.whole, total)
			}
			for i, r := range s.rows {
				late, waited := r.visible.Sub(r.created), r.taken.Sub(r.visible)
				if interval == 0 && late < 5*time.Millisecond {
					continue // it waits for those before it
				}
				bound := max(100*time.Millisecond, 10*s.worst) + 2*(s.worst+perStep)
				if interval == 0 {
					bound = 20 * s.worst // all wait for each other
				}
				if i >= returned && i < returned+3000 {
					bound += s.worst + 30*(perStep+100*perRow)
				}
				if waited > bound {
					t.Errorf("row %d, visible after %v, waited %v, more than %v", i, late, waited, bound)
				}
			}
			t.Logf("%d steps in %v, scans of the whole inbox took %v", steps, s.now.Sub(start), s.whole)
		})
	}
}

// Rows that are given back are the next to be taken.
func TestCursorGivesBack(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	c := newCursor()
	end := func(s scan, last int64) { c.end(s, now.Add(time.Hour), []place{{7, last}}, true) }
	first := c.next(now, false)
	if !first.whole || first.from[7] != start || len(first.slots) != Slots {
		t.Fatalf("the first scan is %+v", first)
	}
	end(first, 100)
	second, third := c.next(now, false), c.next(now, true) // of another worker, to which no slot was left
	if second.from[7] != 100 || third.from[7] != 100 {
		t.Errorf("from %v and %v", second.from[7], third.from[7])
	}
	end(third, 300)
	end(second, 200)
	if s := c.next(now, false); s.from[7] != 300 {
		t.Errorf("from %v", s.from[7])
	}
	c.found(place{7, 101}) // of the second
	fourth := c.next(now, false)
	if fourth.from[7] != 101 {
		t.Errorf("from %v", fourth.from[7])
	}
	c.found(place{7, 50})
	end(fourth, 400) // does not pass those that were given back in the meantime
	if s := c.next(now, false); s.from[7] != 50 || len(s.slots) == 0 {
		t.Errorf("from %v, slots %v", s.from[7], s.slots)
	}
}

// A slot with many rows does not keep others waiting, and slots without rows are not scanned again.
// A row that arrives during a scan is found by the next one.
func TestCursorTurns(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	c := newCursor()
	first := c.next(now, false)
	c.end(first, now, []place{{3, 1}, {3, 2}}, true) // enough, of slot 3
	second := c.next(now, false)
	if second.slots[0] != 4 || second.slots[len(second.slots)-1] != 3 {
		t.Errorf("from slot %d to slot %d", second.slots[0], second.slots[len(second.slots)-1])
	}
	c.found(place{8, 1})
	c.end(second, now, []place{{5, 1}, {3, 3}}, false) // of all slots
	if third := c.next(now, false); !slices.Equal(third.slots, []int64{8}) {
		t.Errorf("slots %v", third.slots)
	}
	if fourth := c.next(now, false); len(fourth.slots) != 0 {
		t.Errorf("slots %v", fourth.slots)
	}
	if idle := c.next(now, true); len(idle.slots) != Slots {
		t.Errorf("%d slots", len(idle.slots))
	}
}

// Scans of the whole queue that stop early go on where they stopped.
func TestCursorWhole(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	c := newCursor()
	for _, want := range []int64{0, 4, 101, 4} {
		s := c.next(now, false)
		if !s.whole || s.slots[0] != want || s.from[want] != start {
			t.Errorf("whole %v, from slot %d, want %d", s.whole, s.slots[0], want)
		}
		last := int64(100)
		if want != 4 {
			last = 3
		}
		c.end(s, now.Add(time.Second), []place{{last, 1}}, true)
		for range 3 { // others
			s := c.next(now.Add(9*time.Second), false)
			c.end(s, now, []place{{200, 1}}, true)
		}
		now = now.Add(10 * time.Second)
	}
}

// Deliveries that failed, which are single, get a quarter of the time also if each batch of others
// takes much longer, and not more after there were no others.
func TestTurnsOfFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, before := range []time.Duration{0, time.Hour} {
			w := &Worker{Timeout: 5 * time.Second}
			for start := time.Now(); time.Since(start) < before; {
				began := time.Now()
				time.Sleep(10 * time.Millisecond)
				w.endTurn(began, true)
			}
			spent := map[bool]time.Duration{}
			for start := time.Now(); time.Since(start) < 100*time.Second; {
				began := time.Now()
				if w.isTurn(began) {
					time.Sleep(10 * time.Millisecond)
					w.endTurn(began, true)
					spent[true] += 10 * time.Millisecond
				} else {
					time.Sleep(time.Second)
					spent[false] += time.Second
				}
			}
			if s := spent[true]; s < 24*time.Second || s > 26*time.Second {
				t.Errorf("those that failed %v, others %v", s, spent[false])
			}
		}
	})
}
