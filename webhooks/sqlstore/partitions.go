package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labhealth/labhealth-go/internal/jitter"
)

// The partitions of labhealth_samples in PostgreSQL. A partition is a range of times. Its length is
// decided when it is made, so that it can be another one in a later version.
const (
	partitionsPast  = 12     // months before the current one that have partitions before they have rows
	partitionsAhead = 3      // months after the current one
	manyRows        = 10_000 // of a month in the default partition, for which it gets its own

	// lockTimeout limits how long others wait behind a transaction that waits for its locks.
	lockTimeout  = `SELECT set_config('lock_timeout', '100ms', true), set_config('statement_timeout', '0', true)`
	lockAttempts = 20
)

// span is a range of times in nanoseconds since 1970: from is the first one, and to is after the
// last one.
type span struct{ from, to int64 }

// partition is a partition of labhealth_samples.
type partition struct {
	name string // qualified and quoted
	span
}

// partitions describes labhealth_samples.
type partitions struct {
	schema    string // quoted
	table     string // qualified and quoted
	canChange bool   // tables can be attached and dropped
	rest      string // name of the default partition; empty if there is none
	ranges    []partition
}

// partitions reads the catalog and waits for no lock. Without a table, pg_get_expr does not lock
// the partition.
func (d *postgres) partitions(ctx context.Context, q queryer) (p partitions, err error) {
	err = query(ctx, q, func(rows *sql.Rows) error {
		return rows.Scan(&p.schema, &p.table, &p.canChange)
	}, `SELECT quote_ident(n.nspname), format('%I.%I', n.nspname, c.relname), c.relkind = 'p' AND pg_has_role(c.relowner, 'USAGE')
			AND has_schema_privilege(n.oid, 'CREATE') AND current_setting('transaction_read_only') = 'off'
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = 'labhealth_samples'::regclass`)
	if err != nil {
		return p, err
	}
	err = query(ctx, q, func(rows *sql.Rows) error {
		var name, bounds string
		if err := rows.Scan(&name, &bounds); err != nil {
			return err
		}
		switch bounds {
		case "": // it is being detached
			return nil
		case "DEFAULT":
			p.rest = name
			return nil
		}
		of, err := parseBounds(bounds)
		p.ranges = append(p.ranges, partition{name, of})
		return err
	}, `SELECT format('%I.%I', n.nspname, c.relname), coalesce(pg_get_expr(c.relpartbound, 0), '')
		FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE i.inhparent = 'labhealth_samples'::regclass`)
	slices.SortFunc(p.ranges, func(a, b partition) int { return cmp.Compare(a.from, b.from) })
	return p, err
}

var errBounds = errors.New("sqlstore: a partition of labhealth_samples has bounds that this package does not know")

// parseBounds reads what pg_get_expr returns: FOR VALUES FROM ('1') TO (MAXVALUE).
func parseBounds(bounds string) (s span, err error) {
	from, to, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(bounds, "FOR VALUES FROM ("), ")"), ") TO (")
	if !ok {
		return s, errBounds
	}
	for _, b := range []struct {
		text string
		to   *int64
	}{{from, &s.from}, {to, &s.to}} {
		switch b.text {
		case "MINVALUE":
			*b.to = math.MinInt64
		case "MAXVALUE":
			*b.to = math.MaxInt64
		default:
			if *b.to, err = strconv.ParseInt(strings.Trim(b.text, "'"), 10, 64); err != nil {
				return s, errBounds
			}
		}
	}
	return s, nil
}

// gaps returns the parts of s that no partition has.
func (p *partitions) gaps(s span) (gaps []span) {
	for _, r := range p.ranges {
		if r.to <= s.from || r.from >= s.to {
			continue
		}
		if r.from > s.from {
			gaps = append(gaps, span{s.from, r.from})
		}
		s.from = r.to
	}
	if s.from < s.to {
		gaps = append(gaps, s)
	}
	return gaps
}

// missing returns the parts of months that no partition has, in ascending order, without the months
// before a time.
func (p *partitions) missing(months []time.Time, before int64) (gaps []span) {
	slices.SortFunc(months, time.Time.Compare)
	for _, month := range slices.Compact(months) {
		s := span{month.UnixNano(), month.AddDate(0, 1, 0).UnixNano()}
		if s.from >= before && s.from < s.to { // of the first and the last month, int64 has a part only
			gaps = append(gaps, p.gaps(s)...)
		}
	}
	return gaps
}

// until returns the time until which partitions follow each other from now on.
func (p *partitions) until(now int64) int64 {
	for _, r := range p.ranges {
		if r.from <= now && now < r.to {
			now = r.to
		}
	}
	return now
}

func (d *postgres) partitionedUntil(ctx context.Context, now time.Time) (time.Time, error) {
	p, err := d.partitions(ctx, d.db)
	return time.Unix(0, p.until(now.UnixNano())).UTC(), err
}

// partition makes the partitions that are missing, and drops those that end at before or earlier.
// It calls dropped after each.
func (d *postgres) partition(ctx context.Context, now time.Time, past int, before int64, dropped func(span)) error {
	p, err := d.partitions(ctx, d.db)
	if err != nil || !p.canChange {
		return err
	}
	months, err := d.fullMonths(ctx, p.rest)
	if err != nil {
		return err
	}
	atOnce := 1 // so that locks are not held long
	if len(months) == 0 {
		atOnce = past + 1 + partitionsAhead
	}
	for n := -past; n <= partitionsAhead; n++ {
		months = append(months, monthOf(now).AddDate(0, n, 0))
	}
	for gaps := range slices.Chunk(p.missing(months, before), atOnce) {
		if err := d.exclusively(ctx, func(tx *sql.Tx, p *partitions) error { return p.attach(ctx, tx, gaps) }); err != nil {
			return ignore(errMaintained, err)
		}
	}
	for _, r := range p.ranges {
		if r.to > before {
			continue
		}
		exists := false // otherwise another process has dropped it
		err := d.exclusively(ctx, func(tx *sql.Tx, p *partitions) error {
			if exists = slices.Contains(p.ranges, r); !exists {
				return nil
			}
			return execAll(ctx, tx, []string{lockSamples(p.table), `DROP TABLE ` + r.name})
		})
		if err != nil {
			return ignore(errMaintained, err)
		}
		if exists {
			dropped(r.span)
		}
	}
	return nil
}

