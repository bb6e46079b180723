package cutfs

import (
	"slices"
	"time"
)

// node is a file, a directory or a symbolic link.
type node struct {
	id, lookups    uint64
	mode, uid, gid uint32 // durable at once, like modified
	modified       time.Time
	target         string // of a symbolic link

	// Of a file.
	live, durable *content
	pending       []*change // of the content: not synced

	// Of a directory.
	entries, durableEntries map[string]*node
}

// change is an operation that is not durable yet: a write, a truncation, or a change of names.
type change struct {
	number    int64 // in the order of all changes
	file      *node // nil for a change of names
	offset    int64
	data      []byte // written at offset
	truncates bool   // to offset
	names     []nameChange
}

// nameChange gives a node a name, or removes the name if the node is nil. A rename is two of them,
// which become durable together.
type nameChange struct {
	dir  *node
	name string
	node *node
}

// apply makes a change durable.
func (c *change) apply() {
	switch {
	case c.truncates:
		c.file.durable.truncate(c.offset)
	case c.file != nil:
		c.file.durable.write(c.data, c.offset)
	}
	for _, n := range c.names {
		n.applyTo(n.dir.durableEntries)
	}
}

func (n *nameChange) applyTo(entries map[string]*node) {
	if n.node == nil {
		delete(entries, n.name)
	} else {
		entries[n.name] = n.node
	}
}

// supersede removes what c decides about names from changes that were made before it and become
// durable after it. Otherwise a file would return that was moved to another directory.
func (c *change) supersede(earlier []*change) {
	for _, e := range earlier {
		e.names = slices.DeleteFunc(e.names, func(old nameChange) bool {
			return slices.ContainsFunc(c.names, func(n nameChange) bool { return n.dir == old.dir && n.name == old.name })
		})
	}
}

// write changes a file and keeps the change. The caller holds d.mu, as for the other methods below.
func (d *Disk) write(n *node, data []byte, offset int64) {
	n.live.write(data, offset)
	n.modified = time.Now()
	d.keepContent(&change{file: n, offset: offset, data: slices.Clone(data)})
}

func (d *Disk) truncate(n *node, size int64) {
	n.live.truncate(size)
	n.modified = time.Now()
	d.keepContent(&change{file: n, offset: size, truncates: true})
}

func (d *Disk) keepContent(c *change) {
	d.changes++
	c.number = d.changes
	c.file.pending = append(c.file.pending, c)
	d.unsynced[c.file] = true
}

func (d *Disk) changeNames(names ...nameChange) {
	for _, n := range names {
		n.applyTo(n.dir.entries)
	}
	d.changes++
	d.names = append(d.names, &change{number: d.changes, names: names})
}

// sync makes durable what the model promises for a sync of the node.
func (d *Disk) sync(n *node) {
	if d.Lies {
		return
	}
	if n.live != nil {
		d.syncContent(n)
	}
	if n.live == nil || d.model == Ext4 {
		d.syncNames(n)
	}
}

func (d *Disk) syncContent(n *node) {
	for _, c := range n.pending {
		c.apply()
	}
	n.pending = nil
	delete(d.unsynced, n)
}

// syncNames makes changes of names durable: with Strict those in the directory, with Ext4 all.
func (d *Disk) syncNames(dir *node) {
	var rest []*change
	for _, c := range d.names {
		inDir := slices.ContainsFunc(c.names, func(n nameChange) bool { return n.dir == dir })
		if d.model == Strict && !inDir {
			rest = append(rest, c)
			continue
		}
		if d.model == Ext4 {
			d.syncReplacements(c)
		}
		c.supersede(rest)
		c.apply()
	}
	d.names = rest
}

// syncReplacements syncs the content of files that replace others, as ext4 does.
func (d *Disk) syncReplacements(c *change) {
	for _, n := range c.names {
		old := n.dir.durableEntries[n.name]
		if n.node != nil && n.node.live != nil && old != nil && old != n.node {
			d.syncContent(n.node)
		}
	}
}
