// Statements that are written once, and what differs between the databases.

package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A statement is written once, for both dialects, with these marks:
//
//	$1::bigint                              a parameter with its type
//	{k: slot smallint, at bigint}           rows of parameters as a table k, numbered by n from 1
//	IN {any: uuid}                          a list of parameters
//	{in: slot}                              the slot is one of a list, for a database that needs to know
//	{find s: columns | table | condition}   for each row so far, the one row of a table
//	{each s: columns | table | condition}   for each row so far, the rows of a table
//	{left s: columns | table | condition}   the same, also if there is none
//	{some s: table | condition}             only if there is a row of a table; it ends the FROM
//	{slot}, {here}                          the slot of a row k, and a condition of an INSERT from k
//	{lock}, {skip}                          lock the rows that are read, and skip locked ones
//	{row}                                   the place of a row, which identifies it while it is locked
//	{pg: text}, {lite: text}                text for one dialect
//
// PostgreSQL gets lists as arrays, so that a statement costs one round trip for any number of rows,
// and reads with LATERAL: a lookup in the index for each row, whatever the statistics are. More
// text after a third bar belongs to that lookup, such as ORDER BY and LIMIT. A single row is no
// array: with arrays that are shorter than it assumes, PostgreSQL plans a statement each time.
// SQLite gets lists as VALUES, in chunks, and has neither locks nor LATERAL.
//
// With [Store.OneSlot], all rows of a list have the same slot, which is a parameter of its own: a
// database that distributes the tables then sends the statement to the place of that slot. An
// INSERT of several rows joins the row of the slot for that.
var (
	markPattern      = regexp.MustCompile(`\{([^{}]*)\}`)
	numberPattern    = regexp.MustCompile(`\?\d+`)
	parameterPattern = regexp.MustCompile(`\$(\d+)::(?:smallint|integer|bigint|boolean|double precision|text|bytea|uuid)\b`)
)

// sqliteChunk is the number of rows that one statement of SQLite has.
const sqliteChunk = 32

// rowList is the rows of a mark {k: …}.
type rowList struct {
	n   int
	row func(i int) []any // the columns of row i in their order
}

// inList is the list of a mark {any: …}.
type inList []any

func anyOf[T any](all []T) inList {
	list := make(inList, len(all))
	for i, v := range all {
		list[i] = v
	}
	return list
}

// argument returns the list as one argument.
func (l inList) argument(lite bool) string {
	if lite {
		document, _ := json.Marshal(l) // numbers and strings always have a JSON
		return string(document)
	}
	var a array
	for _, v := range l {
		a.add(v)
	}
	return a.String()
}

// form is how a store writes statements.
type form struct {
	lite    bool
	oneSlot bool
}

// statement is a text for the database. With SQLite, order has the numbers of its parameters in the
// order in which they occur, and 0 in place of the rows: it looks up numbered ones slowly.
type statement struct {
	text  string
	order []int
}

// built caches statements.
var built sync.Map // of builtKey to statement

type builtKey struct {
	form
	text string
	rows int // of the list; PostgreSQL has the same text for any number above 1
}

// build returns the statement for a number of rows. The parameters are those of the text, then the
// lists, the slot of the rows if there is only one, and the rows.
func (f form) build(text string, rows int) statement {
	if !f.lite {
		rows = min(rows, 2)
	}
	key := builtKey{f, text, rows}
	if known, ok := built.Load(key); ok {
		return known.(statement)
	}
	b := &builder{form: f, rows: rows, inserts: strings.Contains(text, "{here}"), numbered: strings.Contains(text, "k.n")}
	for _, p := range parameterPattern.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(p[1])
		b.last = max(b.last, n)
	}
	b.lists = b.last
	b.slot = b.last + strings.Count(text, "{any: ") + strings.Count(text, "{in: ") + 1
	b.last = b.slot
	if !f.oneSlot || !strings.Contains(text, "{slot}") && !b.inserts {
		b.last--
	}
	for strings.Contains(text, "{") {
		text = markPattern.ReplaceAllStringFunc(text, func(mark string) string { return b.replace(mark[1 : len(mark)-1]) })
	}
	st := statement{text: strings.ReplaceAll(text, " IN ANY(", " = ANY(")}
	if f.lite {
		text = parameterPattern.ReplaceAllString(text, "?$1")
		text = strings.ReplaceAll(text, "LIMIT ?", "LIMIT 0 + ?") // a plain limit is planned again for its value
		st.text = numberPattern.ReplaceAllStringFunc(text, func(p string) string {
			n, _ := strconv.Atoi(p[1:])
			if n > 0 || len(st.order) == 0 || st.order[len(st.order)-1] > 0 {
				st.order = append(st.order, n)
			}
			return "?"
		})
	}
	built.Store(key, st)
	return st
}

