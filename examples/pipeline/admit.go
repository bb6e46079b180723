package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// admit returns nil if what the broker acknowledges is stored, as far as its settings show. It
// checks them after every connection to another server, or to the same one after a restart.
func (b *broker) admit(ctx context.Context) error {
	if !b.receives {
		return nil
	}
	id := b.conn.ConnectedServerId()
	if admitted := b.admitted.Load(); id != "" && admitted != nil && *admitted == id {
		return nil
	}
	select {
	case b.admitting <- struct{}{}:
		defer func() { <-b.admitting }()
	case <-ctx.Done():
		return ctx.Err()
	}
	stream, err := b.find(ctx)
	if err != nil {
		return err
	}
	info := stream.CachedInfo()
	if err := checkStream(info.Config); err != nil {
		return err
	}
	if len(b.monitors) > 0 {
		if err := b.checkServers(ctx, info.Cluster, id); err != nil {
			return notAdmitted{err}
		}
	} else if version := b.conn.ConnectedServerVersion(); cannotSync(version) {
		b.log.Warn("the broker acknowledges events before they are on its disk, and no setting changes that: a power failure loses them; "+
			"use nats-server 2.10 or later, with sync_interval: always", "version", version)
	}
	b.admitted.Store(&id)
	return nil
}

// cannotSync reports whether a version of nats-server has no sync_interval: always, as those before
// 2.10.
func cannotSync(version string) bool {
	var major, minor int
	_, err := fmt.Sscanf(version, "%d.%d.", &major, &minor)
	return err == nil && (major < 2 || major == 2 && minor < 10)
}

// notAdmitted is the reason why a broker that is available is not used. Its text has no password.
type notAdmitted struct{ error }

// brokerProblem returns a phrase for an error of check and admit.
func brokerProblem(err error) string {
	if reason := (notAdmitted{}); errors.As(err, &reason) {
		return reason.Error()
	}
	if missing, ok := errors.AsType[missingStream](err); ok {
		return missing.Error()
	}
	return "the broker is unavailable"
}

// checkStream returns an error for the first setting of a stream, which an operator may have
// created, with which events could be removed before they are applied, or acknowledged before they
// are stored.
func checkStream(c jetstream.StreamConfig) error {
	hasLimits := c.MaxMsgs > 0 || c.MaxBytes > 0 || c.MaxMsgsPerSubject > 0
	for _, rule := range []struct {
		holds   bool
		message string
	}{
		{c.Retention == jetstream.WorkQueuePolicy, "retention has to be workqueue"},
		{c.Storage == jetstream.FileStorage, "storage has to be file"},
		{c.PersistMode != jetstream.AsyncPersistMode, "persist_mode must not be async"},
		{!c.NoAck, "no_ack must not be set"},
		{c.MaxAge == 0, "max_age must not be set"},
		{c.Discard == jetstream.DiscardNew || !hasLimits, "discard has to be new"},
		{c.DiscardNewPerSubject || c.MaxMsgsPerSubject <= 0, "max_msgs_per_subject needs discard_new_per_subject"},
		{!c.AllowDirect, "allow_direct must not be set: a replica may not have what the leader has"},
	} {
		if !rule.holds {
			return notAdmitted{fmt.Errorf("the stream %s is not safe: %s", c.Name, rule.message)}
		}
	}
	return nil
}

// checkServers returns nil if every server that stores the stream is among the monitored ones, and
// all of these sync each write before they acknowledge it. connected is the ID of a server that is
// not in a cluster.
func (b *broker) checkServers(ctx context.Context, cluster *jetstream.ClusterInfo, connected string) error {
	var ids, names []string
	for _, address := range b.monitors {
		s, err := monitored(ctx, address)
		if err != nil {
			return fmt.Errorf("-nats-monitor: %s: %w", hostOnly(address), err)
		}
		if !s.JetStream.Config.SyncAlways {
			return fmt.Errorf("-nats-monitor: %s acknowledges events before they are on its disk: it needs sync_interval: always, and nats-server 2.10 or later (it is %q)",
				hostOnly(address), s.Version)
		}
		ids, names = append(ids, s.ID), append(names, s.Name)
	}
	if cluster == nil || cluster.Name == "" {
		if !slices.Contains(ids, connected) {
			return errors.New("-nats-monitor does not have the server that -nats connects to")
		}
	} else {
		stores := []string{cluster.Leader}
		for _, r := range cluster.Replicas {
			stores = append(stores, r.Name)
		}
		for _, name := range stores {
			if !slices.Contains(names, name) {
				return fmt.Errorf("-nats-monitor does not have the server %q, which stores the stream", name)
			}
		}
	}
	b.log.Info("the broker syncs each event before it acknowledges it", "servers", strings.Join(names, " "))
	return nil
}

// monitoredServer is what /varz of a server says. Servers before 2.10 have no sync_always.
type monitoredServer struct {
	ID        string `json:"server_id"`
	Name      string `json:"server_name"`
	Version   string `json:"version"`
	JetStream struct {
		Config struct {
			SyncAlways bool  `json:"sync_always"`
			MaxStore   int64 `json:"max_storage"` // bytes
		} `json:"config"`
		Stats struct {
			Store uint64 `json:"storage"` // bytes
		} `json:"stats"`
	} `json:"jetstream"`
}

// monitored asks a server at its monitoring URL. Errors do not have the URL, which may have a
// password.
func monitored(ctx context.Context, address string) (s monitoredServer, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(address, "/")+"/varz", nil)
	if err != nil {
		return s, errors.New("the URL is invalid")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, errors.New("no response")
	}
	defer resp.Body.Close()
	err = json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&s)
	if resp.StatusCode != http.StatusOK || err != nil || s.ID == "" {
		return s, fmt.Errorf("status %d, which is not that of a nats-server", resp.StatusCode)
	}
	return s, nil
}

func hostOnly(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
