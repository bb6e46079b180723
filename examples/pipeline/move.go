package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

// once runs a role that ends by itself: repartition, copy, move or requeue. It can be interrupted
// at any point and run again.
func once(ctx context.Context, s *settings, log *slog.Logger) error {
	if s.role == "repartition" {
		b, err := connect(s, newMetrics(), log)
		if err != nil {
			return err
		}
		defer b.close()
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return b.repartition(ctx, s)
	}
	db, from, err := open(s)
	if err != nil {
		return err
	}
	defer db.Close()
	if s.role == "requeue" {
		return requeue(ctx, s, from, log)
	}
	target := *s
	target.postgres = s.to
	targetDB, to, err := open(&target)
	if err != nil {
		return errors.New("-to: not a database URL, such as postgres://user@host/database") // err may quote a password
	}
	defer targetDB.Close()
	for _, store := range []*sqlstore.Store{from, to} {
		reportExpired(store, log)
		if err := store.Migrate(ctx); err != nil {
			return err
		}
	}
	return transfer(ctx, s, from, to, log)
}

// errStillWritten is returned when users have data in the source again after they were moved.
var errStillWritten = errors.New("workers still apply events of -partition to -postgres: stop them, and run it again")

// transfer copies or moves the users of the partitions.
func transfer(ctx context.Context, s *settings, from, to *sqlstore.Store, log *slog.Logger) error {
	next, users := time.Now(), 0
	selected := func(id uuid.UUID) bool {
		if !s.owns(id) {
			return false
		}
		if users++; time.Since(next) > 0 {
			next = time.Now().Add(10 * time.Second)
			log.Info("in progress", "role", s.role, "users", users)
		}
		return true
	}
	if s.role == "copy" {
		n, err := sqlstore.Copy(ctx, from, to, selected)
		report(log, "copied", n, err)
		return err
	}
	// The second time finds what workers have written meanwhile, and usually nothing.
	for range 2 {
		n, err := sqlstore.Move(ctx, from, to, selected)
		report(log, "moved", n, err)
		if err != nil || n.Users == 0 {
			return err
		}
	}
	n, err := sqlstore.Move(ctx, from, to, selected)
	report(log, "moved", n, err)
	if err == nil && n.Users > 0 {
		return errStillWritten
	}
	return err
}

func report(log *slog.Logger, what string, n sqlstore.Copied, err error) {
	log.Info(what, "users", n.Users, "samples", n.Samples, "summaries", n.Summaries,
		"unchanged", n.Unchanged, "deliveries", n.Deliveries, "complete", err == nil)
}

// requeue moves the dead letters with -reason back to the inbox, and lets the reactions that were
// given up for it wait again. Those that fail again in the meantime stay, because their numbers are
// read first.
func requeue(ctx context.Context, s *settings, store *sqlstore.Store, log *slog.Logger) error {
	var numbers []int64
	for letter, err := range store.DeadLetters(ctx) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(letter.Reason, s.reason) {
			numbers = append(numbers, letter.Number)
		}
	}
	var reactions []int64
	for failed, err := range store.FailedReactions(ctx) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(failed.Reason, s.reason) {
			reactions = append(reactions, failed.Number)
		}
	}
	deliveries, err := each(ctx, numbers, store.Requeue)
	var repeated int
	if err == nil {
		repeated, err = each(ctx, reactions, store.RequeueReaction)
	}
	log.Info("requeued", "deliveries", deliveries, "reactions", repeated, "complete", err == nil)
	return err
}

// each calls requeue with numbers until it returns an error, and returns how many it has found.
func each(ctx context.Context, numbers []int64, requeue func(context.Context, int64) (bool, error)) (n int, err error) {
	for _, number := range numbers {
		found, err := requeue(ctx, number)
		if err != nil {
			return n, err
		}
		if found {
			n++
		}
	}
	return n, nil
}
