package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// unsafeSettings are the settings of a session with which PostgreSQL commits what is not on its
// disk.
const unsafeSettings = `SELECT coalesce(string_agg(name || '=' || setting, ' ' ORDER BY name), '') FROM pg_settings
	WHERE name IN ('synchronous_commit', 'fsync', 'full_page_writes') AND setting = 'off'`

// checkCommits logs if a power failure of the database can lose what was acknowledged. A worker
// removes deliveries from the broker after the commit.
func (p *pipeline) checkCommits(ctx context.Context) error {
	var found string
	if err := p.db.QueryRowContext(ctx, unsafeSettings).Scan(&found); err != nil {
		return err
	}
	if found != "" {
		p.log.Warn("a power failure of the database loses deliveries that were acknowledged, and with fsync=off or full_page_writes=off "+
			"may damage it: these settings must be on for the user of -postgres", "settings", found)
	}
	return nil
}

// reportExpired logs from when on samples are kept, and later which were deleted.
func reportExpired(store *sqlstore.Store, log *slog.Logger) {
	if store.Keep == 0 {
		return
	}
	year, month, _ := time.Now().UTC().Add(-store.Keep).Date()
	log.Info("keeping samples", "since", dateOf(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)))
	store.Expired = func(from, to time.Time, rows int64) {
		if from.IsZero() {
			log.Info("samples were deleted", "before", dateOf(to), "rows", rows)
		} else {
			log.Info("samples were deleted: a partition was dropped", "from", dateOf(from), "before", dateOf(to))
		}
	}
}

func dateOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }
