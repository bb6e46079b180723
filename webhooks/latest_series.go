package webhooks

import (
	"math"
	"slices"
	"sync"

	"github.com/labhealth/labhealth-go/internal/newest"
)

// series holds the samples of a series in chunks. Chunks are sorted by time, and follow each other
// in time. The last one is kept apart, because most series have few samples or only grow. A series
// is as long as a line of the processor's cache.
type series struct {
	key  seriesKey
	last chunk
	more *more // nil if there are no older chunks and no documents
}

type chunk struct {
	first   int64 // time of the first record, so that finding a chunk does not access the records
	records []record
}

// more is what few series have.
type more struct {
	older     chunks
	documents documents
}

type chunks []chunk

// documents holds the JSON of the samples that are stored as such.
type documents struct {
	list []string
	free []uint32 // unused indexes in list
}

const (
	chunkSize = 512
	// mostMoved limits how many records are moved for each one that is inserted before them.
	mostMoved = 32
)

// older returns the number of older chunks, which is that of the last chunk.
func (se *series) older() int {
	if se.more == nil {
		return 0
	}
	return len(se.more.older)
}

// chunk returns a chunk by its number.
func (se *series) chunk(ci int) *chunk {
	if ci == se.older() {
		return &se.last
	}
	return &se.more.older[ci]
}

// rest returns the part that few series have.
func (se *series) rest() *more {
	if se.more == nil {
		se.more = new(more)
	}
	return se.more
}

// put stores entries, which are sorted by time.
func (se *series) put(l *Latest, list []entry, c *Changes) {
	ci, i := 0, 0
	for len(list) > 0 {
		at := list[0].at
		var found bool
		ci, i, found = se.search(ci, i, at)
		if found {
			se.replace(l, &se.chunk(ci).records[i], &list[0], c)
			list, i = list[1:], i+1
			continue
		}
		// All entries between two stored samples are inserted at once.
		n := 1
		if bound, ok := se.next(ci, i); ok {
			for n < len(list) && list[n].at < bound {
				n++
			}
		} else {
			n = len(list)
		}
		c.Added += n
		for k := range list[:n] {
			c.Samples = append(c.Samples, int(list[k].index))
		}
		ci, i = se.insert(ci, i, list[:n])
		list = list[n:]
	}
}

// search finds the position of a time at or after (ci, i).
func (se *series) search(ci, i int, at int64) (int, int, bool) {
	older := se.older()
	low, high := se.last.first, at
	if at >= low || older == 0 {
		n := len(se.last.records)
		if n == 0 || at > se.last.records[n-1].at {
			return older, n, false
		}
		high = se.last.records[n-1].at
	}
	if i > 0 {
		if c := se.chunk(ci).records; i < len(c) && c[i].at == at { // it follows the previous one
			return ci, i, true
		}
	}
	switch {
	case ci == older:
	case at >= low:
		ci, i = older, 0
	default:
		if later := se.more.older.at(ci+1, at, low); later > ci {
			ci, i = later, 0
		}
		low, high = se.more.older[ci].first, se.chunk(ci+1).first
	}
	c := se.chunk(ci).records
	i = position(c, min(i, len(c)), at, low, high)
	return ci, i, i < len(c) && c[i].at == at
}