// arguments returns the arguments of a statement from those of its text and its rows.
func (s *statement) arguments(common, rows []any) []any {
	if s.order == nil {
		return append(common, rows...)
	}
	args := make([]any, 0, len(common)+len(rows))
	for _, n := range s.order {
		if n == 0 {
			args = append(args, rows...)
		} else {
			args = append(args, common[n-1])
		}
	}
	return args
}

// builder replaces the marks of one statement.
type builder struct {
	form
	rows     int
	inserts  bool
	numbered bool
	lists    int // number of the last list
	slot     int // number of the slot or, for SQLite, of the number of the row before
	last     int // number of the last parameter before the rows
}

func (b *builder) choose(pg, lite string) string {
	if b.lite {
		return lite
	}
	return pg
}

func (b *builder) replace(mark string) string {
	name, rest, _ := strings.Cut(mark, ": ")
	kind, alias, _ := strings.Cut(name, " ")
	switch kind {
	case "slot", "here":
		return b.ofSlot(kind)
	case "lock":
		return b.choose(" FOR UPDATE", "")
	case "skip":
		return b.choose(" FOR UPDATE SKIP LOCKED", "")
	case "row":
		return b.choose("ctid", "rowid")
	case "pg":
		return b.choose(rest, "")
	case "lite":
		return b.choose("", rest)
	case "any":
		b.lists++
		return b.choose(fmt.Sprintf("ANY($%d::%s[])", b.lists, rest), fmt.Sprintf("(SELECT value FROM json_each(?%d))", b.lists))
	case "in":
		b.lists++
		return b.choose(fmt.Sprintf("%s = ANY($%d::smallint[])", rest, b.lists), fmt.Sprintf("?%d IS NOT NULL", b.lists))
	case "find", "each", "left", "some":
		return b.lookup(kind, alias, strings.Split(rest, " | "))
	}
	if b.lite {
		return b.values(kind, strings.Split(rest, ", "))
	}
	return b.unnest(kind, strings.Split(rest, ", "))
}

// ofSlot returns the slot of a row, or the condition for an INSERT of rows.
func (b *builder) ofSlot(kind string) string {
	switch {
	case !b.oneSlot && kind == "slot":
		return "k.slot"
	case !b.oneSlot:
		return "true"
	case kind == "here":
		return fmt.Sprintf("l.slot = $%d::smallint", b.slot)
	case b.inserts:
		return "l.slot"
	}
	return fmt.Sprintf("$%d::smallint", b.slot)
}

// some returns the condition of a mark some.
func (b *builder) some(alias string, parts []string) string {
	text := "(SELECT 1 FROM " + parts[0] + " AS " + alias + " WHERE " + parts[1]
	if b.lite || b.oneSlot {
		return "WHERE EXISTS " + text + ")"
	}
	return "CROSS JOIN LATERAL " + text + " LIMIT 1) AS " + alias
}

// lookup returns the join of a mark find, each, left or some.
func (b *builder) lookup(kind, alias string, parts []string) string {
	if kind == "some" {
		return b.some(alias, parts)
	}
	join, on, end := "CROSS JOIN", "", " OFFSET 0"
	if kind == "left" {
		join, on = "LEFT JOIN", " ON true"
	}
	if b.lite {
		return join + " " + parts[1] + " AS " + alias + " ON " + parts[2]
	}
	if len(parts) > 3 {
		end = " " + parts[3]
	}
	if kind == "find" {
		end = " LIMIT 1" + strings.TrimSuffix(end, " OFFSET 0")
	}
	return join + " LATERAL (SELECT " + parts[0] + " FROM " + parts[1] + " AS " + alias + " WHERE " + parts[2] + end + ") AS " + alias + on
}

