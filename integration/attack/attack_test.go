package attack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/integration/internal/cputime"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http reports stray bytes to wrapped transports
	goleak.VerifyTestMain(m)
}

// Without faults, every call sends one request with the method of its row, and returns its commit.
func TestCalls(t *testing.T) {
	for _, c := range calls {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(&schedule{Calls: []callPlan{{Method: c.name, Idempotency: c.hasKey()}}})
			results, broken := w.run()
			for _, b := range broken {
				t.Error(b)
			}
			for _, r := range results {
				record := &w.calls[0]
				if r.err != nil {
					t.Errorf("%s: %v", c.name, r.err)
				} else if record.requests != 1 || len(record.commits) != 1 || record.methods[c.method] != 1 {
					t.Errorf("%s: %d requests, %d commits, %v", c.name, record.requests, len(record.commits), record.methods)
				} else if strings.Contains(c.response, "$MARK") != strings.Contains(encoded(r.value), record.commits[0]+"!") {
					t.Errorf("%s: the value is not that of its commit: %s", c.name, encoded(r.value))
				}
			}
		})
	}
}

// tally is what happened in many worlds.
type tally struct {
	worlds, calls, requests, commits, conns int
	outcomes                                map[string]int
	faults                                  map[string]int
}

func newTally() *tally { return &tally{outcomes: map[string]int{}, faults: map[string]int{}} }

// add adds what happened in a world. Over TCP, net/http may still dial connections for calls that
// have ended.
func (n *tally) add(w *world, results []outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n.worlds++
	n.calls += len(results)
	n.conns += w.dialed
	for i := range results {
		n.requests += w.calls[i].requests
		n.commits += len(w.calls[i].commits)
		o := labhealth.OutcomeOf(results[i].err).String()
		if results[i].err == nil {
			o = "no error"
		}
		n.outcomes[o]++
	}
	for name, count := range w.faults {
		n.faults[name] += count
	}
}

func (n *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d worlds, %d calls, %d connections, %d requests, %d commits\noutcomes:", n.worlds, n.calls, n.conns, n.requests, n.commits)
	for _, m := range []map[string]int{n.outcomes, n.faults} {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(&b, " %s %d,", name, m[name])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// maxReal is how long a schedule may take in real time, on a busy machine.
const maxReal = 5 * time.Minute

// attempt runs a schedule in a bubble. A panic, such as that of synctest when goroutines are left
// behind, violates an invariant too.
func attempt(t *testing.T, s *schedule) (w *world, results []outcome, broken []string) {
	defer func() {
		if r := recover(); r != nil {
			broken = append(broken, fmt.Sprint("panic: ", r))
		}
	}()
	// A goroutine that waits for a lock stops the time of its bubble.
	hang := time.AfterFunc(maxReal, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("the schedule hangs: %v", s))
	})
	defer hang.Stop()
	synctest.Test(t, func(*testing.T) {
		w = newWorld(s)
		results, broken = w.run()
	})
	return w, results, broken
}

// replays is how often a schedule is run to see whether it violates an invariant. The order of
// goroutines is not part of a schedule.
const replays = 20

// maxShrink is how long shrinking may take.
const maxShrink = time.Minute

// report shrinks a schedule that violated an invariant, and fails the test.
func report(t *testing.T, s *schedule, broken []string) {
	if os.Getenv("LABHEALTH_ATTACK_FIRST") != "" { // see TestMutants
		t.Fatalf("seed %d violates an invariant:\n\t%s", s.Seed, strings.Join(broken, "\n\t"))
	}
	t.Logf("seed %d violates an invariant and is shrunk:\n\t%s", s.Seed, strings.Join(broken, "\n\t"))
	runs, end := 0, time.Now().Add(maxShrink)
	small := shrink(s, func(s *schedule) bool {
		for range replays {
			if runs++; time.Now().After(end) {
				return false
			}
			if _, _, broken := attempt(t, s); len(broken) > 0 {
				return true
			}
		}
		return false
	})
	_, _, again := attempt(t, small)
	text, err := json.Marshal(small)
	t.Errorf("seed %d violates an invariant:\n\t%s\nsmallest schedule, %d runs:\n%v\n\t%s\n"+
		"LABHEALTH_ATTACK_SEED=%d go test -C integration -run TestAttack ./attack\n"+
		"LABHEALTH_ATTACK_SCHEDULE='%s' go test -C integration -run TestAttack ./attack %v",
		s.Seed, strings.Join(broken, "\n\t"), runs, small, strings.Join(again, "\n\t"), s.Seed, text, err)
}

