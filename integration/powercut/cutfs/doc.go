// Package cutfs is a file system in memory whose power can be cut. It shows what a program that was
// killed together with its machine finds after a restart, which killing the program alone does not.
//
// A [Disk] is mounted with FUSE. It keeps what programs see apart from what is durable, and the
// changes between the two. A sync makes changes durable, as the [Model] says. [Disk.Off] cuts the
// power, and [Disk.On] gives it back with one of the contents that the cut may have left behind,
// which the seed and the [Loss] select:
//
//	d := cutfs.New(cutfs.Strict)
//	unmount, err := d.Mount(dir) // after an error, skip the test
//	…
//	d.CutAfter(100)              // the power goes before the 100th change or sync
//	start(dir)                   // programs that use the file system
//	<-d.Gone()
//	image := d.Off()
//	kill()                       // and wait until they are gone
//	for seed := range uint64(3) {
//		d.On(image, seed, cutfs.Any)
//		…                    // start the programs again, compare, kill them
//	}
//
// The process that serves a Disk must not map its files into memory: a page fault would wait for
// itself. Programs that do, such as SQLite, must be processes of their own.
//
// # Limits
//
// Owner, mode and times are durable at once. Sectors are written as a whole or not at all, and do
// not rot. No change becomes durable by age: [Subset] stands for that. A sync orders everything
// before it before everything after it.
package cutfs