// at returns the number of the last chunk that starts at or before a time, at least from - 1. All
// chunks start before high. Like position, it starts at a guess.
func (list chunks) at(from int, at, high int64) int {
	const near = 4
	to := len(list)
	guess := between(to, at, list[0].first, high)
	switch {
	case guess < from || guess >= to:
	case list[guess].first <= at:
		from = guess + 1
		if guess+near < to && list[guess+near].first > at {
			to = guess + near
		}
	default:
		to = guess
		if guess-near >= from && list[guess-near].first <= at {
			from = guess - near + 1
		}
	}
	for from < to {
		if mid := int(uint(from+to) >> 1); list[mid].first <= at {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from - 1
}

// between returns where at is among n regular times from low to high.
func between(n int, at, low, high int64) int {
	return int(float64(n) * ((float64(at) - float64(low)) / (float64(high) - float64(low))))
}

// position returns the index of the first record from lo on whose time is not before at. It starts
// where that is if the times between low and high are regular, as they mostly are: each access to
// another record may wait for memory.
func position(c []record, lo int, at, low, high int64) int {
	hi := len(c)
	guess := min(max(between(hi, at, low, high), lo), hi)
	if guess < hi && c[guess].at < at {
		lo = guess + 1
		for step := 1; lo+step < hi; step *= 2 {
			if c[lo+step].at >= at {
				hi = lo + step
				break
			}
			lo += step + 1
		}
	} else {
		hi = guess
		for step := 1; hi-step >= lo; step *= 2 {
			if c[hi-step].at < at {
				lo = hi - step + 1
				break
			}
			hi -= step
		}
	}
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); c[mid].at < at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// next returns the time of the record at (ci, i), or of the first in the next chunk.
func (se *series) next(ci, i int) (int64, bool) {
	if c := se.chunk(ci).records; i < len(c) {
		return c[i].at, true
	}
	if ci < se.older() {
		return se.chunk(ci + 1).first, true
	}
	return 0, false
}

// insert stores entries before (ci, i) and returns the position after them.
func (se *series) insert(ci, i int, list []entry) (int, int) {
	for len(list) > 0 {
		to := se.chunk(ci)
		c := to.records
		if len(c) == chunkSize || len(c)-i > mostMoved*len(list) {
			ci, i = se.split(ci, i)
			continue
		}
		n := min(len(list), chunkSize-len(c))
		if len(c)+n > cap(c) {
			c = grown(c, n, i == len(c) && ci == se.older())
		}
		c = c[:len(c)+n]
		copy(c[i+n:], c[i:])
		for k := range list[:n] {
			c[i+k] = list[k].record
			if list[k].document != "" {
				c[i+k] = se.stored(&list[k])
			}
		}
		to.records = c
		if i == 0 {
			to.first = list[0].at
		}
		list = list[n:]
		i += n
	}
	return ci, i
}

// grown returns a chunk with the records of c and room for n more: for many if it grows at its end
// or in batches, else for few, because the chunk may be split before they come.
func grown(c []record, n int, atEnd bool) []record {
	size := max(len(c)+n, 2*len(c))
	if !atEnd && n < 8 {
		size = len(c) + n + max(len(c)/8, min(len(c), 3))
	}
	to := append(newChunk(min(chunkSize, size)), c...)
	freeChunk(c)
	return to
}

// split makes room at (ci, i), in a chunk that is full, and returns the new position.
func (se *series) split(ci, i int) (int, int) {
	c, m := se.chunk(ci).records, se.rest()
	if i == chunkSize && ci == len(m.older) {
		m.older, se.last = append(m.older, se.last), chunk{}
		return ci + 1, 0
	}
	half := len(c) / 2
	left, right := part(c[:half]), part(c[half:])
	freeChunk(c)
	*se.chunk(ci) = right
	m.older = slices.Insert(m.older, ci, left)
	if i > half {
		return ci + 1, i - half
	}
	return ci, i
}

// part returns a copy of a half of a chunk.
func part(c []record) chunk { return chunk{c[0].at, append(newChunk(len(c)*9/8), c...)} }

// spareChunks holds one small chunk of each capacity, divided by four, that no series uses anymore.
// Series that grow in random order need chunks of another size all the time.
type spareChunks [17][]record

var sparePool = sync.Pool{New: func() any { return new(spareChunks) }}

// newChunk returns an empty chunk with room for size records, or a few more.
func newChunk(size int) []record {
	if size <= 4 || size > 4*(len(spareChunks{})-1) {
		return make([]record, 0, size)
	}
	size = (size + 3) / 4
	spare := sparePool.Get().(*spareChunks)
	c := spare[size]
	spare[size] = nil
	sparePool.Put(spare)
	if c == nil {
		c = make([]record, 0, 4*size)
	}
	return c
}

// freeChunk takes back a chunk, to which nothing may refer.
func freeChunk(c []record) {
	if cap(c)%4 != 0 || cap(c)/4 >= len(spareChunks{}) {
		return
	}
	spare := sparePool.Get().(*spareChunks)
	spare[cap(c)/4] = c[:0]
	sparePool.Put(spare)
}

// stored returns the record of an entry and keeps its document.
func (se *series) stored(e *entry) record {
	r := e.record
	if e.document == "" {
		return r
	}
	r.extra = se.rest().documents.add(e.document)
	return r
}

func (d *documents) add(document string) (index uint32) {
	if n := len(d.free); n > 0 {
		index, d.free = d.free[n-1], d.free[:n-1]
		d.list[index] = document
		return index
	}
	d.list = append(d.list, document)
	return uint32(len(d.list) - 1)
}

func (d *documents) remove(index uint32) {
	d.list[index] = ""
	d.free = append(d.free, index)
}

// replace stores an entry in place of a record with the same key, if it is newer.
func (se *series) replace(l *Latest, r *record, e *entry, c *Changes) {
	all := l.shapes.all()
	isJSON := all[r.shape].Form == newest.JSON
	same := r.shape == e.shape && (isJSON && se.more.documents.list[r.extra] == e.document ||
		!isJSON && r.extra == e.extra && math.Float64bits(r.value) == math.Float64bits(e.value))
	outcome := newest.Compare(r.version, e.version, same, func() (stored, received string) {
		return se.json(all, r), e.json(all)
	})
	c.count(outcome)
	switch outcome {
	case newest.Same:
		r.version = e.version
	case newest.Updated:
		if isJSON {
			se.more.documents.remove(r.extra)
		}
		*r = se.stored(e)
		c.Samples = append(c.Samples, int(e.index))
	case newest.Added, newest.Older: // leave the record as it is
	}
}

func (se *series) json(all []shape, r *record) string {
	if all[r.shape].Form == newest.JSON {
		return se.more.documents.list[r.extra]
	}
	return jsonOf(all, r)
}

func (e *entry) json(all []shape) string {
	if e.document != "" {
		return e.document
	}
	return jsonOf(all, &e.record)
}

// sample returns the sample of a record.
func (se *series) sample(all []shape, r *record) (s Sample) {
	if all[r.shape].Form != newest.JSON {
		return sampleOf(all, r)
	}
	s.UnmarshalJSON([]byte(se.more.documents.list[r.extra])) // MarshalJSON wrote it
	return s
}

func (se *series) copy() series {
	to := series{key: se.key, last: se.last}
	if m := se.more; m != nil {
		to.more = &more{slices.Clone(m.older), documents{slices.Clone(m.documents.list), slices.Clone(m.documents.free)}}
	}
	for ci := range to.older() + 1 {
		c := to.chunk(ci)
		c.records = slices.Clone(c.records)
	}
	return to
}
