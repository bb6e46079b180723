// Unions, whose Go type depends on another field.

package jsonread

import (
	"reflect"
	"sync"
)

// union says how a field of interface type is decoded: by the value of the field of its struct that
// discriminates it.
type union struct {
	discriminator string
	kinds         map[string]kind
	unknown       kind
}

type kind struct {
	elem   reflect.Type
	table  methodTable
	memory *memory
	plan   func() *plan
}

var unions = map[reflect.Type]*union{}

// Union registers the types that a field of interface type I can have, by the value of the field
// named discriminator. The types are pointers to structs; unknown is the type for values that kinds
// does not have. It is called from variable declarations, before anything is decoded.
func Union[I any](discriminator string, unknown I, kinds map[string]I) struct{} {
	u := &union{discriminator: discriminator, kinds: map[string]kind{}, unknown: kindOf(unknown)}
	for value, example := range kinds {
		u.kinds[value] = kindOf(example)
	}
	unions[reflect.TypeFor[I]()] = u
	return struct{}{}
}

func kindOf[I any](example I) kind {
	elem := reflect.TypeOf(example).Elem()
	return kind{elem, methodTableOf(example), memoryOf(elem), sync.OnceValue(func() *plan { return planOf(elem) })}
}

func (u *union) bind(d *decoder, to place, discriminator string) {
	if d.skipNull() {
		return
	}
	k, known := u.kinds[discriminator]
	if !known {
		k = u.unknown
	} else if d.peek() != '{' {
		d.misfit("object")
		return
	}
	p := d.take(k.memory)
	k.plan().bind(d, p)
	to.implement(k.table, p)
}
