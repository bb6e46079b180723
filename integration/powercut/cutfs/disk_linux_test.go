package cutfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go/integration/powercut/cutfs"
)

// mounted is a mounted disk with operations that must succeed.
type mounted struct {
	*cutfs.Disk
	t   *testing.T
	dir string
}

func mount(t *testing.T, d *cutfs.Disk) *mounted {
	t.Helper()
	m := &mounted{d, t, t.TempDir()}
	unmount, err := d.Mount(m.dir)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := unmount(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func (m *mounted) path(name string) string { return filepath.Join(m.dir, name) }

func (m *mounted) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// write writes to a file, which it creates if necessary.
func (m *mounted) write(name, data string, offset int64) {
	m.t.Helper()
	m.must(m.tryWrite(name, data, offset))
}

func (m *mounted) tryWrite(name, data string, offset int64) error {
	f, err := os.OpenFile(m.path(name), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(data), offset)
	return errors.Join(err, f.Close())
}

// sync syncs files and directories.
func (m *mounted) sync(names ...string) {
	m.t.Helper()
	for _, name := range names {
		m.must(m.trySync(name))
	}
}

func (m *mounted) trySync(name string) error {
	f, err := os.Open(m.path(name))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (m *mounted) rename(from, to string) {
	m.t.Helper()
	m.must(os.Rename(m.path(from), m.path(to)))
}

func (m *mounted) mkdir(name string) {
	m.t.Helper()
	m.must(os.Mkdir(m.path(name), 0o700))
}

func (m *mounted) remove(name string) {
	m.t.Helper()
	m.must(os.Remove(m.path(name)))
}

func (m *mounted) truncate(name string, size int64) {
	m.t.Helper()
	m.must(os.Truncate(m.path(name), size))
}

// files returns the content of all files. A directory without files has a content, too.
func (m *mounted) files() map[string]string {
	m.t.Helper()
	found := map[string]string{}
	m.must(filepath.WalkDir(m.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == m.dir {
			return err
		}
		name, err := filepath.Rel(m.dir, path)
		if err != nil || entry.IsDir() {
			found[name+"/"] = ""
			return err
		}
		content, err := os.ReadFile(path)
		found[name] = string(content)
		return err
	}))
	return found
}

// afterCut returns the files that a cut leaves behind.
func (m *mounted) afterCut(image *cutfs.Image, seed uint64, loss cutfs.Loss) map[string]string {
	m.t.Helper()
	m.On(image, seed, loss)
	return m.files()
}

// What is durable when nothing is kept that was not synced.
func TestSync(t *testing.T) {
	both := []cutfs.Model{cutfs.Strict, cutfs.Ext4}
	strict, ext4 := both[:1], both[1:]
	type files = map[string]string
	for _, test := range []struct {
		name   string
		models []cutfs.Model
		do     func(*mounted)
		want   files
	}{
		{"nothing is synced", both, func(m *mounted) { m.write("a", "1", 0) }, files{}},
		{"the file is synced", strict, func(m *mounted) { m.write("a", "1", 0); m.sync("a") }, files{}},
		{"the file is synced", ext4, func(m *mounted) { m.write("a", "1", 0); m.sync("a") }, files{"a": "1"}},
		{"the directory is synced", both, func(m *mounted) { m.write("a", "1", 0); m.sync("") }, files{"a": ""}},
		{"both are synced", both, func(m *mounted) { m.write("a", "1", 0); m.sync("a", "") }, files{"a": "1"}},
		{"another file is synced", strict, func(m *mounted) { m.write("a", "1", 0); m.write("b", "2", 0); m.sync("b") }, files{}},
		{"another file is synced", ext4, func(m *mounted) { m.write("a", "1", 0); m.write("b", "2", 0); m.sync("b") }, files{"a": "", "b": "2"}},
		{"overwritten", both, func(m *mounted) { m.write("a", "111", 0); m.sync("a", ""); m.write("a", "2", 1) }, files{"a": "111"}},
		{"overwritten and synced", both, func(m *mounted) { m.write("a", "111", 0); m.sync(""); m.write("a", "2", 1); m.sync("a") }, files{"a": "121"}},
		{"appended", both, func(m *mounted) { m.write("a", "1", 0); m.sync("a", ""); m.write("a", "2", 1) }, files{"a": "1"}},
		{"truncated", both, func(m *mounted) { m.write("a", "12", 0); m.sync("a", ""); m.truncate("a", 1) }, files{"a": "12"}},
		{"truncated and synced", both, func(m *mounted) { m.write("a", "12", 0); m.sync(""); m.truncate("a", 1); m.sync("a") }, files{"a": "1"}},
		{"truncated and extended", both, func(m *mounted) {
			m.write("a", "12", 0)
			m.truncate("a", 1)
			m.truncate("a", 3)
			m.sync("a", "")
		}, files{"a": "1\x00\x00"}},
		{"renamed", both, func(m *mounted) { m.write("a", "1", 0); m.sync("a", ""); m.rename("a", "b") }, files{"a": "1"}},
		{"renamed and synced", both, func(m *mounted) { m.write("a", "1", 0); m.sync("a", ""); m.rename("a", "b"); m.sync("") }, files{"b": "1"}},
		{"a new file replaces another one", strict, func(m *mounted) {
			m.write("a", "1", 0)
			m.sync("a", "")
			m.write("b", "2", 0)
			m.rename("b", "a")
			m.sync("")
		}, files{"a": ""}},
		{"a new file replaces another one", ext4, func(m *mounted) {
			m.write("a", "1", 0)
			m.sync("a", "")
			m.write("b", "2", 0)
			m.rename("b", "a")
			m.sync("")
		}, files{"a": "2"}},
		{"a synced file replaces another one", both, func(m *mounted) {
			m.write("a", "1", 0)
			m.sync("a", "")
			m.write("b", "2", 0)
			m.sync("b", "")
			m.rename("b", "a")
		}, files{"a": "1", "b": "2"}},
		{"removed", both, func(m *mounted) { m.write("a", "1", 0); m.sync("a", ""); m.remove("a") }, files{"a": "1"}},
		{"removed and synced", both, func(m *mounted) { m.write("a", "1", 0); m.sync("a", ""); m.remove("a"); m.sync("") }, files{}},
		{"in a new directory", strict, func(m *mounted) { m.mkdir("d"); m.write("d/a", "1", 0); m.sync("d/a", "d") }, files{}},
		{"in a new directory", ext4, func(m *mounted) { m.mkdir("d"); m.write("d/a", "1", 0); m.sync("d/a") }, files{"d/": "", "d/a": "1"}},
		{"in a new directory that is synced", both, func(m *mounted) { m.mkdir("d"); m.write("d/a", "1", 0); m.sync("d/a", "d", "") }, files{"d/": "", "d/a": "1"}},
		{"moved, the target is synced", both, func(m *mounted) {
			m.mkdir("d")
			m.mkdir("e")
			m.write("d/a", "1", 0)
			m.sync("d/a", "d", "")
			m.rename("d/a", "e/a")
			m.sync("e")
		}, files{"d/": "", "e/": "", "e/a": "1"}},
		{"a new file is moved, the target is synced first", both, func(m *mounted) {
			m.mkdir("d")
			m.mkdir("e")
			m.write("d/a", "1", 0)
			m.rename("d/a", "e/a")
			m.sync("e/a", "e", "d", "")
		}, files{"d/": "", "e/": "", "e/a": "1"}},
		{"a second name", both, func(m *mounted) {
			m.write("a", "1", 0)
			m.must(os.Link(m.path("a"), m.path("b")))
			m.sync("")
			m.write("b", "2", 0)
			m.sync("a")
		}, files{"a": "2", "b": "2"}},
		{"a symbolic link", both, func(m *mounted) {
			m.write("a", "1", 0)
			m.must(os.Symlink("a", m.path("b")))
			m.sync("a", "")
		}, files{"a": "1", "b": "1"}},
		{"written with O_SYNC", both, func(m *mounted) {
			f, err := os.OpenFile(m.path("a"), os.O_CREATE|os.O_WRONLY|os.O_SYNC, 0o600)
			m.must(err)
			m.sync("")
			_, err = f.WriteString("1")
			m.must(errors.Join(err, f.Close()))
		}, files{"a": "1"}},
	} {
		for _, model := range test.models {
			t.Run(test.name+"/"+model.String(), func(t *testing.T) {
				m := mount(t, cutfs.New(model))
				test.do(m)
				image := m.Off()
				if diff := cmp.Diff(test.want, m.afterCut(image, 1, cutfs.Drop)); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(test.want, m.afterCut(m.Save(), 1, cutfs.Drop)); diff != "" {
					t.Error("saved:", diff)
				}
			})
		}
	}
}

// outcomes returns the different contents that a cut leaves behind, and how often.
func outcomes(m *mounted, loss cutfs.Loss) map[string]int {
	image, all := m.Off(), map[string]int{}
	for seed := range uint64(300) {
		files := m.afterCut(image, seed, loss)
		var text []string
		for _, name := range slices.Sorted(maps.Keys(files)) {
			text = append(text, fmt.Sprintf("%s=%s", name, runs(files[name])))
		}
		key := strings.Join(text, " ")
		all[key]++
		m.On(image, seed, loss)
		if again := m.files(); !maps.Equal(again, files) {
			m.t.Errorf("seed %d leaves %q once, and %q again", seed, files, again)
		}
	}
	return all
}

// runs abbreviates a text to one character for each sector, if it is that long.
func runs(text string) string {
	const sector = 512
	if len(text) < sector {
		return text
	}
	var short strings.Builder
	for from := 0; from < len(text); from += sector {
		part := text[from:min(len(text), from+sector)]
		if strings.Count(part, part[:1]) != len(part) {
			return "a sector is torn"
		}
		short.WriteString(strings.ReplaceAll(part[:1], "\x00", "0"))
	}
	return short.String()
}

func keys(all map[string]int) []string { return slices.Sorted(maps.Keys(all)) }

// The first changes are kept, in the order in which they were made in all files.
func TestPrefix(t *testing.T) {
	m := mount(t, cutfs.New(cutfs.Strict))
	m.write("a", "", 0)
	m.write("b", "", 0)
	m.sync("")
	m.write("a", "1", 0)
	m.write("b", "2", 0)
	m.write("a", "3", 1)
	want := []string{"a= b=", "a=1 b=", "a=1 b=2", "a=13 b=2"}
	if diff := cmp.Diff(want, keys(outcomes(m, cutfs.Prefix))); diff != "" {
		t.Error(diff)
	}
}

// A write is torn between sectors, and never within one.
func TestTornPrefix(t *testing.T) {
	m := mount(t, cutfs.New(cutfs.Strict))
	m.write("a", strings.Repeat("1", 2048), 0)
	m.sync("a", "")
	m.write("a", strings.Repeat("2", 2048), 0)
	want := []string{"a=1111", "a=2111", "a=2211", "a=2221", "a=2222"}
	if diff := cmp.Diff(want, keys(outcomes(m, cutfs.Prefix))); diff != "" {
		t.Error(diff)
	}
}

// Pages and, of some pages, sectors are kept in any order.
func TestTornSubset(t *testing.T) {
	m := mount(t, cutfs.New(cutfs.Ext4))
	m.write("a", strings.Repeat("1", 3*4096), 0)
	m.sync("a", "")
	m.write("a", strings.Repeat("2", 3*4096), 0)
	old, written := strings.Repeat("1", 8), strings.Repeat("2", 8)
	all := outcomes(m, cutfs.Subset)
	for _, want := range []string{old + old + old, written + written + written, old + old + written, old + written + old, written + old + written} {
		if all["a="+want] == 0 {
			t.Errorf("%s was never left behind", want)
		}
	}
	torn := 0
	for key, n := range all {
		content := strings.TrimPrefix(key, "a=")
		if len(content) != 24 {
			t.Fatal(key)
		}
		for page := range slices.Chunk([]byte(content), 8) {
			if strings.Contains(string(page), "1") && strings.Contains(string(page), "2") {
				torn += n
			}
		}
	}
	if torn == 0 {
		t.Error("no page is torn")
	}
}

// A file that has grown can have its new length without the content, unless the model is Ext4.
func TestLengthWithoutContent(t *testing.T) {
	for _, test := range []struct {
		model cutfs.Model
		want  []string
	}{
		{cutfs.Strict, []string{"a=1", "a=12", "a=1\x00"}},
		{cutfs.Ext4, []string{"a=1", "a=12"}},
	} {
		m := mount(t, cutfs.New(test.model))
		m.write("a", "1", 0)
		m.sync("a", "")
		m.write("a", "2", 1)
		got := keys(outcomes(m, cutfs.Subset))
		slices.Sort(test.want)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Error(test.model, diff)
		}
	}
}

// With Ext4 the first names are kept, and with Strict any of them.
func TestNames(t *testing.T) {
	for _, test := range []struct {
		model cutfs.Model
		want  []string
	}{
		{cutfs.Strict, []string{"", "a=", "a= b=", "a= b= c=", "a= c=", "b=", "b= c=", "c="}},
		{cutfs.Ext4, []string{"", "a=", "a= b=", "a= b= c="}},
	} {
		m := mount(t, cutfs.New(test.model))
		for _, name := range []string{"a", "b", "c"} {
			m.write(name, "", 0)
		}
		if diff := cmp.Diff(test.want, keys(outcomes(m, cutfs.Subset))); diff != "" {
			t.Error(test.model, diff)
		}
	}
}

// A rename keeps the content under one of its names, also if any changes are kept.
func TestRenameIsAtomic(t *testing.T) {
	m := mount(t, cutfs.New(cutfs.Strict))
	m.write("a", "1", 0)
	m.write("b", "2", 0)
	m.sync("a", "b", "")
	m.rename("b", "a")
	if diff := cmp.Diff([]string{"a=1 b=2", "a=2"}, keys(outcomes(m, cutfs.Subset))); diff != "" {
		t.Error(diff)
	}
}

// The power goes before the operation that CutAfter names, and nothing works until it is back.
func TestCutAfter(t *testing.T) {
	m := mount(t, cutfs.New(cutfs.Strict))
	m.write("a", "", 0)
	m.sync("")
	before, gone := m.Operations(), m.Gone()
	m.CutAfter(4)
	m.write("a", "1", 0)
	m.sync("a")
	m.write("a", "2", 0)
	if n := m.Operations() - before; n != 3 || !m.IsOn() {
		t.Errorf("%d operations, on: %v", n, m.IsOn())
	}
	if err := m.trySync("a"); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	<-gone
	for range 2 {
		if err := m.tryWrite("a", "3", 0); !errors.Is(err, syscall.EIO) || m.IsOn() {
			t.Error(err)
		}
	}
	image := m.Off()
	if kept, lost := m.On(image, 1, cutfs.Drop); kept != 0 || lost != 1 {
		t.Errorf("%d changes are kept, %d are lost", kept, lost)
	}
	if diff := cmp.Diff(map[string]string{"a": "1"}, m.files()); diff != "" || !m.IsOn() {
		t.Error(diff)
	}
	m.write("a", "4", 0)
	m.sync("a")
	if diff := cmp.Diff(map[string]string{"a": "4"}, m.afterCut(m.Off(), 1, cutfs.Drop)); diff != "" {
		t.Error(diff)
	}
}

// A disk that lies loses what was synced.
func TestLies(t *testing.T) {
	d := cutfs.New(cutfs.Strict)
	d.Lies = true
	m := mount(t, d)
	m.write("a", "1", 0)
	m.sync("a", "")
	if diff := cmp.Diff(map[string]string{}, m.afterCut(m.Off(), 1, cutfs.Drop)); diff != "" {
		t.Error(diff)
	}
}

// Save makes everything durable, as a template for other disks.
func TestSave(t *testing.T) {
	m := mount(t, cutfs.New(cutfs.Strict))
	m.mkdir("d")
	m.write("d/a", "1", 0)
	template := m.Save()
	m.write("d/a", "2", 0)
	m.sync("d/a")
	other := mount(t, cutfs.New(cutfs.Strict))
	for range 2 {
		if diff := cmp.Diff(map[string]string{"d/": "", "d/a": "1"}, other.afterCut(template, 1, cutfs.Drop)); diff != "" {
			t.Error(diff)
		}
		other.write("d/a", "3", 0)
		other.sync("d/a")
	}
}

// An operation that is held has no effect, and others go on.
func TestHold(t *testing.T) {
	m := mount(t, cutfs.New(cutfs.Strict))
	m.write("a", "", 0)
	m.sync("a", "")
	reached := m.Hold(2, cutfs.Sync)
	m.write("a", "1", 0)
	m.sync("", "a")
	m.write("a", "2", 0)
	failed := make(chan error)
	go func() { failed <- m.trySync("a") }()
	<-reached
	m.write("b", "3", 0)
	m.sync("b", "")
	m.Release()
	if err := <-failed; !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	image := m.Off()
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "3"}, m.afterCut(image, 1, cutfs.Drop)); diff != "" {
		t.Error(diff)
	}

	// A cut ends it too, and without kinds each operation counts.
	reached = m.Hold(1)
	go func() { failed <- m.tryWrite("a", "4", 0) }()
	<-reached
	image = m.Off()
	if err := <-failed; !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "3"}, m.afterCut(image, 1, cutfs.Prefix)); diff != "" {
		t.Error(diff)
	}
}
