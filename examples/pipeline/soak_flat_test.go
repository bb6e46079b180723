//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// growth is how much larger a quantity may be at the end of a soak than in its middle.
type growth struct{ factor, more float64 }

// Quantities of a soak that must stay the same in the long run. Numbers of goroutines and file
// descriptors depend on how many calls are in flight, and memory on when it was last collected.
const (
	goroutines  = "goroutines"
	descriptors = "descriptors"
	residentMB  = "resident MB"
	heapMB      = "heap MB"
	goMB        = "MB of Go" // the rest of the resident memory is the race detector's, if it is used
	diskMB      = "disk MB"
)

var growths = map[string]growth{
	goroutines:  {1.1, 10},
	descriptors: {1.1, 10},
	residentMB:  {1.25, 16},
	heapMB:      {1.25, 16},
	goMB:        {1.25, 16},
	diskMB:      {1.5, 64},
}

func median(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// curve is a quantity of a process or a folder.
type curve struct{ of, quantity string }

// gauges are the values of quantities over the time of a soak.
type gauges struct {
	mu     sync.Mutex
	values map[curve][]float64
}

func (g *gauges) add(of, quantity string, value float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.values == nil {
		g.values = map[curve][]float64{}
	}
	key := curve{of, quantity}
	g.values[key] = append(g.values[key], value)
}

// addMetrics adds what a process reports of itself.
func (g *gauges) addMetrics(of string, metrics map[string]float64) {
	g.add(of, goroutines, metrics["go_goroutines"])
	g.add(of, descriptors, metrics["process_open_fds"])
	g.add(of, residentMB, metrics["process_resident_memory_bytes"]/(1<<20))
	g.add(of, heapMB, metrics["go_memstats_heap_alloc_bytes"]/(1<<20))
	g.add(of, goMB, (metrics["go_memstats_sys_bytes"]-metrics["go_memstats_heap_released_bytes"])/(1<<20))
}

// judged is the number of values from which on a quantity is judged. A soak takes 240 of them.
const judged = 100

// check compares the last fifth of each quantity with the middle fifth: what comes before it is
// the start of the processes. Medians leave out the moments in
// which something was killed.
func (g *gauges) check(t *testing.T, length time.Duration) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	names := slices.SortedFunc(maps.Keys(g.values), func(a, b curve) int {
		return slices.Compare([]string{a.of, a.quantity}, []string{b.of, b.quantity})
	})
	for _, name := range names {
		v := g.values[name]
		n := len(v)
		middle, last := median(v[n*2/5:max(n*3/5, n*2/5+1)]), median(v[n-max(n/5, 1):])
		limit := growths[name.quantity]
		most := middle*limit.factor + limit.more
		text := fmt.Sprintf("%s: %s: %.1f in the middle, %.1f at the end, at most %.1f; %d values", name.of, name.quantity, middle, last, slices.Max(v), n)
		if n >= judged && length >= 10*time.Minute && last > most {
			t.Errorf("%s: grows beyond %.1f", text, most)
			continue
		}
		t.Log(text)
	}
}

// log logs the last values, so that a long run can be watched.
func (g *gauges) log(t *testing.T) {
	g.mu.Lock()
	defer g.mu.Unlock()
	text := time.Now().UTC().Format(time.TimeOnly)
	for _, key := range slices.SortedFunc(maps.Keys(g.values), func(a, b curve) int {
		return slices.Compare([]string{a.of, a.quantity}, []string{b.of, b.quantity})
	}) {
		v := g.values[key]
		text += fmt.Sprintf("; %s %s %.0f", key.of, key.quantity, v[len(v)-1])
	}
	t.Log(text)
}

// sizeOf returns the size of all files of a folder in megabytes.
func sizeOf(dir string) float64 {
	var n int64
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // the file was removed meanwhile
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return float64(n) / (1 << 20)
}
