package sqlstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

var allKinds = []sqlstore.ReactionKind{sqlstore.ReactTransition, sqlstore.ReactResults, sqlstore.ReactSummary, sqlstore.ReactSamples}

func TestReactSmoke(t *testing.T) {
	onAll(t, func(t *testing.T, d database) {
		store := d.store(t)
		store.Reactions = allKinds
		for i := range 50 {
			apply(t, store, parse(t, []webhooks.RawDelivery{heartrates("", i, "60", "61")}))
		}
		var mu sync.Mutex
		seen := map[string]int{}
		ctx, cancel := context.WithCancel(t.Context())
		r := &sqlstore.Reactor{Store: store, Delay: time.Millisecond, Poll: 10 * time.Millisecond, React: func(ctx context.Context, r sqlstore.Reaction) error {
			mu.Lock()
			defer mu.Unlock()
			seen[r.ID.String()]++
			if seen[r.ID.String()] == 1 {
				return errors.New("canary")
			}
			if len(seen) == 50 {
				for _, n := range seen {
					if n < 2 {
						return nil
					}
				}
				time.AfterFunc(100*time.Millisecond, cancel)
			}
			return nil
		}}
		start := time.Now()
		err := r.Run(ctx)
		t.Log(err, len(seen), time.Since(start), count(t, d.open(t), "labhealth_reactions"))
	})
}