func (b *builder) unnest(alias string, columns []string) string {
	var single, arrays, names []string
	for i, column := range columns {
		name, kind, _ := strings.Cut(column, " ")
		parameter := fmt.Sprintf("$%d::%s", b.last+1+i, kind)
		single, arrays, names = append(single, parameter+" AS "+name), append(arrays, parameter+"[]"), append(names, name)
	}
	text := "unnest(" + strings.Join(arrays, ", ") + ") WITH ORDINALITY AS " + alias + " (" + strings.Join(append(names, "n"), ", ") + ")"
	if b.rows == 1 {
		text = "(SELECT " + strings.Join(single, ", ") + ", 1 AS n) AS " + alias
	}
	if b.oneSlot && b.inserts {
		text = "labhealth_slots AS l CROSS JOIN " + text
	}
	return text
}

func (b *builder) values(alias string, columns []string) string {
	var names []string
	rows := make([]string, b.rows)
	for i, column := range columns {
		name, _, _ := strings.Cut(column, " ")
		names = append(names, fmt.Sprintf("column%d AS %s", i+1, name))
	}
	if b.numbered {
		names = append(names, fmt.Sprintf("column%d + ?%d AS n", len(columns)+1, b.slot))
	}
	for i := range rows {
		rows[i] = "(" + strings.TrimSuffix(strings.Repeat("?0, ", len(columns)), ", ")
		if b.numbered {
			rows[i] += ", " + strconv.Itoa(i+1)
		}
		rows[i] += ")"
	}
	return "(SELECT " + strings.Join(names, ", ") + " FROM (VALUES " + strings.Join(rows, ", ") + ")) AS " + alias
}

// queryer is a database or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// preparedStatements are those that SQLite would otherwise parse each time, which is a third of the
// cost of writing samples. Drivers of PostgreSQL prepare statements themselves.
type preparedStatements struct {
	mu     sync.Mutex
	known  map[string]*sql.Stmt // nil for one that is not prepared yet
	wanted []string
}

// maxPrepared limits the memory, which is about 10 kB for a statement and connection.
const maxPrepared = 256

// of returns the statement with a text for q, or nil.
func (p *preparedStatements) of(ctx context.Context, q queryer, text string) *sql.Stmt {
	p.mu.Lock()
	stmt, isKnown := p.known[text]
	if p.known != nil && !isKnown && len(p.known) < maxPrepared {
		p.known[text], p.wanted = nil, append(p.wanted, text)
	}
	p.mu.Unlock()
	if tx, ok := q.(*sql.Tx); ok && stmt != nil {
		return tx.StmtContext(ctx, stmt)
	}
	return stmt
}

// prepare prepares the statements that were run. The caller has no transaction: the pool may have
// one connection only.
func (p *preparedStatements) prepare(ctx context.Context, db *sql.DB) {
	p.mu.Lock()
	wanted := p.wanted
	p.wanted = nil
	p.mu.Unlock()
	for _, text := range wanted {
		stmt, err := db.PrepareContext(ctx, text) //nolint:sqlclosecheck // db closes it
		p.mu.Lock()
		if p.known[text] = stmt; err != nil {
			delete(p.known, text)
		}
		p.mu.Unlock()
	}
}

func (p *preparedStatements) exec(ctx context.Context, q queryer, text string, args ...any) (sql.Result, error) {
	if stmt := p.of(ctx, q, text); stmt != nil { //nolint:sqlclosecheck // it is kept
		return stmt.ExecContext(ctx, args...)
	}
	return q.ExecContext(ctx, text, args...)
}

func (p *preparedStatements) query(ctx context.Context, q queryer, text string, args ...any) (*sql.Rows, error) {
	if stmt := p.of(ctx, q, text); stmt != nil { //nolint:sqlclosecheck // it is kept
		return stmt.QueryContext(ctx, args...)
	}
	return q.QueryContext(ctx, text, args...)
}

// exec runs a statement, and returns the number of rows that it changed. Its parameters are those
// of the text, and lists.
func (s *Store) exec(ctx context.Context, q queryer, text string, params ...any) (changed int64, err error) {
	err = s.calls(text, params, func(text string, args []any) error {
		result, err := s.writer.prepared.exec(ctx, q, text, args...)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		changed += n
		return err
	})
	return changed, err
}

