package jsonread

import (
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// plan is what is known of a struct type: its members in order, by name, and which of its fields is its Ref.
type plan struct {
	fields   []field
	byName   map[string]int
	defaults []int // fields with a default
	ref      int   // index of the embedded Ref, or -1
	toRef    func(reflect.Value) *Ref
	kind     int // the member that tells what a union holds, or -1
	data     int // the union, or -1
}

type field struct {
	name       string
	key        string // the name as it usually comes, with its colon
	index      int
	bind       binder
	omitZero   bool
	nullable   bool // a nil slice is null, not []
	hasDefault bool
	def        reflect.Value
	union      *union
}

// any reports whether the type reads any JSON value, because it has nothing but its bytes.
func (p *plan) any() bool { return p.ref >= 0 && len(p.fields) == 0 }

// refOf returns the Ref that v embeds, or a copy of it if v cannot be changed.
func (p *plan) refOf(v reflect.Value) *Ref { return p.toRef(v.Field(p.ref)) }

var refs = map[reflect.Type]func(reflect.Value) *Ref{}

// Embeds registers a type whose underlying type is Ref, for structs that embed it. It is called from variable declarations,
// before anything is read. Reflection alone could convert the one into the other, but takes longer than reading the struct.
func Embeds[K any](ref func(*K) *Ref) struct{} {
	refs[reflect.TypeFor[K]()] = func(v reflect.Value) *Ref {
		if v.CanAddr() {
			return ref(v.Addr().Interface().(*K))
		}
		k := v.Interface().(K)
		return ref(&k)
	}
	return struct{}{}
}

var plans sync.Map // reflect.Type → *plan

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p, _ := plans.LoadOrStore(t, buildPlan(t))
	return p.(*plan)
}

// buildPlan reads the tags of t:
//
//	json:"name"          the member's name; omitzero leaves it out when zero
//	default:"text"       what an absent member means
//	jsonread:"nullable"  a required array that may be null
//	jsonread:"own"       each element of the list keeps its own bytes
//	jsonread:"object"    an array in whose place an object may be, which is not read
//
// It panics on a type that cannot be read; types are fixed, so a test that reads each once is enough.
func buildPlan(t reflect.Type) *plan {
	p := &plan{byName: map[string]int{}, ref: -1, kind: -1, data: -1}
	for i := range t.NumField() {
		sf := t.Field(i)
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if isRef(sf) {
			p.ref, p.toRef = i, refs[sf.Type]
			continue
		}
		if !sf.IsExported() || name == "-" || name == "" {
			continue
		}
		mark := sf.Tag.Get("jsonread")
		f := field{name: name, key: `"` + name + `":`, index: i, omitZero: options == "omitzero", nullable: mark == "nullable"}
		if text, ok := sf.Tag.Lookup("default"); ok {
			f.hasDefault, f.def = true, parseDefault(sf.Type, text)
			p.defaults = append(p.defaults, len(p.fields))
		}
		switch {
		case sf.Type.Kind() == reflect.Interface:
			u, ok := unions[sf.Type]
			if !ok {
				panic("jsonread: no union for " + sf.Type.String())
			}
			f.union, p.data = u, len(p.fields)
		case mark == "own":
			f.bind = bindSlice(sf.Type, true)
		case mark == "object":
			f.bind = skipObject(bindSlice(sf.Type, false))
		default:
			f.bind = binderOf(sf.Type)
		}
		p.byName[name] = len(p.fields)
		p.fields = append(p.fields, f)
	}
	if p.data >= 0 {
		k, ok := p.byName[p.fields[p.data].union.discriminator]
		if !ok {
			panic("jsonread: no discriminator in " + t.String())
		}
		p.kind = k
	}
	if len(p.fields) > 64 {
		panic("jsonread: too many members in " + t.String())
	}
	return p
}

func parseDefault(t reflect.Type, text string) reflect.Value {
	v := reflect.New(t).Elem()
	e := v
	if t.Kind() == reflect.Pointer {
		v.Set(reflect.New(t.Elem()))
		e = v.Elem()
	}
	switch e.Kind() {
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			panic("jsonread: bad default in a tag: " + text)
		}
		e.SetBool(b)
	case reflect.String:
		e.SetString(text)
	default:
		panic("jsonread: no defaults for " + t.String())
	}
	return v
}

func (f *field) setDefault(v reflect.Value) {
	if f.def.Kind() != reflect.Pointer {
		v.Set(f.def)
		return
	}
	v.Set(reflect.New(f.def.Type().Elem()))
	v.Elem().Set(f.def.Elem())
}

// wantOf names a type that reads itself in the words of the interface document: Date is a "date", and so is Nullable[Date].
func wantOf(t reflect.Type) string {
	name := strings.TrimSuffix(t.Name(), "]")
	name = strings.ToLower(name[strings.LastIndexAny(name, "[.")+1:])
	switch name {
	case "int64":
		return "integer"
	case "float64":
		return "number"
	case "bool":
		return "boolean"
	}
	return name
}

// union is how a member of interface type is read: by the text of the member beside it that tells its kind.
type union struct {
	discriminator string
	kinds         map[string]kind
	unknown       kind
}

type kind struct {
	elem reflect.Type
	bind func() binder
}

var unions = map[reflect.Type]*union{}

// Union registers the types that a member of interface type I holds, by the text of the member named discriminator. The
// values are pointers to structs; unknown takes what the table does not name. It is called from variable declarations, before
// anything is read.
func Union[I any](discriminator string, unknown I, kinds map[string]I) struct{} {
	u := &union{discriminator: discriminator, kinds: map[string]kind{}, unknown: kindOf(unknown)}
	for text, example := range kinds {
		u.kinds[text] = kindOf(example)
	}
	unions[reflect.TypeFor[I]()] = u
	return struct{}{}
}

func kindOf(example any) kind {
	elem := reflect.TypeOf(example).Elem()
	return kind{elem, sync.OnceValue(func() binder { return bindStruct(elem) })}
}

func (u *union) bind(d *decoder, v reflect.Value, text string) {
	if d.isNull() {
		return
	}
	k, known := u.kinds[text]
	if !known {
		k = u.unknown
	} else if d.peek() != '{' {
		d.misfit("object")
		return
	}
	d.charge(k.elem.Size())
	p := reflect.New(k.elem)
	k.bind()(d, p.Elem())
	v.Set(p)
}
