package webhooks

import (
	"hash/maphash"
	"sync"

	"github.com/google/uuid"
)

// shard holds the data of those users whose IDs have some bits in common.
//
// A store of millions of series waits for memory when it looks for one. The index of a shard is
// therefore small: it takes one access to the slots, one to the series, and no pointers that the
// garbage collector would follow.
type shard struct {
	mu        sync.RWMutex
	slots     []slot // open addressing, a power of two of them
	pages     []*[pageSize]series
	count     uint32 // of series
	summaries map[SummaryKey]summary
}

// slot refers to a series. A zero slot is free.
type slot struct {
	hash   uint32 // the lower half of that of the key
	number uint32 // the number of the series, counted from 1
}

// seriesKey is a [Series] with a number for its strings.
type seriesKey struct {
	user uuid.UUID
	kind uint32 // index in Latest.kinds
}

const pageSize = 16

var seed = maphash.MakeSeed()

func (k *seriesKey) hash() uint32 {
	return uint32(maphash.Bytes(seed, k.user[:])) + k.kind*0x9E3779B1 // odd: different for each kind
}

// at returns the series with a number, counted from 0.
func (sh *shard) at(number uint32) *series { return &sh.pages[number/pageSize][number%pageSize] }

// find returns a series, or nil if there is none.
func (sh *shard) find(key seriesKey) *series {
	if len(sh.slots) == 0 {
		return nil
	}
	se, _ := sh.lookup(key, key.hash())
	return se
}

// lookup returns a series or, if there is none, the slot for it. There must be a free slot.
func (sh *shard) lookup(key seriesKey, hash uint32) (*series, *slot) {
	for i := hash; ; i++ {
		sl := &sh.slots[i&uint32(len(sh.slots)-1)]
		if sl.number == 0 {
			return nil, sl
		}
		if sl.hash == hash {
			if se := sh.at(sl.number - 1); se.key == key {
				return se, nil
			}
		}
	}
}

// findOrAdd returns a series, and creates it if there is none.
func (sh *shard) findOrAdd(key seriesKey) *series {
	if uint64(sh.count) >= uint64(len(sh.slots))*3/4 {
		sh.grow()
	}
	hash := key.hash()
	se, free := sh.lookup(key, hash)
	if se != nil {
		return se
	}
	if int(sh.count) == len(sh.pages)*pageSize {
		sh.pages = append(sh.pages, new([pageSize]series))
	}
	se = sh.at(sh.count)
	sh.count++
	se.key = key
	*free = slot{hash, sh.count}
	return se
}

// grow doubles the number of slots.
func (sh *shard) grow() {
	old := sh.slots
	sh.slots = make([]slot, max(8, 2*len(old)))
	for _, sl := range old {
		if sl.number == 0 {
			continue
		}
		i := sl.hash
		for sh.slots[i&uint32(len(sh.slots)-1)].number != 0 {
			i++
		}
		sh.slots[i&uint32(len(sh.slots)-1)] = sl
	}
}
