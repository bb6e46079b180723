package cutfs

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A content does what a slice of bytes does, and a clone does not change with it.
func TestContent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	c, want := newContent(), []byte(nil)
	check := func(c *content, want []byte) {
		t.Helper()
		got := make([]byte, len(want)+10)
		if got = got[:c.read(got, 0)]; !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, want %d", len(got), len(want))
		}
		from := r.IntN(len(want) + 1)
		part := make([]byte, r.IntN(2*pageSize))
		if part = part[:c.read(part, int64(from))]; !bytes.Equal(part, want[from:from+len(part)]) {
			t.Fatalf("another part at %d", from)
		}
	}
	for range 2000 {
		offset := r.IntN(5 * pageSize)
		switch r.IntN(4) {
		case 0:
			c.truncate(int64(offset))
			want = append(want, make([]byte, max(0, offset-len(want)))...)[:offset]
		case 1:
			cloned, before := c.clone(), bytes.Clone(want)
			c.write([]byte{1}, int64(offset))
			check(cloned, before)
			cloned.write([]byte{2}, int64(offset))
			c.write([]byte{0}, 0)
			c, want = cloned, append(before, make([]byte, max(0, offset+1-len(before)))...)
			want[offset] = 2
		default:
			data := bytes.Repeat([]byte{byte(1 + r.IntN(255))}, 1+r.IntN(2*pageSize))
			c.write(data, int64(offset))
			want = append(want, make([]byte, max(0, offset+len(data)-len(want)))...)
			copy(want[offset:], data)
		}
		check(c, want)
	}
}
