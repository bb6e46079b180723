// The schemas of requests, from the public API reference.

package labhealthtest

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/labhealth/labhealth-go/internal/reference"
)

// rules has what the public API reference says of the requests of an operation.
type rules struct {
	body       schema // nil if the operation has no JSON body
	optional   bool   // the body may be empty
	parameters []parameter
}

type parameter struct {
	in, name         string
	schema           schema // of a string, or of each element of a list
	required, isList bool
	missing          string // the default, "" for none
}

// ownBodies are the bodies of requests that the public API reference has differently or not at all.
var ownBodies = map[string]schema{
	"POST /v3/order":                   createOrderSchema,
	"POST /v3/order/import":            importOrderSchema,
	"PATCH /v2/team/source/priorities": arrayOf(prioritySchema),
}

// optionalBodies are the operations whose body may be empty.
var optionalBodies = []string{"POST /v3/order/{order_id}/test", "POST " + webhookPath + "/secret/rotate"}

// sameRules has the operations of the public API reference for those that it has under another
// name.
var sameRules = map[string]string{
	"GET /orders":       "GET /v3/orders",
	"GET /v3/lab_tests": "GET /v3/lab_test", // which has one parameter more
	"GET /v2/user/":     "GET /v2/user",
	"POST /v2/user/":    "POST /v2/user",
	"POST " + orgPath + "/team/{team_id}/create_access_token": "POST " + orgPath + "/team/{team_id}/create_api_access_token",
}

// rulesOf returns the rules of an operation.
func rulesOf(operation string) *rules {
	if other, ok := sameRules[operation]; ok {
		operation = other
	}
	return allRules()[operation]
}

// allRules returns the rules of all operations by their names.
var allRules = sync.OnceValue(func() map[string]*rules {
	all := map[string]*rules{}
	for _, o := range reference.Operations() {
		v := &rules{body: ownBodies[o.String()], optional: slices.Contains(optionalBodies, o.String())}
		for _, p := range o.Parameters {
			v.parameters = append(v.parameters, newParameter(o, p))
		}
		if v.body == nil && o.Body != "" && !o.Form {
			t := reference.ParseType(o.API, o.Body)
			v.body = schemaBuilder{patch: o.Method == "PATCH", top: t.Key()}.schema(t, reference.Field{})
		}
		all[o.String()] = v
	}
	return all
})

func newParameter(o reference.Operation, p reference.Parameter) parameter {
	t := reference.ParseType(o.API, p.Type)
	v := parameter{in: p.In, name: p.Name, required: p.Required, isList: t.Kind == reference.Array}
	if v.isList {
		t = *t.Elem
	} else if _, missing, ok := strings.Cut(p.Rules, "default="); ok { // the last of the rules
		v.missing = strings.Trim(missing, `"`)
	}
	v.schema = textSchema(t, p, o.Path)
	return v
}

// textSchema returns the schema of a parameter, which is text. The service validates IDs of users
// and dates that the reference calls strings, and fails for too many users.
func textSchema(t reference.Type, p reference.Parameter, path string) schema {
	switch {
	case path == "/v2/user" && t.Name == "integer":
		return integerText
	case t.Name == "integer" && strings.HasSuffix(p.Name, "limit"):
		return within(integerText, 1, math.MaxInt64)
	case t.Name == "integer":
		return limited(integerText, p.Rules)
	case t.Name == "number":
		return limited(numberText, p.Rules)
	case t.Name == "boolean":
		return booleanText
	case p.Name == "user_id":
		return uuidSchema
	case (t.Name == "string" || t.Name == "date-time") && strings.HasSuffix(p.Name, "_date"):
		return dateText
	}
	return schemaBuilder{}.schema(t, reference.Field{Limits: p.Rules})
}

// ownSchemas are the schemas of components and fields that are stricter than the public API
// reference: with rules that were observed, and rules that it gives in prose.
var ownSchemas = map[string]schema{
	"first_name":   nameSchema,
	"last_name":    nameSchema,
	"phone_number": phoneSchema,

	"AppointmentCancelRequest":     cancellationSchema,
	"PatientDetailsWithValidation": patientSchema,

	"management CreateWebhookBody.secret":    secretSchema,
	"management CreateWebhookBody.url":       urlSchema,
	"management PatchWebhookBody.url":        urlSchema,
	"management RotateWebhookSecretBody.key": secretSchema,
}