// number returns a number of the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// defaultCalls is how many calls a run without settings makes.
const defaultCalls = 10_000

// Random schedules never violate an invariant. The package documentation has the environment
// variables.
func TestAttack(t *testing.T) {
	if text := os.Getenv("LABHEALTH_ATTACK_SCHEDULE"); text != "" {
		s := new(schedule)
		if err := json.Unmarshal([]byte(text), s); err != nil {
			t.Fatal(err)
		}
		replay(t, s)
		return
	}
	if seed := number(t, "LABHEALTH_ATTACK_SEED", 0); seed > 0 {
		replay(t, newSchedule(seed))
		return
	}
	from := number(t, "LABHEALTH_ATTACK_FROM", 0)
	limit := int64(number(t, "LABHEALTH_ATTACK_CALLS", defaultCalls))
	end := time.Now().Add(10 * time.Minute)
	if text := os.Getenv("LABHEALTH_ATTACK_TIME"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		end, limit = time.Now().Add(d), 1<<62
	}
	if from == 0 && limit > defaultCalls {
		from = uint64(time.Now().UnixNano())
	}
	run(t, cmp.Or(from, 1), limit, end)
}

// run runs schedules on all processors until there were enough calls.
func run(t *testing.T, from uint64, limit int64, end time.Time) {
	var mu sync.Mutex
	total := newTally()
	var made, failures atomic.Int64
	var next atomic.Uint64
	next.Store(from)
	most := int64(5)
	if os.Getenv("LABHEALTH_ATTACK_FIRST") != "" {
		most = 1
	}
	start, before := time.Now(), cputime.Now()
	t.Run("workers", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				for made.Load() < limit && failures.Load() < most && time.Now().Before(end) {
					s := newSchedule(next.Add(1) - 1)
					w, results, broken := attempt(t, s)
					made.Add(int64(len(s.Calls)))
					if w != nil {
						mu.Lock()
						total.add(w, results)
						mu.Unlock()
					}
					if len(broken) > 0 {
						failures.Add(1)
						report(t, s, broken)
					}
				}
			})
		}
	})
	took := time.Since(start)
	t.Logf("from seed %d, %v:\n%v%.0f calls per minute, %.0f per minute of a processor", from, took.Round(time.Millisecond), total,
		float64(total.calls)/took.Minutes(), float64(total.calls)/(cputime.Now()-before).Minutes())
}

// replay runs a schedule, and prints what happens.
func replay(t *testing.T, s *schedule) {
	t.Log(s)
	for range replays {
		w, results, broken := attempt(t, s)
		for i, r := range results {
			t.Logf("call %d, %s: %v, %d attempts, %d requests, commits %v, %v: %v", i, s.Calls[i].Method, labhealth.OutcomeOf(r.err),
				r.response.Attempts, w.calls[i].requests, w.calls[i].commits, r.took, r.err)
		}
		if len(broken) > 0 {
			report(t, s, broken)
			return
		}
	}
}

// Most schedules have the same result when they are run again. What differs is the order in which
// the scheduler of Go runs goroutines, and the wait before another attempt, which is random.
func TestReplays(t *testing.T) {
	const seeds = 500
	same := 0
	for seed := range uint64(seeds) {
		var results [2]string
		for i := range results {
			w, outcomes, _ := attempt(t, newSchedule(seed))
			for j, o := range outcomes {
				results[i] += fmt.Sprintln(labhealth.OutcomeOf(o.err), o.err, o.response.Attempts, w.calls[j])
			}
		}
		if results[0] == results[1] {
			same++
		}
	}
	t.Logf("%d of %d seeds had the same result twice", same, seeds)
}
