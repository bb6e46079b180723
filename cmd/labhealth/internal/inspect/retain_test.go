package inspect

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// What is older than Keep must be gone from the file, not only from the tables.
func TestRetention(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "deliveries.db")
	var offset atomic.Int64
	i := open(t, Config{File: file, Keep: 24 * time.Hour, Now: func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }})
	old := uuid.New()
	for n := range 300 {
		body := strings.ReplaceAll(glucoseBody(old, time.Now().Add(time.Duration(n)*time.Minute), 5.1), "patient-17", "Zebulon Quarterman")
		deliver(i, request(t, fmt.Sprint("msg_old", n), body))
	}
	deliver(i, request(t, "msg_order", orderBody("received.walk_in_test.ordered")))
	deliver(i, request(t, "msg_dead", `{"event_type":"labtest.order.updated","client_user_id":"Zebulon Quarterman","data":{"id":7}}`))
	await(t, i, 300)
	await(t, i, 301)
	await(t, i, 302)
	kept := uuid.New()
	offset.Store(int64(25 * time.Hour))
	later := request(t, "msg_kept", glucoseBody(kept, time.Now(), 6))
	signAt(t, later, "msg_kept", glucoseBody(kept, time.Now(), 6), time.Now().Add(25*time.Hour))
	if got := deliver(i, later); got != http.StatusNoContent {
		t.Fatal(got)
	}
	await(t, i, 303)
	before := fileSize(t, file)
	if err := i.retain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, _ := i.Count(t.Context(), Filter{}); n != 1 {
		t.Errorf("%d deliveries are left", n)
	}
	if n, _ := i.Count(t.Context(), Filter{Query: "glucose"}); n != 1 {
		t.Errorf("%d deliveries are found", n)
	}
	if series, err := i.Store.Series(t.Context(), old); err != nil || len(series) != 0 {
		t.Errorf("series %v, %v", series, err)
	}
	if series, err := i.Store.Series(t.Context(), kept); err != nil || len(series) != 1 {
		t.Errorf("series %v, %v", series, err)
	}
	if _, ok, _ := i.Store.Order(t.Context(), testOrder); ok {
		t.Error("the order is stored")
	}
	if after := fileSize(t, file); after > before/2 {
		t.Errorf("the file has %d bytes, and had %d", after, before)
	}
	all, _ := filepath.Glob(file + "*")
	for _, name := range all {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"Zebulon", "zebulon", "Quarterman", "quarterman", old.String(), old.String()[24:], testOrder.String(), "msg_order"} {
			if bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s has %q", filepath.Base(name), secret)
			}
		}
	}
}

func fileSize(t *testing.T, file string) (size int64) {
	t.Helper()
	all, _ := filepath.Glob(file + "*")
	for _, name := range all {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return size
}

// A stranger must not fill the disk.
func TestRejectedAreLimited(t *testing.T) {
	t.Parallel()
	i := open(t, Config{})
	deliver(i, request(t, "msg_1", glucoseBody(testUser, time.Now(), 5)))
	for range maxRejected + 20 {
		deliver(i, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("forged")))
	}
	if n, err := i.Count(t.Context(), Filter{Is: "rejected"}); err != nil || n != maxRejected {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := i.Count(t.Context(), Filter{}); err != nil || n != maxRejected+1 {
		t.Errorf("%d, %v", n, err)
	}
	large := strings.Repeat("x", maxRejectedBody)
	for range maxRejectedBytes/maxRejectedBody + 5 {
		deliver(i, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(large)))
	}
	if n, err := i.Count(t.Context(), Filter{Is: "rejected"}); err != nil || n > maxRejectedBytes/maxRejectedBody {
		t.Errorf("%d, %v", n, err)
	}
	if got := deliver(i, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", maxBody+1)))); got != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", got)
	}
	list, err := i.List(t.Context(), Filter{}, 1)
	if err != nil || list[0].StatusCode != 413 || list[0].Verdict != Rejected {
		t.Errorf("%+v, %v", list, err)
	}
}
