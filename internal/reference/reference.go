// Package reference has the public API reference as tables, for tests and for invented data.
//
// The tables are operations.tsv, fields.tsv, enums.tsv and events.tsv. They hold the facts of the
// public API reference of this service family: version 0.4.687 of the team API and version 0.1.0
// of the organisation API. Authentication headers are left out, and so is what this module does not
// cover: raw provider payloads, the compendium, electronic health records, domains, members,
// connections in bulk and continuous queries. The interface specification takes precedence.
package reference

import (
	"embed"
	"regexp"
	"strconv"
	"strings"
)

//go:embed *.tsv
var files embed.FS

// Operation is a row of operations.tsv.
type Operation struct {
	API        string // "team" or "management"
	Method     string
	Path       string
	Deprecated bool
	Parameters []Parameter
	Body       string // type of the request body; empty for none
	Form       bool   // the body is multipart/form-data
	Response   string // type of the 200 response; "any" if undocumented, empty for none
}

// String returns the method and the path.
func (o Operation) String() string { return o.Method + " " + o.Path }

// Parameter is a parameter of an operation.
type Parameter struct {
	In, Name, Type string // In is "path", "query" or "header"
	Required       bool
	Rules          string // limits and default
}

// Field is a row of fields.tsv. The name "(itself)" belongs to a component that is not an object.
type Field struct {
	API, Component, Name, Type string
	Required, Nullable         bool
	Default                    string // JSON; empty for none
	Deprecated                 bool
	Limits                     string
}

// Event is an event type of events.tsv.
type Event struct {
	Type     string // such as daily.data.sleep.created
	Envelope string // component of the envelope
	Data     string // type of the data
}

func rows(file string, columns int) [][]string {
	content, err := files.ReadFile(file)
	if err != nil {
		panic(err)
	}
	var list [][]string
	for i, line := range strings.Split(strings.TrimSuffix(string(content), "\n"), "\n") {
		row := strings.Split(line, "\t")
		for len(row) < columns {
			row = append(row, "")
		}
		if i > 0 {
			list = append(list, row)
		}
	}
	return list
}

// parameterText matches a parameter in operations.tsv: its place, name, type and rules.
var parameterText = regexp.MustCompile(`(?m)^(\w+) (\S+) (.+?) (required|optional)(?: null)?(?: (.+))?$`)

// Operations returns all operations.
func Operations() []Operation {
	var list []Operation
	for _, r := range rows("operations.tsv", 7) {
		o := Operation{API: r[0], Method: r[1], Path: r[2], Deprecated: r[3] != "", Response: r[6]}
		o.Body, o.Form = strings.CutSuffix(r[5], " (multipart/form-data)")
		for _, p := range parameterText.FindAllStringSubmatch(strings.ReplaceAll(r[4], "; ", "\n"), -1) {
			o.Parameters = append(o.Parameters, Parameter{p[1], p[2], p[3], p[4] == "required", p[5]})
		}
		list = append(list, o)
	}
	return list
}

// corrected has the types of fields for which the table has none, or one of two components with the
// same name. The second of these has the name with a 2.
var corrected = map[string]string{
	"CreatorServiceStaff.type":       `const "service_staff"`,
	"ClientFacingInsurance.insured":  "PersonDetails2",
	"CreateInsuranceRequest.insured": "PersonDetails2",
}

// Fields returns all fields.
func Fields() []Field {
	var list []Field
	seen := map[[3]string]bool{}
	for _, r := range rows("fields.tsv", 9) {
		second := r[1] + "2"
		if row := [3]string(r[:3]); seen[row] || seen[[3]string{r[0], second}] {
			r[1] = second // a field that is there twice starts the second component
			seen[[3]string{r[0], second}] = true
		} else {
			seen[row] = true
		}
		if typ := corrected[r[1]+"."+r[2]]; typ != "" {
			r[3] = typ
		}
		list = append(list, Field{
			API: r[0], Component: r[1], Name: r[2], Type: r[3],
			Required: r[4] == "required", Nullable: r[5] == "null", Default: r[6], Deprecated: r[7] != "", Limits: r[8],
		})
	}
	return list
}

// Limit returns one of several limits, such as maxLength.
func Limit(limits, name string, missing float64) float64 {
	_, text, _ := strings.Cut(limits, name+"=")
	text, _, _ = strings.Cut(text, " ")
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	return missing
}

// Events returns all event types. A row whose type ends in * stands for created and updated.
func Events() []Event {
	var list []Event
	for _, r := range rows("events.tsv", 3) {
		base, both := strings.CutSuffix(r[0], "*")
		if !both {
			list = append(list, Event{r[0], r[1], r[2]})
			continue
		}
		for _, change := range []string{"created", "updated"} {
			list = append(list, Event{base + change, r[1], r[2]})
		}
	}
	return list
}
