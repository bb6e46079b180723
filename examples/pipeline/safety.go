package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// checkStream returns an error if a setting of the stream, which an operator may have created, can
// remove deliveries before they are applied, or acknowledge them before they are stored.
func checkStream(c jetstream.StreamConfig) error {
	safe := c
	safe.Retention, safe.Storage, safe.Discard = jetstream.WorkQueuePolicy, jetstream.FileStorage, jetstream.DiscardNew
	safe.MaxAge, safe.MaxMsgsPerSubject = 0, min(c.MaxMsgsPerSubject, 0)
	safe.NoAck, safe.AllowDirect, safe.PersistMode = false, false, jetstream.DefaultPersistMode
	if !reflect.DeepEqual(c, safe) {
		return fmt.Errorf("the stream %s is not safe: it needs retention workqueue, storage file and discard new, and must not have "+
			"max_age, max_msgs_per_subject, no_ack, allow_direct or persist_mode async", c.Name)
	}
	return nil
}

// checkServers returns an error if a server that stores the stream does not sync each write before
// it acknowledges it, as far as this can be known.
func (b *broker) checkServers(ctx context.Context, cluster *jetstream.ClusterInfo) error {
	if b.monitors == "" {
		var major, minor int
		version := b.conn.ConnectedServerVersion()
		if _, err := fmt.Sscanf(version, "%d.%d.", &major, &minor); err == nil && (major < 2 || major == 2 && minor < 10) {
			b.log.Warn("the broker acknowledges deliveries before they are on its disk, and no setting changes that: a power failure loses them; "+
				"use nats-server 2.10 or later, with sync_interval: always", "version", version)
		}
		return nil
	}
	stores := []string{b.conn.ConnectedServerName()}
	if cluster != nil && cluster.Name != "" {
		stores = append(stores, cluster.Leader)
		for _, r := range cluster.Replicas {
			stores = append(stores, r.Name)
		}
	}
	return checkSynced(ctx, b.monitors, stores)
}

// checkSynced returns nil if all monitored servers sync each write, and those that store the stream
// are among them.
func checkSynced(ctx context.Context, monitors string, stores []string) error {
	var synced []string
	for address := range strings.SplitSeq(monitors, ",") {
		name, err := syncedServer(ctx, address)
		if err != nil {
			return fmt.Errorf("-nats-monitor: %w", err)
		}
		synced = append(synced, name)
	}
	for _, name := range stores {
		if !slices.Contains(synced, name) {
			return fmt.Errorf("-nats-monitor does not have the server %q, which stores the stream", name)
		}
	}
	return nil
}

// syncedServer asks a server at its monitoring URL, and returns its name if it syncs each write.
// Errors do not have the URL, which may have a password.
func syncedServer(ctx context.Context, address string) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(address, "/")+"/varz", nil)
	if err != nil {
		return "", errors.New("not a URL such as http://127.0.0.1:8222")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("%s does not respond", req.Host)
	}
	defer resp.Body.Close()
	var s struct {
		Name      string `json:"server_name"`
		Version   string `json:"version"`
		JetStream struct {
			Config struct {
				SyncAlways bool `json:"sync_always"` // versions before 2.10 do not have it
			} `json:"config"`
		} `json:"jetstream"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&s)
	switch {
	case resp.StatusCode != http.StatusOK || err != nil || s.Name == "":
		return "", fmt.Errorf("%s responds with status %d, and is not a nats-server", req.Host, resp.StatusCode)
	case !s.JetStream.Config.SyncAlways:
		return "", fmt.Errorf("%s acknowledges deliveries before they are on its disk: it needs sync_interval: always, and nats-server 2.10 or later (it is %q)",
			req.Host, s.Version)
	}
	return s.Name, nil
}
