// All uses of unsafe: fields at their offsets, and allocations that values share.

package jsonread

import (
	"reflect"
	"unsafe"
)

// The decoder and the encoder reach fields at their offsets instead of through package reflect,
// which would take longer than everything else. All uses of unsafe are in this file.

// place is where a value is decoded to: the address of a variable of the type that the binder was
// made for. It always points into one allocation, whose type the garbage collector has, so that it
// keeps the allocation alive and pointers that are written there are found.
type place struct{ address unsafe.Pointer }

// placeOf returns the place of an addressable value.
func placeOf(v reflect.Value) place { return place{v.Addr().UnsafePointer()} }

// field returns the place of a struct's field, whose offset package reflect reported.
func (p place) field(offset uintptr) place { return place{unsafe.Add(p.address, offset)} }

// at returns the variable at p. Its type is the binder's, or has the same memory layout: an enum is
// a string, and every type that embeds a Ref has it as its underlying type.
func at[T any](p place) *T { return (*T)(p.address) }

// variable is a type of variables: the first word of an any with a pointer to one of them, which is
// the address of what the runtime knows about the pointer type, and is never freed.
// [reflect.NewAt] would look it up each time.
type variable struct{ pointer unsafe.Pointer }

// variableOf returns the variable of type t.
func variableOf(t reflect.Type) variable {
	pointer := reflect.Zero(reflect.PointerTo(t)).Interface()
	return variable{*(*unsafe.Pointer)(unsafe.Pointer(&pointer))}
}

// new returns a new variable.
func (v variable) new() reflect.Value {
	return reflect.New(reflect.TypeOf(place{}.pointer(v)).Elem()).Elem()
}

// value returns the variable at p, of type v or of a type with its memory layout.
func (p place) value(v variable) reflect.Value { return reflect.ValueOf(p.pointer(v)).Elem() }

// pointer returns a pointer to the variable at p: it puts the two words of an any together.
func (p place) pointer(v variable) (pointer any) {
	*(*[2]unsafe.Pointer)(unsafe.Pointer(&pointer)) = [2]unsafe.Pointer{v.pointer, p.address}
	return pointer
}

// point sets the pointer variable at p. The value at to has the type that it points to.
func (p place) point(to place) { *(*unsafe.Pointer)(p.address) = to.address }

// target returns the place of what the pointer variable at p points to. It is nil if that is nil.
func (p place) target() place { return place{*(*unsafe.Pointer)(p.address)} }

// isNil reports whether the variable at p of a pointer, interface, slice or map type is nil: the
// first word of each is nil then, and never otherwise.
func (p place) isNil() bool { return p.target() == place{} }

// placeIn returns the place of the value of v, whose type is a struct of more than one word: the
// second word of v is its address. Nobody may change the value.
func placeIn(v any) place { return place{(*[2]unsafe.Pointer)(unsafe.Pointer(&v))[1]} }

// addressOf returns where a text is: as long as both are in use, no other one has this address.
func addressOf(text string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(text))) }

// implement sets the variable of an interface type with methods at p. The table is that of a
// pointer type in this interface type, and the value at to has the type that it points to.
func (p place) implement(table methodTable, to place) {
	*(*[2]unsafe.Pointer)(p.address) = [2]unsafe.Pointer{table.address, to.address}
}

// methodTable is the first word of an interface value: the runtime makes one for each pair of an
// interface type with methods and a type. It is never freed.
type methodTable struct{ address unsafe.Pointer }

// methodTableOf returns the table of the dynamic type of v, which is not nil. I is an interface
// type with methods.
func methodTableOf[I any](v I) methodTable {
	return methodTable{*(*unsafe.Pointer)(unsafe.Pointer(&v))}
}

// list is a variable of a slice type: its memory layout is that of every slice.
type list struct {
	first    unsafe.Pointer
	len, cap int
}

// place returns the place of the list itself.
func (l *list) place() place { return place{unsafe.Pointer(l)} }

// element returns the place of an element of size bytes. n is less than l.cap.
func (l *list) element(n int, size uintptr) place { return place{unsafe.Add(l.first, uintptr(n)*size)} }

// bytesAt returns the bytes of data from i on, of which there are at least ahead.
func bytesAt(data []byte, i int) *[ahead]byte {
	return (*[ahead]byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(data)), i))
}

// textOf returns the bytes as a string, not a copy. Nobody changes them as long as the string is in
// use.
func textOf(data []byte) string { return unsafe.String(unsafe.SliceData(data), len(data)) }

