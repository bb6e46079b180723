package inspect

import (
	"strings"
	"unicode"

	"github.com/google/uuid"
)

// statement is what a filter is in SQL.
type statement struct {
	from       string
	conditions []string
	args       []any
	order      string
	onlyWords  bool // no condition needs the row of the delivery
}

func (s *statement) where() string {
	if len(s.conditions) == 0 {
		return ""
	}
	return ` WHERE ` + strings.Join(s.conditions, ` AND `)
}

func (s *statement) add(condition string, args ...any) {
	s.conditions = append(s.conditions, condition)
	s.args = append(s.args, args...)
}

// states are the conditions of Filter.Is and of terms with is:.
var states = map[string]string{
	"verified":   `d.verdict = 'verified'`,
	"unsigned":   `d.verdict = 'unsigned'`,
	"rejected":   `d.verdict = 'rejected'`,
	"duplicate":  `d.duplicate_of > 0`,
	"replay":     `d.replay_of > 0`,
	"changed":    `d.changed = 1`,
	"failed":     `d.failed = 1`,
	"waiting":    `d.state = 1`,
	"malformed":  `d.malformed > 0`,
	"unknown":    `d.unknown > 0`,
	"unreadable": `d.state = 3`,
}

// searchColumns are the columns of terms.
var searchColumns = map[string]string{"type": "type", "user": "user", "order": "orders", "id": "id"}

func (f *Filter) isEmpty() bool {
	return strings.TrimSpace(f.Query) == "" && *f == Filter{Query: f.Query}
}

// statement returns a filter in SQL. No part of it is text of the user: words are parameters.
func (f *Filter) statement() statement {
	s := statement{from: ` FROM deliveries AS d`, order: `d.number`}
	words, is := parseQuery(f.Query)
	if f.Is != "" {
		is = append(is, f.Is)
	}
	if words != "" {
		s.from, s.order = ` FROM delivery_search AS f CROSS JOIN deliveries AS d ON d.number = f.rowid`, `f.rowid`
		s.onlyWords = len(is) == 0 && f.UserID == uuid.Nil && f.OrderID == uuid.Nil && f.From.IsZero() && f.To.IsZero()
		s.add(`f.delivery_search MATCH ?`, words)
	}
	for _, name := range is {
		condition, ok := states[strings.ToLower(name)]
		if !ok {
			condition = `false`
		}
		s.add(condition)
	}
	if f.UserID != uuid.Nil {
		s.add(`d.user_id = ? AND d.user_id <> ''`, f.UserID.String())
	}
	if f.OrderID != uuid.Nil {
		s.add(`d.order_id = ? AND d.order_id <> ''`, f.OrderID.String())
	}
	// Limits of the numbers too, so that a search does not visit deliveries of other times.
	if !f.From.IsZero() {
		s.add(`d.received_at >= ?`, f.From.UnixNano())
		s.add(s.order+` >= (SELECT min(number) FROM deliveries WHERE received_at >= ?)`, f.From.UnixNano())
	}
	if !f.To.IsZero() {
		s.add(`d.received_at < ?`, f.To.UnixNano())
		s.add(s.order+` <= (SELECT max(number) FROM deliveries WHERE received_at < ?)`, f.To.UnixNano())
	}
	if f.Before > 0 {
		s.add(s.order+` < ?`, f.Before)
	}
	if f.After > 0 {
		s.add(s.order+` > ?`, f.After)
	}
	return s
}

const (
	maxTerms = 16
	maxTerm  = 100 // bytes
)

// parseQuery splits a query into an FTS5 expression of its words and the values of is:. Every word
// is quoted, so that none is an operator.
func parseQuery(query string) (words string, is []string) {
	var parts []string
	for term := range strings.FieldsSeq(query) {
		name, value, found := strings.Cut(term, ":")
		column, known := searchColumns[strings.ToLower(name)]
		switch {
		case len(parts)+len(is) == maxTerms:
			return strings.Join(parts, ` AND `), is
		case found && strings.EqualFold(name, "is"):
			is = append(is, value)
			continue
		case found && known:
			term = value
		default:
			column = ""
		}
		quoted := quoteTerm(term)
		if quoted == "" {
			continue
		}
		if column != "" {
			quoted = column + ` : ` + quoted
		}
		parts = append(parts, quoted)
	}
	return strings.Join(parts, ` AND `), is
}

// quoteTerm returns a phrase whose last word is a prefix, or "" without letters and digits.
func quoteTerm(term string) string {
	if len(term) > maxTerm {
		term = term[:maxTerm]
	}
	fields := strings.FieldsFunc(strings.ToValidUTF8(term, " "), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	if len(fields) == 0 {
		return ""
	}
	return `"` + strings.Join(fields, " ") + `"*`
}

// searchRow returns the arguments that add a delivery to delivery_search or, unchanged, delete it.
func (d *Delivery) searchRow() []any {
	return []any{d.Number, d.Type, strings.TrimSpace(idText(d.UserID) + " " + d.ClientUserID), idText(d.OrderID), d.ID, d.About}
}