// strictComponents reject unknown fields.
var strictComponents = []string{
	"management CreateOrgTeamBody", "management UpdateOrgTeamBody", "management UpdateOrgTeamEnvironmentBody",
}

// schemaBuilder makes schemas from types of the public API reference.
type schemaBuilder struct {
	// patch omits missing fields, so that they are unchanged, of the component top and of those
	// without required fields. Otherwise these have their default or are null.
	patch bool
	top   string
}

// schema returns the schema of a type. The limits are those of a field.
func (b schemaBuilder) schema(t reference.Type, f reference.Field) schema {
	switch t.Kind {
	case reference.Component:
		return b.component(t)
	case reference.Array:
		return arrayWithLimit(arrayOf(b.schema(*t.Elem, reference.Field{})), f.Limits)
	case reference.Map:
		return mapOf(b.schema(*t.Elem, reference.Field{}))
	case reference.Union:
		return b.union(t)
	case reference.Enumeration, reference.Inline:
		return enum(t.Values...)
	case reference.Const:
		return constSchema(t.Values[0])
	default:
		return basicSchema(t.Name, f.Limits)
	}
}

func (b schemaBuilder) component(t reference.Type) schema {
	if own := ownSchemas[t.Key()]; own != nil {
		return own
	}
	o := objectSchema{strict: slices.Contains(strictComponents, t.Key())}
	fields := reference.Components()[t.Key()]
	o.patch = b.patch && (t.Key() == b.top || !slices.ContainsFunc(fields, func(f reference.Field) bool { return f.Required }))
	for _, f := range fields {
		s := ownSchemas[f.Key()]
		if s == nil {
			s = ownSchemas[f.Name]
		}
		if s == nil {
			s = b.schema(f.ParsedType(), f)
		}
		o.fields = append(o.fields, field{f.Name, s, !f.Required, f.Nullable, defaultOf(f)})
	}
	return o.validate
}

// union returns the schema of a value of one of several types. Enumerations are one variant.
func (b schemaBuilder) union(t reference.Type) schema {
	var variants []variant
	var values []string
	for _, v := range t.Variants {
		switch v.Kind {
		case reference.Enumeration:
			values = append(values, v.Values...)
		case reference.Const:
			values = append(values, strings.Trim(v.Values[0], `"`))
		default:
			variants = append(variants, variant{v.Name, b.schema(v, reference.Field{})})
		}
	}
	if len(values) > 0 {
		return enum(values...)
	}
	return anyOf(variants...)
}

// defaultOf returns the value of a missing field, nil for none.
func defaultOf(f reference.Field) any {
	if f.Default == "" {
		return nil
	}
	return json.RawMessage(f.Default)
}

func constSchema(value string) schema {
	if value[0] == '"' {
		return enum(strings.Trim(value, `"`))
	}
	return booleanSchema
}

// basicSchemas are the schemas of the basic types without limits.
var basicSchemas = map[string]schema{
	"uuid": uuidSchema, "uuid4": uuidSchema, "date": dateSchema, "date-time": dateTimeSchema, "email": emailSchema, "boolean": booleanSchema,
	"object": objectOfAny, "any": anySchema,
}

func basicSchema(name, limits string) schema {
	if s := basicSchemas[name]; s != nil {
		return s
	}
	if name == "integer" {
		return limited(integerSchema, limits)
	}
	var pattern *regexp.Regexp
	if _, text, ok := strings.Cut(limits, "pattern="); ok { // the last of the limits
		pattern = regexp.MustCompile(text)
	}
	return boundedString(int(reference.Limit(limits, "minLength", 0)), int(reference.Limit(limits, "maxLength", math.MaxInt32)), pattern)
}

// limited is the schema of a number within limits.
func limited(number schema, limits string) schema {
	return within(number, reference.Limit(limits, "minimum", math.MinInt64), reference.Limit(limits, "maximum", math.MaxInt64))
}

// arrayWithLimit rejects an array without elements if it needs one.
func arrayWithLimit(array schema, limits string) schema {
	if limits != "minItems=1" {
		return array
	}
	return func(v *validator, location []any, raw json.RawMessage) any {
		values := array(v, location, raw)
		if list, ok := values.([]any); ok && len(list) == 0 {
			v.add("too_short", location, "List should have at least 1 item after validation, not 0", raw,
				map[string]any{"field_type": "List", "min_length": 1, "actual_length": 0})
		}
		return values
	}
}
