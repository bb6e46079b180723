package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// This file uses the address of the program, the signing scheme and the names of the tables, and
// nothing of the library.

// sentBy posts a body as the service would, and returns the status.
func sentBy(t *testing.T, client *http.Client, address, id string, body []byte) int {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(testSecret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, now, body)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/events", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", now)
	r.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

type object = map[string]any

// change makes one change of schema somewhere in a value. Numbers from 1e9 on are markers: they
// move and change form, and stay.
func change(r *rand.Rand, v any) any {
	pick := func(all ...any) any { return all[r.IntN(len(all))] }
	switch v := v.(type) {
	case object:
		return changeField(r, v)
	case []any:
		if len(v) > 0 {
			for range 1 + r.IntN(len(v)) {
				i := r.IntN(len(v))
				v[i] = change(r, v[i])
			}
		}
		if r.IntN(8) == 0 {
			return object{"items": v}
		}
	case float64, int:
		return pick(fmt.Sprint(v), []any{v}, object{"amount": v, "unit": "u"}, v, v)
	case string:
		return pick(v+"Z", " "+v, "", []any{v}, object{"text": v}, 1740830400, v)
	}
	return v
}

// changeField makes one change in a field of an object.
func changeField(r *rand.Rand, v object) any {
	pick := func(all ...any) any { return all[r.IntN(len(all))] }
	names := make([]string, 0, len(v))
	for name := range v {
		if name != "event_type" || r.IntN(8) == 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return v
	}
	slices.Sort(names)
	name := names[r.IntN(len(names))]
	text, _ := json.Marshal(v[name])
	hasMarker := bytes.Contains(text, []byte("10000"))
	switch r.IntN(6) {
	case 0:
		v[name+"_v2"] = v[name]
		delete(v, name)
	case 1:
		if !hasMarker {
			delete(v, name)
		}
	case 2:
		if !hasMarker && name != "event_type" {
			v[name] = pick(nil, true, 7, 1.5, "", "text", []any{}, object{}, []any{1, "x"}, object{"id": 7})
		}
	case 3:
		v["new"] = pick(nil, 1, "x", object{"a": []any{1}})
	default:
		was := v[name]
		v[name] = change(r, was)
		if _, isText := v[name].(string); isText && name == "event_type" {
			v[name] = was // events of an unknown type are stored nowhere
		}
	}
	return v
}

// firstMarker is a number with ten digits, which occurs nowhere else.
const firstMarker = 1_000_000_000

// changedEvent returns event n with the markers from marker on, in a changed schema, and the next
// marker.
func changedEvent(t *testing.T, r *rand.Rand, n, marker int) (body []byte, next int) {
	event := object{"user_id": fmt.Sprintf("00000000-0000-4000-8000-%012d", n%7), "team_id": "00000000-0000-4000-8000-0000000000aa"}
	if r.IntN(4) == 0 {
		event["event_type"] = "daily.data." + []string{"sleep", "activity"}[r.IntN(2)] + ".created"
		event["data"] = object{"id": fmt.Sprintf("00000000-0000-4000-8001-%012d", n), "steps": marker, "calendar_date": "2025-03-01",
			"source": object{"slug": "ring"}}
		marker++
	} else {
		var list []any
		for range 1 + r.IntN(6) {
			at := time.Date(2020, 1, 1, 0, 0, marker-firstMarker, 0, time.UTC).Format(time.RFC3339)
			sample := object{"timestamp": at, "unit": "bpm", "value": marker, "timezone_offset": 3600, "type": "automatic"}
			if r.IntN(5) == 0 {
				sample["start"], sample["end"] = at, at
			}
			list = append(list, sample)
			marker++
		}
		event["event_type"] = "daily.data.heartrate.updated"
		event["data"] = object{"source": object{"slug": "ring", "provider": "ring", "type": "watch"}, "data": list}
	}
	var changed any = event
	for range r.IntN(4) {
		changed = change(r, changed)
	}
	body, err := json.Marshal(changed)
	if err != nil {
		t.Fatal(err)
	}
	switch r.IntN(20) {
	case 0:
		body = body[:len(body)-1] // not JSON, but with the markers
	case 1:
		body = append([]byte("\xef\xbb\xbf"), body...)
	case 2:
		body = append(body, '\n', '{', '}')
	}
	return body, marker
}

// storedMarkers returns the tables that contain each marker.
func storedMarkers(t *testing.T, at *place, next int) map[int]string {
	stored := map[int]string{}
	for table, query := range map[string]string{
		"samples":      "select concat_ws(' ', cast(value as bigint), text) from labhealth_samples",
		"summaries":    "select text from labhealth_summaries",
		"dead letters": "select body from labhealth_dead_letters",
	} {
		rows, err := at.db.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var content []byte
			if err := rows.Scan(&content); err != nil {
				t.Fatal(err)
			}
			for i := 0; i+10 <= len(content); i++ {
				if m, err := strconv.Atoi(string(content[i : i+10])); err == nil && m >= firstMarker && m < next {
					stored[m] += table + ","
				}
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return stored
}

// However the schema of wearable data changes, what was acknowledged is in the tables: among the
// samples, the summaries or the dead letters.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	onDatabases(t, func(t *testing.T, at *place) {
		p := ready(t, at.args("all")...)
		client := newClient()
		defer client.CloseIdleConnections()
		r := rand.New(rand.NewPCG(41, 1))
		marker := firstMarker
		sent := map[int]string{} // bodies by marker
		for n := range 400 {
			body, next := changedEvent(t, r, n, marker)
			for ; marker < next; marker++ {
				sent[marker] = string(body)
			}
			if status := sentBy(t, client, p.events, fmt.Sprintf("msg_%d", n), body); status != 204 {
				t.Errorf("status %d for %s", status, body)
			}
		}
		at.drained(t)

		stored, count := storedMarkers(t, at, marker), map[string]int{}
		for m, body := range sent {
			switch {
			case stored[m] == "":
				t.Errorf("%d is lost: %s", m, body)
			case strings.Contains(stored[m], "dead"):
				count["dead letters"]++
			default:
				count["stored"]++
			}
		}
		t.Logf("%d values: %v", len(sent), count)
		if count["stored"] < 100 || count["dead letters"] < 100 {
			t.Errorf("%v: too few of one kind", count)
		}
	})
}
