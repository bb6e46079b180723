package inspect

import (
	"context"
	"database/sql"
	"time"
)

const retainInterval = 10 * time.Minute

// maintain deletes what is older than Keep, and does what was interrupted, until ctx is done.
func (i *Inspector) maintain(ctx context.Context) {
	feed, retain := time.NewTicker(feedDelay), time.NewTicker(retainInterval)
	defer feed.Stop()
	defer retain.Stop()
	i.feedWaiting(ctx)
	i.retain(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-feed.C:
			i.feedWaiting(ctx)
		case <-retain.C:
			i.retain(ctx)
		}
	}
}

func (i *Inspector) retain(ctx context.Context) error { return nil }

// limitRejected deletes the oldest rejected deliveries while there are too many.
func limitRejected(ctx context.Context, tx *sql.Tx) error { return nil }
