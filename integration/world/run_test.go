package world

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go/integration/internal/cputime"
)

// failedSeeds have failed before, and are always run. Add a seed when a schedule fails, in the
// change that fixes the cause.
var failedSeeds = []uint64{}

// defaultSchedules is the number of schedules without an environment variable.
const defaultSchedules = 1500

// TestWorld runs schedules: see the package documentation.
func TestWorld(t *testing.T) {
	if seed, err := strconv.ParseUint(os.Getenv("LABHEALTH_WORLD_SEED"), 10, 64); err == nil {
		w := runSeed(t, seed)
		t.Logf("seed %d, history %016x\n%s", seed, w.history.hash(), w.history)
		if w.failed() {
			t.Errorf("%d violations", len(w.problems))
		}
		return
	}
	s := shards{First: 1, Count: defaultSchedules}
	if n, err := strconv.ParseUint(os.Getenv("LABHEALTH_WORLD_SCHEDULES"), 10, 64); err == nil {
		s.First, s.Count = rand.Uint64N(1<<40), n
	}
	if d, err := time.ParseDuration(os.Getenv("LABHEALTH_WORLD_TIME")); err == nil {
		s.First, s.Count, s.For = rand.Uint64N(1<<40), 1<<40, d
	}
	if testing.Short() {
		s.Count = min(s.Count, 200)
	}
	s.Listed = failedSeeds
	r := s.run(t)
	t.Logf("from seed %d: %v", s.First, r)
	for seed, problems := range r.Failed {
		t.Errorf("seed %d: %s (LABHEALTH_WORLD_SEED=%d go test -C integration -v -run TestWorld ./world)", seed, strings.Join(problems, "; "), seed)
	}
}

// runSeed runs one schedule.
func runSeed(t *testing.T, seed uint64) (w *world) {
	database, err := template()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(*testing.T) {
		w = newWorld(seed)
		w.run(database)
	})
	return w
}

// shards are schedules that are spread over processes, one for each processor. Each runs with one
// thread, so that the order of its goroutines varies as little as possible.
type shards struct {
	First, Count uint64        // seeds
	For          time.Duration // end after this time; 0 for no limit
	Listed       []uint64      // additional seeds
	Repeat       int           // runs of each seed; 0 means 1
	UntilFailure bool

	executable string // with a planted defect; empty for this one
}

// part is the part of one process.
type part struct {
	shards
	Index, Of uint64
}

// results sums up schedules.
type results struct {
	Schedules uint64
	Processor time.Duration
	Events    map[string]int            // by kind
	Failed    map[uint64][]string       // problems by seed
	Failures  map[uint64]int            // runs that failed, by seed
	Histories map[uint64]map[uint64]int // runs by seed and hash
}

func newResults() *results {
	return &results{Events: map[string]int{}, Failed: map[uint64][]string{}, Failures: map[uint64]int{}, Histories: map[uint64]map[uint64]int{}}
}

func (r *results) String() string {
	var counts []string
	for _, kind := range slices.Sorted(maps.Keys(r.Events)) {
		counts = append(counts, fmt.Sprint(kind, " ", r.Events[kind]))
	}
	return fmt.Sprintf("%d schedules, %v of a processor each; %s; %d failed", r.Schedules,
		(r.Processor / time.Duration(max(r.Schedules, 1))).Round(time.Microsecond), strings.Join(counts, ", "), len(r.Failed))
}

// environment variables of a part.
const partVariable, resultVariable = "LABHEALTH_WORLD_PART", "LABHEALTH_WORLD_RESULT"

// run runs the schedules in processes.
func (s shards) run(t *testing.T) *results {
	t.Helper()
	total, dir := newResults(), t.TempDir()
	n := runtime.NumCPU()
	type process struct {
		cmd    *exec.Cmd
		output strings.Builder
	}
	all := make([]*process, n)
	ctx, timeout := t.Context(), time.Duration(0)
	if deadline, ok := t.Deadline(); ok { // a schedule that hangs ends its process, and is named
		timeout = max(time.Until(deadline)-15*time.Second, time.Second)
		limited, cancel := context.WithTimeout(ctx, timeout+5*time.Second) // if it does not yield
		defer cancel()
		ctx = limited
	}
	for i := range all {
		encoded, err := json.Marshal(part{s, uint64(i), uint64(n)})
		if err != nil {
			t.Fatal(err)
		}
		p := &process{cmd: exec.CommandContext(ctx, cmp.Or(s.executable, os.Args[0]), "-test.run=^TestPart$", "-test.timeout="+timeout.String())}
		p.cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=400", "GODEBUG=asyncpreemptoff=1", partVariable+"="+string(encoded), resultVariable+"="+resultFile(dir, i))
		p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all[i] = p
	}
	for i, p := range all {
		if err := p.cmd.Wait(); err != nil {
			total.addCrash(t, resultFile(dir, i), fmt.Sprintf("%v\n%s", err, p.output.String()))
			continue
		}
		encoded, err := os.ReadFile(resultFile(dir, i))
		r := newResults()
		if err == nil {
			err = json.Unmarshal(encoded, r)
		}
		if err != nil {
			t.Fatal(err)
		}
		total.add(r)
	}
	return total
}

