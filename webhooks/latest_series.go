package webhooks

import (
	"cmp"
	"math"
	"slices"

	"github.com/labhealth/labhealth-go/internal/newest"
)

// series holds the samples of a series in chunks. Chunks are sorted by time, and follow each other
// in time.
type series struct {
	chunks    [][]record
	documents []string // JSON of the samples that are stored as such
	free      []uint32 // unused indexes in documents
}

const chunkSize = 512

// find returns a series, and creates it if there is none.
func (sh *shard) find(key Series) *series {
	if se := sh.series[key]; se != nil {
		return se
	}
	if sh.series == nil {
		sh.series = map[Series]*series{}
	}
	se := &series{}
	key.Resource, key.Provider, key.SourceType = shared(key.Resource), shared(key.Provider), shared(key.SourceType)
	sh.series[key] = se
	return se
}

// put stores entries, which are sorted by time.
func (se *series) put(l *Latest, list []entry, c *Changes) {
	ci, i := 0, 0
	for len(list) > 0 {
		at := list[0].at
		var found bool
		ci, i, found = se.search(ci, i, at)
		if found {
			se.replace(l, &se.chunks[ci][i], &list[0], c)
			list = list[1:]
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
	last := len(se.chunks) - 1
	if last < 0 {
		return 0, 0, false
	}
	if c := se.chunks[last]; at > c[len(c)-1].at {
		return last, len(c), false
	}
	if c := se.chunks[ci]; i < len(c) && c[i].at == at { // it follows the previous one
		return ci, i, true
	}
	if c := se.chunks[ci]; at > c[len(c)-1].at {
		rest := se.chunks[ci+1:]
		n, _ := slices.BinarySearchFunc(rest, at, func(c []record, at int64) int { return cmp.Compare(c[len(c)-1].at, at) })
		ci, i = ci+1+n, 0
	}
	c := se.chunks[ci]
	lo, hi := min(i, len(c)), len(c)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); c[mid].at < at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return ci, lo, lo < len(c) && c[lo].at == at
}

// next returns the time of the record at (ci, i), or of the first in the next chunk.
func (se *series) next(ci, i int) (int64, bool) {
	switch {
	case ci < len(se.chunks) && i < len(se.chunks[ci]):
		return se.chunks[ci][i].at, true
	case ci+1 < len(se.chunks):
		return se.chunks[ci+1][0].at, true
	}
	return 0, false
}

// insert stores entries before (ci, i) and returns the position after them.
func (se *series) insert(ci, i int, list []entry) (int, int) {
	for len(list) > 0 {
		if len(se.chunks) == 0 {
			se.chunks = append(se.chunks, nil)
		}
		c := se.chunks[ci]
		if len(c) == chunkSize {
			ci, i = se.split(ci, i)
			continue
		}
		n := min(len(list), chunkSize-len(c))
		if len(c)+n > cap(c) {
			c = append(make([]record, 0, min(chunkSize, max(len(c)+n, 2*len(c)))), c...)
		}
		c = c[:len(c)+n]
		copy(c[i+n:], c[i:])
		for k := range list[:n] {
			c[i+k] = se.stored(&list[k])
		}
		se.chunks[ci] = c
		list = list[n:]
		i += n
	}
	return ci, i
}

// split makes room at (ci, i), in a chunk that is full, and returns the new position.
func (se *series) split(ci, i int) (int, int) {
	if i == chunkSize && ci == len(se.chunks)-1 {
		se.chunks = append(se.chunks, nil)
		return ci + 1, 0
	}
	const half = chunkSize / 2
	c := se.chunks[ci]
	se.chunks = slices.Insert(se.chunks, ci+1, append(make([]record, 0, half*3/2), c[half:]...))
	se.chunks[ci] = append(make([]record, 0, half*3/2), c[:half]...)
	if i > half {
		return ci + 1, i - half
	}
	return ci, i
}

// stored returns the record of an entry and keeps its document.
func (se *series) stored(e *entry) record {
	r := e.record
	if e.document == "" {
		return r
	}
	if n := len(se.free); n > 0 {
		r.extra, se.free = se.free[n-1], se.free[:n-1]
	} else {
		r.extra = uint32(len(se.documents))
		se.documents = append(se.documents, "")
	}
	se.documents[r.extra] = e.document
	return r
}

// replace stores an entry in place of a record with the same key, if it is newer.
func (se *series) replace(l *Latest, r *record, e *entry, c *Changes) {
	all := l.shapes.all()
	isJSON := all[r.shape].Form == newest.JSON
	same := r.shape == e.shape && (isJSON && se.documents[r.extra] == e.document ||
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
			se.documents[r.extra] = ""
			se.free = append(se.free, r.extra)
		}
		*r = se.stored(e)
		c.Samples = append(c.Samples, int(e.index))
	case newest.Added, newest.Older: // leave the record as it is
	}
}

func (se *series) json(all []newest.Shape, r *record) string {
	if all[r.shape].Form == newest.JSON {
		return se.documents[r.extra]
	}
	return jsonOf(all, r)
}

func (e *entry) json(all []newest.Shape) string {
	if e.document != "" {
		return e.document
	}
	return jsonOf(all, &e.record)
}

// sample returns the sample of a record.
func (se *series) sample(all []newest.Shape, r *record) (s Sample) {
	if all[r.shape].Form != newest.JSON {
		return sampleOf(all, r)
	}
	s.UnmarshalJSON([]byte(se.documents[r.extra])) // MarshalJSON wrote it
	return s
}

func (se *series) copy() *series {
	to := &series{make([][]record, len(se.chunks)), slices.Clone(se.documents), slices.Clone(se.free)}
	for i, c := range se.chunks {
		to.chunks[i] = slices.Clone(c)
	}
	return to
}
