package sqlstore

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// texts evaluates the statements in the source of the package. What is not constant is "…".
type texts struct {
	constants map[string]ast.Expr
	found     []string
}

// statementCalls are the functions that run a statement, by the place of its text.
var statementCalls = map[string]int{
	"exec": 2, "query": 3, "queryRow": 3, "change": 2, "scanRows": 3, "scanReactions": 2, "page": 2, "storedOrders": 2,
}

func readTexts(t *testing.T) *texts {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	all := &texts{constants: map[string]ast.Expr{}}
	for _, visit := range []func(ast.Node) bool{all.constant, all.call} {
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, visit)
		}
	}
	return all
}

func (a *texts) constant(n ast.Node) bool {
	if n, ok := n.(*ast.ValueSpec); ok {
		for i, name := range n.Names {
			if i < len(n.Values) {
				a.constants[name.Name] = n.Values[i]
			}
		}
	}
	return true
}

func (a *texts) call(n ast.Node) bool {
	if assign, ok := n.(*ast.AssignStmt); ok {
		for _, right := range assign.Rhs {
			a.add(a.text(right))
		}
	}
	c, ok := n.(*ast.CallExpr)
	if !ok {
		return true
	}
	if f, ok := c.Fun.(*ast.Ident); ok && f.Name == "del" { // of DeleteUser
		for _, arg := range c.Args {
			a.add("DELETE FROM " + a.text(arg))
		}
	}
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return true
	}
	if i, ok := statementCalls[f.Sel.Name]; ok && i < len(c.Args) {
		a.add(a.text(c.Args[i]))
	}
	return true
}

