package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"testing"
)

// faults is between a store and its driver and decides the result of each operation: "begin",
// "begin read-only", "commit" or a statement.
type faults struct {
	mu sync.Mutex
	// before returns an error in place of an operation, after one in place of its success.
	before, after func(operation string) error
	// seen is called with every error of the database itself.
	seen func(error)
}

func (f *faults) set(before, after func(string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

// through runs an operation under faults. It closes a connection on which a process died.
func through[T any](c *faultyConn, operation string, do func() (T, error)) (v T, err error) {
	c.faults.mu.Lock()
	before, after, seen := c.faults.before, c.faults.after, c.faults.seen
	c.faults.mu.Unlock()
	if before != nil {
		if err := before(operation); err != nil {
			c.hit(err)
			return v, err
		}
	}
	if v, err = do(); err != nil {
		if seen != nil {
			seen(err)
		}
		return v, err
	}
	if after != nil {
		if err := after(operation); err != nil {
			if rows, ok := any(v).(driver.Rows); ok {
				rows.Close()
			}
			c.hit(err)
			var none T
			return none, err
		}
	}
	return v, nil
}

func (c *faultyConn) hit(err error) {
	if err == errCrash && !c.dead {
		c.dead = true
		c.fullConn.ExecContext(context.Background(), "ROLLBACK", nil) // SQLite does it when all statements are closed too
		c.fullConn.Close()
	}
}

func (c *faultyConn) IsValid() bool { return !c.dead }

func (c *faultyConn) Close() error {
	if c.dead {
		return nil
	}
	return c.fullConn.Close()
}

// stateError is an error like those of the PostgreSQL drivers. Its text must not be shown.
type stateError string

func (e stateError) Error() string    { return "canary: the row (Ada, 1815-12-10)" }
func (e stateError) SQLState() string { return string(e) }

var errCrash = errors.New("canary: the process died")

// openFaulty opens a database with faults in between.
func (d database) openFaulty(t testing.TB, f *faults) *sql.DB {
	t.Helper()
	plain := d.open(t)
	db := sql.OpenDB(&faultyConnector{plain.Driver(), d.source, f})
	t.Cleanup(func() { db.Close() })
	return db
}

type faultyConnector struct {
	driver driver.Driver
	source string
	faults *faults
}

func (c *faultyConnector) Driver() driver.Driver { return c.driver }

func (c *faultyConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.source)
	if err != nil {
		return nil, err
	}
	return &faultyConn{conn.(fullConn), c.faults, false}, nil
}

// fullConn is what the connections of both drivers are.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

type faultyConn struct {
	fullConn
	faults *faults
	dead   bool
}

func (c *faultyConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.fullConn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *faultyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	operation := "begin"
	if opts.ReadOnly {
		operation = "begin read-only"
	}
	return through(c, operation, func() (driver.Tx, error) {
		tx, err := c.fullConn.BeginTx(ctx, opts)
		return &faultyTx{tx, c}, err
	})
}

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return through(c, query, func() (driver.Result, error) { return c.fullConn.ExecContext(ctx, query, args) })
}

func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return through(c, query, func() (driver.Rows, error) { return c.fullConn.QueryContext(ctx, query, args) })
}

func (c *faultyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.fullConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &faultyStmt{stmt.(fullStmt), query, c}, nil
}

type fullStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type faultyStmt struct {
	fullStmt
	query string
	conn  *faultyConn
}

func (s *faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return through(s.conn, s.query, func() (driver.Result, error) { return s.fullStmt.ExecContext(ctx, args) })
}

func (s *faultyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return through(s.conn, s.query, func() (driver.Rows, error) { return s.fullStmt.QueryContext(ctx, args) })
}

func (s *faultyStmt) Close() error {
	if s.conn.dead { // closed with the connection
		return nil
	}
	return s.fullStmt.Close()
}

type faultyTx struct {
	driver.Tx
	conn *faultyConn
}

func (tx *faultyTx) Rollback() error {
	if tx.conn.dead {
		return driver.ErrBadConn
	}
	return tx.Tx.Rollback()
}

func (tx *faultyTx) Commit() error {
	_, err := through(tx.conn, "commit", func() (struct{}, error) { return struct{}{}, tx.Tx.Commit() })
	return err
}
