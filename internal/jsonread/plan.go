// How a struct is decoded and encoded, computed once for each type.

package jsonread

import (
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// plan says how a struct type is decoded and encoded.
type plan struct {
	fields    []field
	index     fieldIndex
	id        int     // index in decoder.orders
	defaults  uint64  // a bit for each field with a default
	scalars   []int   // fields that take a value which stands in place of the object
	ref       int     // index of the embedded Ref, or -1
	refOffset uintptr // where it is in the struct
	data      int     // the union, or -1
	kind      int     // the field that discriminates it, or -1
}

// field says how a field is decoded and encoded. What decoding any value needs comes first, so that
// it shares a cache line.
type field struct {
	key
	offset    uintptr // where it is in the struct
	bit       uint64  // for it in a set
	skipsNull bool    // null leaves it zero
	unseen    bool    // null gives the default
	special   bool    // see bindSpecial
	number    uint8   // its index in the plan
	binder            // zero for a union

	variable
	name       string
	index      int
	omitZero   bool
	nullable   bool // a nil slice is null, not []
	wrapped    bool // the elements of the list may be wrapped
	hasDefault bool
	def        reflect.Value
	union      *union
}

// isAny reports whether any JSON value fits the type, because it has nothing but a Ref.
func (p *plan) isAny() bool { return p.ref >= 0 && len(p.fields) == 0 }

// refs are the types whose underlying type is Ref.
var refs = map[reflect.Type]bool{}

// Embeds registers such a type, for structs that embed it. It is called from variable declarations,
// before anything is decoded. The function is not called: that it compiles proves that the memory
// layout is that of Ref.
func Embeds[K any](func(*K) *Ref) struct{} {
	refs[reflect.TypeFor[K]()] = true
	return struct{}{}
}

// mostFields is how many fields a struct can have: there is a bit for each.
const mostFields = 64

var plans sync.Map // reflect.Type → *plan

// lastID, lastPlan and lastList are the numbers of the last indexes in decoder.slabs, orders and
// lists that are taken, and memories has those of types: reflect.Type → *memory.
var (
	lastID   atomic.Int64
	lastPlan atomic.Int64
	lastList atomic.Int64
	memories sync.Map
)

func newID() int { return int(lastID.Add(1)) }

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p, _ := plans.LoadOrStore(t, buildPlan(t))
	return p.(*plan)
}

// buildPlan reads the tags of t:
//
//	json:"name"          the field's name; omitzero leaves it out when zero
//	default:"value"      the value if the field is absent
//	jsonread:"nullable"  a required array that may be null
//	jsonread:"own"       each element of the list has a document of its own
//	jsonread:"scalar"    takes the value too if it is not an object, such as 7 for {"from":7,"to":7}
//	wrapper:"name"       beside own: an element may be wrapped, as {"name":{…}}, and stays wrapped
//	jsonread:"object"    an array in whose place an object may be, which is skipped
//	jsonread:"text"      an object in whose place a string may be, which is skipped
//	jsonread:"digits"    a string in whose place a number may be, whose digits it gets
//
// It panics on a type that cannot be decoded; types are fixed, so a test that decodes each once is
// enough.
func buildPlan(t reflect.Type) *plan {
	p := &plan{ref: -1, kind: -1, data: -1, id: int(lastPlan.Add(1))}
	for i := range t.NumField() {
		sf := t.Field(i)
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if isRef(sf) {
			p.ref, p.refOffset = i, sf.Offset
		} else if sf.IsExported() && name != "-" && name != "" {
			p.add(i, sf)
		}
	}
	if len(p.fields) > mostFields {
		panic("jsonread: too many fields in " + t.String())
	}
	for n := range p.fields {
		p.fields[n].number, p.fields[n].bit = uint8(n), 1<<n
		p.addToIndex(&p.fields[n])
	}
	if p.data >= 0 {
		kind := p.find([]byte(p.fields[p.data].union.discriminator))
		if kind == nil {
			panic("jsonread: no discriminator in " + t.String())
		}
		p.kind, kind.special = int(kind.number), true
	}
	return p
}

// add adds the field at index i of the struct.
func (p *plan) add(i int, sf reflect.StructField) {
	name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
	mark := sf.Tag.Get("jsonread")
	f := field{
		key: newKey(name), name: name, index: i, variable: variableOf(sf.Type), offset: sf.Offset,
		omitZero: options == "omitzero", nullable: mark == "nullable",
	}
	if value, ok := sf.Tag.Lookup("default"); ok {
		f.hasDefault, f.def = true, parseDefault(sf.Type, value)
		p.defaults |= 1 << len(p.fields)
		f.unseen = sf.Type.Kind() != reflect.Pointer
	}
	switch {
	case sf.Type.Kind() == reflect.Interface:
		u, ok := unions[sf.Type]
		if !ok {
			panic("jsonread: no union for " + sf.Type.String())
		}
		f.union, p.data = u, len(p.fields)
	case mark == "own":
		wrapper := sf.Tag.Get("wrapper")
		f.binder, f.wrapped = *ownListOf(sf.Type, wrapper), wrapper != ""
	case mark == "object":
		f.binder = *skipValue('{', binderOf(sf.Type))
	case mark == "digits":
		f.binder = *orDigits(binderOf(sf.Type))
	case mark == "text":
		f.binder = *skipValue('"', binderOf(sf.Type))
	default:
		f.binder = *binderOf(sf.Type)
	}
	f.skipsNull = f.union == nil && f.ignoresNull()
	f.special = f.unseen || f.union != nil
	if mark == "scalar" {
		p.scalars = append(p.scalars, len(p.fields))
	}
	p.fields = append(p.fields, f)
}

func parseDefault(t reflect.Type, value string) reflect.Value {
	v := reflect.New(t).Elem()
	e := v
	if t.Kind() == reflect.Pointer {
		v.Set(reflect.New(t.Elem()))
		e = v.Elem()
	}
	switch e.Kind() {
	case reflect.Bool:
		b, err := strconv.ParseBool(value)
		if err != nil {
			panic("jsonread: bad default in a tag: " + value)
		}
		e.SetBool(b)
	case reflect.String:
		e.SetString(value)
	default:
		panic("jsonread: no defaults for " + t.String())
	}
	return v
}

// setDefault sets the field at to, which is zero.
func (f *field) setDefault(to place) {
	switch f.def.Kind() {
	case reflect.Bool:
		*at[bool](to) = f.def.Bool()
	case reflect.String:
		*at[string](to) = f.def.String()
	default: // each value gets its own
		p := reflect.New(f.def.Type().Elem())
		p.Elem().Set(f.def.Elem())
		to.value(f.variable).Set(p)
	}
}

// wantOf returns the interface specification's name of a type that unmarshals itself: "date" for
// Date and for Nullable[Date], "date-time" for SampleTime.
func wantOf(t reflect.Type) string {
	name := strings.TrimSuffix(t.Name(), "]")
	name = strings.ToLower(name[max(strings.LastIndexByte(name, '['), strings.LastIndexByte(name, '.'))+1:])
	switch name {
	case "int64":
		return "integer"
	case "float64":
		return "number"
	case "bool":
		return "boolean"
	case "sampletime":
		return "date-time"
	}
	return name
}