func resultFile(dir string, part int) string { return filepath.Join(dir, strconv.Itoa(part)+".json") }

// seedFile has the seed of the schedule that a part runs.
func seedFile(resultFile string) string { return resultFile + ".seed" }

// addCrash adds the schedule with which a process has ended, such as a panic in the library.
func (r *results) addCrash(t *testing.T, resultFile, problem string) {
	content, err := os.ReadFile(seedFile(resultFile))
	if err != nil {
		t.Fatalf("before the first schedule: %s", problem)
	}
	seed, err := strconv.ParseUint(strings.TrimSpace(string(content)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	r.Schedules++
	r.Failed[seed] = []string{problem}
	r.Failures[seed]++
}

func (r *results) add(other *results) {
	r.Schedules += other.Schedules
	r.Processor += other.Processor
	for kind, n := range other.Events {
		r.Events[kind] += n
	}
	maps.Copy(r.Failed, other.Failed)
	maps.Copy(r.Failures, other.Failures)
	maps.Copy(r.Histories, other.Histories)
}

// TestPart runs the part of one process. TestWorld starts it.
func TestPart(t *testing.T) {
	var p part
	if os.Getenv(partVariable) == "" {
		t.Skip("TestWorld starts it")
	}
	if err := json.Unmarshal([]byte(os.Getenv(partVariable)), &p); err != nil {
		t.Fatal(err)
	}
	if _, err := template(); err != nil {
		t.Fatal(err)
	}
	r, start, before := newResults(), time.Now(), cputime.Now()
	for i, seed := range p.Listed {
		if uint64(i)%p.Of == p.Index {
			p.runSeed(t, seed, r)
		}
	}
	for seed := p.First + p.Index; seed < p.First+p.Count; seed += p.Of {
		if p.For > 0 && time.Since(start) > p.For || p.UntilFailure && (len(r.Failed) > 0 || p.otherHasFailed()) {
			break
		}
		p.runSeed(t, seed, r)
	}
	r.Processor = cputime.Now() - before
	encoded, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(os.Getenv(resultVariable), encoded, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// otherHasFailed reports whether another part has ended.
func (p *part) otherHasFailed() bool {
	found, err := filepath.Glob(filepath.Join(filepath.Dir(os.Getenv(resultVariable)), "*.json"))
	return err == nil && len(found) > 0
}

func (p *part) runSeed(t *testing.T, seed uint64, r *results) {
	if err := os.WriteFile(seedFile(os.Getenv(resultVariable)), strconv.AppendUint(nil, seed, 10), 0o600); err != nil {
		t.Fatal(err)
	}
	for range max(p.Repeat, 1) {
		w := runSeed(t, seed)
		r.Schedules++
		w.history.count(r.Events)
		if w.failed() {
			r.Failed[seed] = w.problems
			r.Failures[seed]++
		}
		if p.Repeat > 1 {
			if r.Histories[seed] == nil {
				r.Histories[seed] = map[uint64]int{}
			}
			r.Histories[seed][w.history.hash()]++
		}
	}
}

// TestReplay reports how often the history of a seed is the same:
//
//	LABHEALTH_WORLD_REPLAY=200 go test -C integration -v -run Replay ./world
func TestReplay(t *testing.T) {
	seeds, err := strconv.ParseUint(os.Getenv("LABHEALTH_WORLD_REPLAY"), 10, 64)
	if err != nil {
		t.Skip("set LABHEALTH_WORLD_REPLAY to the number of seeds")
	}
	const runs = 20
	r := shards{First: 1, Count: seeds, Repeat: runs}.run(t)
	always, same := 0, 0
	for _, hashes := range r.Histories {
		most := slices.Max(slices.Collect(maps.Values(hashes)))
		same += most
		if most == runs {
			always++
		}
	}
	t.Logf("%d seeds, %d runs each: %.2f %% of the runs have the most frequent history of their seed, %d seeds always the same",
		seeds, runs, 100*float64(same)/float64(runs*seeds), always)
}
