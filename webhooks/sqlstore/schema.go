package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

const schemaTable = `CREATE TABLE IF NOT EXISTS labhealth_schema (version integer NOT NULL)`

// Schema returns the statements that [Store.Migrate] runs on an empty database, as a script for the
// command-line client of the database. Use it to review the schema, or to migrate with other tools:
// run the whole script in one transaction. Migrate then changes nothing and, with PostgreSQL, does
// not need the privilege to create tables. Schema returns "" for an invalid dialect.
func Schema(dialect Dialect) string {
	known, ok := dialects[dialect]
	if !ok {
		return ""
	}
	script := schemaTable + ";\n"
	for i, step := range known.migrations {
		script += step + fmt.Sprintf("\nINSERT INTO labhealth_schema (version) VALUES (%d);\n", i+1)
	}
	return script
}

// Migrate creates the tables, or updates those of an older version of this package, in one
// transaction. It changes nothing if they are current, and any number of processes may call it at
// the same time. With PostgreSQL, the tables are in the first schema of the search_path. Their
// names start with labhealth_. Migrate then tries to make partitions of samples from now on, as
// [Store.Maintain] does, and does not fail if it cannot.
//
// It returns an error if the tables are of a newer version of this package.
func (s *Store) Migrate(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	err := retry(ctx, "migrate", func() error {
		return s.dialect.migrate(ctx, func(tx *sql.Tx) error { return migrate(ctx, tx, dialects[s.name].migrations) })
	})
	if err == nil {
		// Without partitions the default partition takes the samples, and Maintain tries again.
		_ = s.dialect.partition(ctx, s.now(), 0, s.oldestSample(), s.dropped)
	}
	return err
}

func migrate(ctx context.Context, tx *sql.Tx, steps []string) error {
	version := 0
	if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM labhealth_schema`).Scan(&version); err != nil {
		return err
	}
	if version > len(steps) {
		return fmt.Errorf("%w: %d, and this version of the package supports %d", errNewer, version, len(steps))
	}
	for ; version < len(steps); version++ {
		for statement := range strings.SplitAfterSeq(steps[version], ";\n") {
			if strings.TrimSpace(statement) == "" {
				continue
			}
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO labhealth_schema (version) VALUES (%d)`, version+1)); err != nil {
			return err
		}
	}
	return nil
}