// query calls scan with every row of a statement.
func (s *Store) query(ctx context.Context, q queryer, scan func(*sql.Rows) error, text string, params ...any) error {
	return s.calls(text, params, func(text string, args []any) error {
		rows, err := s.writer.prepared.query(ctx, q, text, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// into is the destinations of the columns of one row.
type into []any

// queryRow scans the row of a statement. It reports whether there is one.
func (s *Store) queryRow(ctx context.Context, q queryer, dest into, text string, params ...any) (found bool, err error) {
	err = s.query(ctx, q, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(dest...)
	}, text, params...)
	return found, err
}

// calls calls f once or, for a list of many rows and SQLite, with each chunk of them.
func (s *Store) calls(text string, params []any, f func(text string, args []any) error) error {
	form := form{s.name == SQLite, s.OneSlot && s.name == PostgreSQL}
	common, list := form.parameters(params)
	for first, size := 0, list.n; first < list.n; first += size {
		if form.lite {
			size = min(sqliteChunk, list.n-first)
		}
		if err := f(form.call(text, common, list, first, size)); err != nil {
			return err
		}
	}
	return nil
}

// parameters returns those of the text and the lists, and the rows.
func (f form) parameters(params []any) (common []any, list rowList) {
	list = rowList{n: 1, row: func(int) []any { return nil }}
	var lists []any
	for _, p := range params {
		switch p := p.(type) {
		case rowList:
			list = p
		case inList:
			lists = append(lists, p.argument(f.lite))
		default:
			common = append(common, p)
		}
	}
	return append(common, lists...), list
}

// call returns a statement with some of the rows.
func (f form) call(text string, common []any, list rowList, first, size int) (built string, args []any) {
	var rows []any
	var arrays []array
	common = slices.Clone(common)
	if f.lite && strings.Contains(text, "k.n") {
		common = append(common, first) // the number of the row before
	}
	for i := first; i < first+size; i++ {
		row := list.row(i)
		if f.oneSlot && i == first && len(row) > 0 {
			rows = append(rows, row[0]) // the slot, which comes first
		}
		if f.lite || size == 1 {
			rows = append(rows, row...)
			continue
		}
		if arrays == nil {
			arrays = make([]array, len(row))
		}
		for n, v := range row {
			arrays[n].add(v)
		}
	}
	for i := range arrays {
		rows = append(rows, arrays[i].String())
	}
	st := f.build(text, size)
	return st.text, st.arguments(common, rows)
}

// array is the literal of a PostgreSQL array, the only form that every driver accepts. NULLs at the
// end are left out: unnest adds them to an array that is shorter than the others.
type array struct {
	text  []byte
	nulls int // not written yet
}

// add adds a value, which is one that package sql accepts.
func (a *array) add(v any) {
	if v == nil {
		a.nulls++
		return
	}
	if valuer, ok := v.(driver.Valuer); ok {
		value, _ := valuer.Value() // those of this package have no errors
		a.add(value)
		return
	}
	for ; a.nulls > 0; a.nulls-- {
		a.text = append(a.text, "NULL,"...)
	}
	switch v := v.(type) {
	case int:
		a.text = strconv.AppendInt(a.text, int64(v), 10)
	case int64:
		a.text = strconv.AppendInt(a.text, v, 10)
	case bool:
		a.text = strconv.AppendBool(a.text, v)
	case float64:
		a.text = strconv.AppendFloat(a.text, v, 'g', -1, 64)
	case []byte:
		a.text = append(hex.AppendEncode(append(a.text, `"\\x`...), v), '"')
	case string:
		a.text = append(a.text, '"')
		for i := 0; i < len(v); i++ {
			if v[i] == '"' || v[i] == '\\' {
				a.text = append(a.text, '\\')
			}
			a.text = append(a.text, v[i])
		}
		a.text = append(a.text, '"')
	}
	a.text = append(a.text, ',')
}

// String returns the whole array.
func (a *array) String() string {
	return "{" + string(bytes.TrimSuffix(a.text, []byte(","))) + "}"
}
