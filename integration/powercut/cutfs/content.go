package cutfs

import (
	"maps"
	"sync/atomic"
)

const (
	pageSize   = 4096 // bytes that are written in any order
	sectorSize = 512  // bytes that are written as a whole or not at all
)

// page is a page of one or several contents. It does not change while several share it.
type page struct {
	owner uint64 // the content that may write to it
	data  [pageSize]byte
}

// content is the content of a file. Pages that are missing are zero.
type content struct {
	owner uint64
	size  int64
	pages map[int64]*page
}

var lastOwner atomic.Uint64

func newContent() *content {
	return &content{owner: lastOwner.Add(1), pages: map[int64]*page{}}
}

// clone returns a copy that shares all pages until either is written.
func (c *content) clone() *content {
	c.owner = lastOwner.Add(1)
	return &content{owner: lastOwner.Add(1), size: c.size, pages: maps.Clone(c.pages)}
}

// writablePage returns a page that no other content has.
func (c *content) writablePage(number int64) *page {
	p := c.pages[number]
	switch {
	case p == nil:
		p = &page{owner: c.owner}
	case p.owner != c.owner:
		p = &page{owner: c.owner, data: p.data}
	default:
		return p
	}
	c.pages[number] = p
	return p
}

func (c *content) write(data []byte, offset int64) {
	c.size = max(c.size, offset+int64(len(data)))
	for len(data) > 0 {
		n := copy(c.writablePage(offset / pageSize).data[offset%pageSize:], data)
		data, offset = data[n:], offset+int64(n)
	}
}

// read fills buf as far as the content reaches, and returns how much that is.
func (c *content) read(buf []byte, offset int64) int {
	buf = buf[:max(0, min(int64(len(buf)), c.size-offset))]
	for done := 0; done < len(buf); {
		at := offset + int64(done)
		part := buf[done:min(len(buf), done+int(pageSize-at%pageSize))]
		if p := c.pages[at/pageSize]; p != nil {
			copy(part, p.data[at%pageSize:])
		} else {
			clear(part)
		}
		done += len(part)
	}
	return len(buf)
}

func (c *content) truncate(size int64) {
	if size < c.size {
		maps.DeleteFunc(c.pages, func(number int64, _ *page) bool { return number*pageSize >= size })
		if c.pages[size/pageSize] != nil { // bytes that a later write makes visible again are zero
			clear(c.writablePage(size / pageSize).data[size%pageSize:])
		}
	}
	c.size = size
}
