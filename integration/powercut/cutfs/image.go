package cutfs

import (
	"math/rand/v2"
)

// Loss is what becomes of changes that were not synced.
type Loss int

// The losses.
const (
	Drop   Loss = iota // all are lost
	Prefix             // the first ones are kept, and the start of the next one
	Subset             // any are kept, of writes any pages and sectors; with Ext4, the first ones of names
	Any                // one of these, which the seed selects
)

// Image is a disk without power: what is durable, and the changes that are not.
type Image struct {
	model   Model
	root    *node
	changes []*change // in their order
}

// clone returns a copy with the durable side of all nodes.
func (i *Image) clone() *Image {
	c := cloner{}
	out := &Image{model: i.model, root: c.node(i.root)}
	for _, old := range i.changes {
		copied := &change{number: old.number, file: c.node(old.file), offset: old.offset, data: old.data, truncates: old.truncates}
		for _, n := range old.names {
			copied.names = append(copied.names, nameChange{dir: c.node(n.dir), name: n.name, node: c.node(n.node)})
		}
		out.changes = append(out.changes, copied)
	}
	return out
}

// cloner holds the copies of nodes.
type cloner map[*node]*node

func (c cloner) node(n *node) *node {
	if n == nil || c[n] != nil {
		return c[n]
	}
	copied := &node{mode: n.mode, uid: n.uid, gid: n.gid, modified: n.modified, target: n.target}
	c[n] = copied
	if n.durable != nil {
		copied.durable = n.durable.clone()
	}
	if n.durableEntries != nil {
		copied.durableEntries = make(map[string]*node, len(n.durableEntries))
		for name, child := range n.durableEntries {
			copied.durableEntries[name] = c.node(child)
		}
	}
	return copied
}

// lose decides about each change, and returns how many are kept and lost.
func (i *Image) lose(seed uint64, loss Loss) (kept, lost int) {
	r := rand.New(rand.NewPCG(seed, 1))
	if loss == Any {
		loss = Loss(r.IntN(int(Any)))
	}
	switch loss {
	case Prefix:
		kept = i.keepPrefix(r)
	case Subset:
		kept = i.keepSubset(r)
	case Drop, Any: // nothing is kept
	}
	return kept, len(i.changes) - kept
}

// keepPrefix keeps the first changes. If the next one is a write, it is torn between two sectors or
// pages.
func (i *Image) keepPrefix(r *rand.Rand) (kept int) {
	kept = r.IntN(len(i.changes) + 1)
	for _, c := range i.changes[:kept] {
		c.apply()
	}
	if kept == len(i.changes) || len(i.changes[kept].data) == 0 {
		return kept
	}
	torn := i.changes[kept]
	unit := [...]int64{sectorSize, pageSize}[r.IntN(2)]
	end := (torn.offset + r.Int64N(int64(len(torn.data)))) / unit * unit
	if end > torn.offset {
		torn.file.durable.write(torn.data[:end-torn.offset], torn.offset)
		kept++
	}
	return kept
}

// keepSubset keeps each change with the same probability.
func (i *Image) keepSubset(r *rand.Rand) (kept int) {
	likelihood := [...]float64{0.1, 0.5, 0.9}[r.IntN(3)]
	ofNames := 0
	for _, c := range i.changes {
		if c.file == nil {
			ofNames++
		}
	}
	firstNames := r.IntN(ofNames + 1) // so many are kept with Ext4
	for _, c := range i.changes {
		keep := r.Float64() < likelihood
		switch {
		case len(c.data) > 0:
			keep = i.keepPages(r, c, likelihood)
		case c.file == nil && i.model == Ext4:
			keep = firstNames > 0
			firstNames--
		}
		if !keep {
			continue
		}
		kept++
		if len(c.data) == 0 {
			c.apply()
		}
	}
	return kept
}

// keepPages keeps some pages of a write, or sectors of a page that is torn, and reports whether it
// has kept any. With Strict, a file can have its new length without the content.
func (i *Image) keepPages(r *rand.Rand, c *change, likelihood float64) (kept bool) {
	file, end := c.file.durable, c.offset+int64(len(c.data))
	for from := c.offset; from < end; {
		unit := int64(pageSize)
		if r.IntN(4) == 0 {
			unit = sectorSize
		}
		to := min(end, (from/unit+1)*unit)
		switch {
		case r.Float64() < likelihood:
			file.write(c.data[from-c.offset:to-c.offset], from)
			kept = true
		case i.model == Strict && r.IntN(10) == 0:
			file.size = max(file.size, to)
		}
		from = to
	}
	return kept
}
