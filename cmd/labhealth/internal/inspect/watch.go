package inspect

import (
	"context"
	"iter"
	"sync"
	"time"
)

// watchInterval is how often changes of other processes are looked for while somebody watches.
const watchInterval = 500 * time.Millisecond

// watchers pass on which deliveries change.
type watchers struct {
	mu    sync.Mutex
	all   map[*watcher]bool
	woken chan struct{}
}

// watcher has the deliveries that changed since it was last asked.
type watcher struct {
	changed []int64
	has     map[int64]bool
	wake    chan struct{}
}

func (w *watchers) channel() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.woken == nil {
		w.woken = make(chan struct{}, 1)
	}
	return w.woken
}

// wake makes run look for changes.
func (w *watchers) wake() {
	select {
	case w.channel() <- struct{}{}:
	default:
	}
}

// run reads changes after rev, of this process and of others, until ctx is done.
func (w *watchers) run(ctx context.Context, rev int64, changedSince func(context.Context, int64) ([]int64, int64, error)) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	woken := w.channel()
	for {
		select {
		case <-ctx.Done():
			return
		case <-woken:
		case <-tick.C:
		}
		for {
			changed, last, err := changedSince(ctx, rev)
			if err != nil || last == rev {
				break
			}
			rev = last
			w.publish(changed)
		}
	}
}

func (w *watchers) publish(changed []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.all {
		for _, number := range changed {
			if !one.has[number] {
				one.has[number] = true
				one.changed = append(one.changed, number)
			}
		}
		select {
		case one.wake <- struct{}{}:
		default:
		}
	}
}

// changedSince returns the deliveries that changed after a change, and the last change.
func (i *Inspector) changedSince(ctx context.Context, rev int64) (changed []int64, last int64, err error) {
	defer func() { i.warn(ctx, "read what was stored", err) }()
	rows, err := i.db.QueryContext(ctx, `SELECT number, rev FROM deliveries WHERE rev > ? ORDER BY rev LIMIT 1000`, rev)
	if err != nil {
		return nil, rev, err
	}
	defer rows.Close()
	last = rev
	for rows.Next() {
		var number int64
		if err := rows.Scan(&number, &last); err != nil {
			return nil, rev, err
		}
		changed = append(changed, number)
	}
	return changed, last, rows.Err()
}

// Watch returns the numbers of deliveries that are stored or change from now on, also by other
// processes. A delivery that changes several times before the loop asks for it is returned once.
// The sequence ends when ctx is done. It can be used once.
func (i *Inspector) Watch(ctx context.Context) iter.Seq[int64] {
	one := &watcher{has: map[int64]bool{}, wake: make(chan struct{}, 1)}
	w := &i.watchers
	w.mu.Lock()
	if w.all == nil {
		w.all = map[*watcher]bool{}
	}
	w.all[one] = true
	w.mu.Unlock()
	remove := context.AfterFunc(ctx, func() { w.remove(one) })
	return func(yield func(int64) bool) {
		defer remove()
		defer w.remove(one)
		for {
			select {
			case <-ctx.Done():
				return
			case <-one.wake:
			}
			for {
				w.mu.Lock()
				changed := one.changed
				one.changed, one.has = nil, map[int64]bool{}
				w.mu.Unlock()
				if len(changed) == 0 {
					break
				}
				for _, number := range changed {
					if ctx.Err() != nil || !yield(number) {
						return
					}
				}
			}
		}
	}
}

func (w *watchers) remove(one *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, one)
}