// ignore returns err, or nil if it is ignored.
func ignore(ignored, err error) error {
	if errors.Is(err, ignored) {
		return nil
	}
	return err
}

// fullMonths returns the months of which the default partition has many rows.
func (d *postgres) fullMonths(ctx context.Context, rest string) (months []time.Time, err error) {
	if rest == "" {
		return nil, nil
	}
	return months, query(ctx, d.db, func(rows *sql.Rows) error {
		var second int64
		err := rows.Scan(&second)
		months = append(months, monthOf(time.Unix(second, 0)))
		return err
	}, `SELECT min(at / 1000000000) FROM `+rest+`
		GROUP BY date_trunc('month', to_timestamp(floor(at / 1e9::double precision)) AT TIME ZONE 'UTC') HAVING count(*) >= $1`, manyRows)
}

// errMaintained ends a transaction because another one changes the partitions.
var errMaintained = errors.New("sqlstore: another process changes the partitions")

// exclusively runs f in a transaction that no other of its kind runs beside, and again if its locks
// are not available.
func (d *postgres) exclusively(ctx context.Context, f func(*sql.Tx, *partitions) error) error {
	for attempt := 1; ; attempt++ {
		err := d.transact(ctx, func(tx *sql.Tx) error {
			alone := false
			err := tx.QueryRowContext(ctx, `SELECT pg_try_advisory_xact_lock(hashtext('labhealth_samples'), hashtext(to_regclass('labhealth_samples')::oid::text))`).Scan(&alone)
			if err == nil && !alone {
				err = errMaintained
			}
			if err != nil {
				return err
			}
			p, err := d.partitions(ctx, tx)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, lockTimeout); err != nil {
				return err
			}
			return f(tx, &p)
		})
		const lockNotAvailable = "55P03"
		if err == nil || attempt == lockAttempts || sqlState(err) != lockNotAvailable && !isConflict(err) {
			return err
		}
		if err := sleep(ctx, 50*time.Millisecond+jitter.Within(200*time.Millisecond)); err != nil {
			return err
		}
	}
}

// attach makes partitions, and moves the rows that the default partition has of them.
func (p *partitions) attach(ctx context.Context, tx *sql.Tx, spans []span) error {
	spans = slices.DeleteFunc(slices.Clone(spans), func(s span) bool { // another process has made it
		return !slices.Equal(p.gaps(s), []span{s})
	})
	var made []string
	for _, s := range spans {
		name, err := p.newName(ctx, tx, s)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `CREATE TABLE `+name+` (LIKE `+p.table+` INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)`)
		if err != nil {
			return err
		}
		made = append(made, name)
	}
	// Other transactions lock labhealth_samples before they lock a partition of it. ATTACH does not
	// need this lock, but a statement that is being planned would look for the moved rows in the
	// default partition.
	statements := []string{lockSamples(p.table)}
	if p.rest != "" {
		statements = append(statements, `LOCK TABLE `+p.rest+` IN ACCESS EXCLUSIVE MODE`)
	}
	for i, s := range spans {
		if p.rest != "" {
			const columns = `series_id, at, version, value, shape_id, seconds, text`
			statements = append(statements, fmt.Sprintf(`WITH moved AS (DELETE FROM %s WHERE at >= %d AND at < %d RETURNING *)
				INSERT INTO %s (`+columns+`) SELECT `+columns+` FROM moved ORDER BY series_id, at`, p.rest, s.from, s.to, made[i]))
		}
		// It creates the index, which is faster when the rows are there.
		statements = append(statements, fmt.Sprintf(`ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)`, p.table, made[i], s.from, s.to))
	}
	return execAll(ctx, tx, statements)
}

// newName returns a name for a partition that no other table has, such as one that was detached.
func (p *partitions) newName(ctx context.Context, tx *sql.Tx, s span) (string, error) {
	plain := p.schema + `.labhealth_samples_` + time.Unix(0, s.from).UTC().Format("2006_01")
	for n, name := 2, plain; ; n++ {
		exists := false
		err := tx.QueryRowContext(ctx, `SELECT to_regclass($1) IS NOT NULL`, name).Scan(&exists)
		if err != nil || !exists {
			return name, err
		}
		name = plain + "_" + strconv.Itoa(n)
	}
}

func lockSamples(table string) string {
	return `LOCK TABLE ONLY ` + table + ` IN ACCESS EXCLUSIVE MODE`
}

func execAll(ctx context.Context, tx *sql.Tx, statements []string) error {
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (*postgres) oldSamples() (find, remove string) {
	return `SELECT min(series_id) FROM labhealth_samples WHERE series_id >= $1 AND at < $2`,
		// Locking and skipping rows keeps it from waiting for a transaction that waits for it.
		`DELETE FROM labhealth_samples AS s USING (SELECT series_id, at FROM labhealth_samples
			WHERE series_id >= $1 AND series_id < $2 AND at < $3 ORDER BY series_id, at LIMIT $4 FOR UPDATE SKIP LOCKED) AS old
			WHERE s.series_id = old.series_id AND s.at = old.at AND s.at < $3`
}