// bytesOf returns the bytes of a string, not a copy. Nobody changes them.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// move moves a waiting string together with the size bytes from which a list has been copied to
// another place, if it was among them. Both allocations are reachable.
func (w *waiting) move(from place, size uintptr, to place) {
	if offset := uintptr(unsafe.Pointer(w.to)) - uintptr(from.address); offset < size {
		w.to = at[string](to.field(offset))
	}
}

// memory is a type of which pointers are decoded. The values of a document share allocations, as do
// those of all types without pointers.
type memory struct {
	id    int      // index in decoder.slabs
	list  variable // the slice type of the allocation
	width uintptr  // size of an element
	first int      // how many elements are allocated at first
	units int      // how many elements a value takes
	size  uintptr  // of a value
}

// slab is an allocation of which a part is in use.
type slab struct {
	list
	used     int // elements of this allocation
	taken    int // elements of all allocations for the current document
	before   int // the same for the document before
	earlier  int // and for the one before that
	document int // the number of the current document, 0 for none
}

// words allocates values without pointers: their alignment is at most that of a word.
var words = memory{id: newID(), list: variableOf(reflect.TypeFor[[]uint64]()), width: 8, first: 4}

// texts allocates strings.
var texts = memory{newID(), variableOf(reflect.TypeFor[[]string]()), reflect.TypeFor[string]().Size(), 4, 1, reflect.TypeFor[string]().Size()}

// memoryOf returns the memory for values of type t.
func memoryOf(t reflect.Type) *memory {
	if t.Kind() == reflect.String { // an enum too
		return &texts
	}
	if m, ok := memories.Load(t); ok {
		return m.(*memory)
	}
	var m memory
	if hasPointers(t) {
		m = memory{newID(), variableOf(reflect.SliceOf(t)), t.Size(), 1, 1, t.Size()}
	} else {
		m = words
		m.units, m.size = max(1, int(t.Size()+7)/8), t.Size()
	}
	stored, _ := memories.LoadOrStore(t, &m)
	return stored.(*memory)
}

// hasPointers reports whether the garbage collector has to look at values of type t. It may report
// true for a type without pointers.
func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint8, reflect.Float64:
		return false
	case reflect.Array:
		return hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	}
	return true
}

// mostShared is the largest number of elements of an allocation that was not needed so far.
const mostShared = 64

// take returns the place of a new zero value.
func (d *decoder) take(m *memory) place {
	d.charge(m.size)
	if m.id < len(d.slabs) { // the usual case of takeUnits
		if s := &d.slabs[m.id]; s.document == d.document && s.cap-s.used >= m.units {
			p := s.element(s.used, m.width)
			s.used += m.units
			s.taken += m.units
			return p
		}
	}
	return d.takeUnits(m, m.units)
}

// takeUnits returns the place of new zero elements.
func (d *decoder) takeUnits(m *memory, units int) place {
	s := d.slab(m.id)
	if s.cap-s.used < units {
		d.refill(s, m, units)
	}
	p := s.element(s.used, m.width)
	s.used += units
	s.taken += units
	return p
}

// takeList makes the list at l one of n new zero elements, of which it has none yet.
func (d *decoder) takeList(l *list, m *memory, n int) {
	*l = list{d.takeUnits(m, m.units*n).address, 0, n}
}

// slab returns a slab for the current document.
//
//go:noinline // or the compiler copies all of it, append too, into every function that calls it
func (d *decoder) slab(id int) *slab {
	if id >= len(d.slabs) {
		d.slabs = append(d.slabs, make([]slab, max(id+1, int(lastID.Load())+1)-len(d.slabs))...)
	}
	s := &d.slabs[id]
	if s.document != d.document {
		if s.document == 0 {
			d.touched = append(d.touched, id)
		}
		*s = slab{before: s.taken, earlier: s.before, document: d.document}
	}
	return s
}

// refill makes an allocation for as many elements as both documents before needed, then for as many
// as one of them did, and then doubles what this one has: on a page of two kinds of documents, none
// has much more than it needs.
func (d *decoder) refill(s *slab, m *memory, units int) {
	n := max(s.taken, m.first)
	if both := min(s.before, s.earlier); s.taken < both {
		n = both
	} else if one := max(s.before, s.earlier); s.taken < one {
		n = one - s.taken
	}
	s.list, s.used = list{}, 0
	s.list.place().value(m.list).Grow(max(units, min(n, mostShared)))
}

// giveBack takes the value back that take returned last. It is still zero.
func (d *decoder) giveBack(m *memory) {
	s := d.slab(m.id)
	s.used -= m.units
	s.taken -= m.units
}
