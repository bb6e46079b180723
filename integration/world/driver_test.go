package world

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
)

// driverName is the driver of SQLite with a cache of statements, whose preparation takes most of
// the time otherwise.
const driverName = "world"

func init() { sql.Register(driverName, cachingDriver{&sqlite.Driver{}}) }

type cachingDriver struct{ driver.Driver }

func (d cachingDriver) Open(name string) (driver.Conn, error) {
	inner, err := d.Driver.Open(name)
	if err != nil {
		return nil, err
	}
	return &cachingConn{sqliteConn: inner.(sqliteConn), idle: map[string]*cachingStmt{}}, nil
}

type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.SessionResetter
	driver.Validator
}

type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// cachingConn has neither ExecContext nor QueryContext, so that package sql prepares statements.
type cachingConn struct {
	sqliteConn
	idle map[string]*cachingStmt // by query
}

type cachingStmt struct {
	sqliteStmt
	conn  *cachingConn
	query string
}

func (c *cachingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if s := c.idle[query]; s != nil {
		delete(c.idle, query)
		return s, ctx.Err()
	}
	s, err := c.sqliteConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &cachingStmt{s.(sqliteStmt), c, query}, nil
}

func (c *cachingConn) Close() error {
	var err error
	for _, s := range c.idle {
		err = errors.Join(err, s.sqliteStmt.Close())
	}
	return errors.Join(err, c.sqliteConn.Close())
}

// Close keeps the statement for its next use.
func (s *cachingStmt) Close() error {
	if s.conn.idle[s.query] != nil {
		return s.sqliteStmt.Close()
	}
	s.conn.idle[s.query] = s
	return nil
}