var statementStart = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE)\b`)

func (a *texts) add(text string) {
	if text != "DELETE FROM …" && statementStart.MatchString(text) && !slices.Contains(a.found, text) {
		a.found = append(a.found, text)
	}
}

func (a *texts) text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	case *ast.BinaryExpr:
		return a.text(e.X) + a.text(e.Y)
	case *ast.ParenExpr:
		return a.text(e.X)
	case *ast.Ident:
		if c, ok := a.constants[e.Name]; ok && e.Obj != nil && e.Obj.Kind == ast.Con || ok && e.Obj == nil {
			return a.text(c)
		}
	}
	return "…"
}

// allPlaces are parts of the statements that read all slots. They are not part of what receives and
// applies deliveries.
var allPlaces = []string{
	"FROM labhealth_schema",
	"o.slot IN {any: smallint} AND o.order_id = $1::uuid", // orders, timelines and results by the order alone
	"r.slot IN {any: smallint} AND r.order_id = $1::uuid",
	"o.slot IN {any: smallint} AND …",
	"r.slot IN {any: smallint} AND r.id = $1::uuid",      // the slot of a reaction to requeue
	"WHERE (s.slot, s.series, s.at) >",                   // exports, page by page
	"WHERE (m.slot, m.series, m.id) >",                   //
	"WHERE (d.slot, d.id) >",                             //
	"WHERE (u.slot, u.user_id) >",                        // the walk over all users
	"SELECT 1 FROM labhealth_dead_letters LIMIT",         // Backlog
	"FROM labhealth_slots AS k {some o: ",                // which slots have something to do
	"SELECT count(*) FROM (SELECT 1 FROM {k: slot small", // Backlog
	"SELECT min((SELECT q.… FROM … AS q WHERE …",         // Backlog
}

var (
	routed     = regexp.MustCompile(`\bslot = (\$1::smallint|\{slot\}|0)|\{in: slot\}|VALUES \((\$1::smallint|0),|SELECT \{slot\}`)
	untyped    = regexp.MustCompile(`\$\d+(?:[^\d:]|$)|\?`)
	changing   = regexp.MustCompile(`INSERT INTO|UPDATE labhealth|DELETE FROM`)
	features   = regexp.MustCompile(`(?i)advisory|lock table|xmin|ctid\b|txid|listen|set_config|plan_cache|enable_|nextval|currval|plpgsql`)
	joins      = regexp.MustCompile(`\bJOIN labhealth_`)
	simpleCase = regexp.MustCompile(`CASE \w+(\.\w+)? WHEN`)
)

// Every statement goes to the place of one slot, has typed parameters and one change, and needs no
// feature that engines lack which distribute tables by a column.
func TestStatementRules(t *testing.T) {
	all := readTexts(t).found
	if len(all) < 60 {
		t.Errorf("only %d statements were found", len(all))
	}
	for _, text := range all {
		if !routed.MatchString(text) && !slices.ContainsFunc(allPlaces, func(part string) bool { return strings.Contains(text, part) }) {
			t.Errorf("not of one slot: %s", text)
		}
		if untyped.MatchString(text) {
			t.Errorf("a parameter without a type: %s", text)
		}
		if len(changing.FindAllString(text, -1)) > 1 {
			t.Errorf("several changes: %s", text)
		}
		if strings.HasPrefix(text, "INSERT") && strings.Contains(text, "{k:") && strings.Contains(text, "(SELECT") {
			t.Errorf("a subquery in an INSERT of several rows: %s", text)
		}
		// A mark looks up each row. A join may come before the limit.
		if strings.HasPrefix(text, "SELECT") && joins.MatchString(text) && strings.Contains(text, "LIMIT") {
			t.Errorf("a join of a page: %s", text)
		}
		if features.MatchString(text) || simpleCase.MatchString(text) {
			t.Errorf("a feature that others lack: %s", text)
		}
		if strings.Contains(text, "…") {
			continue
		}
		for _, oneSlot := range []bool{false, true} {
			for _, lite := range []bool{false, true} {
				for rows := 1; rows <= 2; rows++ {
					if got := (form{lite, oneSlot && !lite}).build(text, rows).text; strings.ContainsAny(got, "{}") {
						t.Errorf("a mark is left: %s", got)
					}
				}
			}
		}
	}
}

// The slot leads every key and index of every table, and nothing is numbered by the database.
func TestSchemaRules(t *testing.T) {
	comments := regexp.MustCompile(`--[^\n]*`)
	tables := regexp.MustCompile(`(?s)CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(labhealth_\w+) \((.*?)\n\)`)
	keys := regexp.MustCompile(`(PRIMARY KEY|UNIQUE) \(([^)]*)\)|slot\s+smallint NOT NULL (PRIMARY KEY)`)
	indexes := regexp.MustCompile(`CREATE (UNIQUE )?INDEX (\w+) ON \w+ \(([^)]*)\)`)
	for _, d := range []Dialect{SQLite, PostgreSQL} {
		ddl := comments.ReplaceAllString(form{lite: d == SQLite}.build(tableOptions.Replace(strings.Join(migrations, "")), 0).text, "")
		found := tables.FindAllStringSubmatch(ddl, -1)
		if len(found) != 15 {
			t.Errorf("%d tables", len(found))
		}
		for _, table := range found {
			all := keys.FindAllStringSubmatch(table[2], -1)
			if len(all) == 0 {
				t.Errorf("%s has no key", table[1])
			}
			for _, key := range all {
				if key[3] == "" && !strings.HasPrefix(key[2], "slot, ") {
					t.Errorf("%s: %s", table[1], key[0])
				}
				if len(strings.Split(key[2], ",")) > 4 {
					t.Errorf("%s has a long key: %s", table[1], key[0])
				}
			}
			if n := len(regexp.MustCompile(`PRIMARY KEY|UNIQUE`).FindAllString(table[2], -1)); n != len(all) {
				t.Errorf("%s has %d keys of which %d were read", table[1], n, len(all))
			}
		}
		for _, index := range indexes.FindAllStringSubmatch(ddl, -1) {
			if index[1] != "" || !strings.HasPrefix(index[3], "slot, ") {
				t.Error(index[0])
			}
		}
		if word := regexp.MustCompile(`(?i)identity|serial|autoincrement|nextval|partition|\[\]|trigger|create function|md5`).FindString(ddl); word != "" {
			t.Errorf("the schema has %s", word)
		}
	}
}
