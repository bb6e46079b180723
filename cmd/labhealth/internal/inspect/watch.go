package inspect

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"
)

// watchInterval is how often changes of other processes are looked for.
const watchInterval = 500 * time.Millisecond

// watchers pass on which deliveries change.
type watchers struct {
	mu    sync.Mutex
	all   map[*watcher]bool
	woken chan struct{}
}

// watcher has the deliveries that changed since it was last asked.
type watcher struct {
	changed map[int64]bool
	woken   chan struct{}
}

// wake sends to a channel that has room for one.
func wake(woken chan struct{}) {
	select {
	case woken <- struct{}{}:
	default:
	}
}

// watch passes on changes, of this process and of others, until ctx is done.
func (i *Inspector) watch(ctx context.Context) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for rev := i.opened; ; {
		select {
		case <-ctx.Done():
			return
		case <-i.watchers.woken:
		case <-tick.C:
		}
		for {
			changed, last, err := i.changedSince(ctx, rev)
			i.warn(ctx, "read what was stored", err)
			if len(changed) == 0 {
				break
			}
			rev = last
			i.watchers.publish(changed)
		}
	}
}

func (w *watchers) publish(changed []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.all {
		for _, number := range changed {
			one.changed[number] = true
		}
		wake(one.woken)
	}
}

// changedSince returns the deliveries that changed after a change, and the last change.
func (i *Inspector) changedSince(ctx context.Context, rev int64) (changed []int64, last int64, err error) {
	last = rev
	changed, err = query(ctx, i.db, func(row scanner, number *int64) error { return row.Scan(number, &last) },
		`SELECT number, rev FROM deliveries WHERE rev > ? ORDER BY rev LIMIT 1000`, rev)
	if err != nil {
		return nil, rev, err
	}
	return changed, last, nil
}

// Watch returns the numbers of deliveries that are stored or change from now on, also by other
// processes. A delivery that changes several times before the loop asks for it is returned once.
// The sequence ends when ctx is done. It must be used, once.
func (i *Inspector) Watch(ctx context.Context) iter.Seq[int64] {
	one := &watcher{changed: map[int64]bool{}, woken: make(chan struct{}, 1)}
	w := &i.watchers
	w.mu.Lock()
	w.all[one] = true
	w.mu.Unlock()
	return func(yield func(int64) bool) {
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.all, one)
		}()
		for {
			select {
			case <-ctx.Done():
				return
			case <-one.woken:
			}
			w.mu.Lock()
			changed := slices.Sorted(maps.Keys(one.changed))
			clear(one.changed)
			w.mu.Unlock()
			for _, number := range changed {
				if ctx.Err() != nil || !yield(number) {
					return
				}
			}
		}
	}
}
