package world

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labhealth/labhealth-go"
)

// aim is a sequence of faults on which a class of schedules concentrates, because faults at random
// rarely follow each other like this.
type aim int

const (
	aimNone aim = iota
	// aimInFlight kills the importer while an import is in flight whose order is created late, and
	// restarts it soon.
	aimInFlight
	// aimUnsynced kills a process before a sync, so that the next one finds data that only the
	// operating system has, and cuts the power after the next process has relied on it.
	aimUnsynced
)

// concentrate adapts a plan to its aim.
func (p *plan) concentrate(c choices) {
	if p.aim == aimNone {
		return
	}
	p.network, p.service, p.reconcile = 0, 0, false
	p.importOnly = p.aim == aimInFlight || c.below(2, "aim", 1) == 0
	p.events, p.lateWorker = min(p.events, 1), !p.importOnly
	if p.lateWorker {
		p.lastCut = 2
	}
}

// planAim chooses the faults of an aim that depend on the operations of a computer.
func (w *world) planAim() {
	if w.plan.aim != aimUnsynced {
		return
	}
	c := w.importer
	if !w.plan.importOnly {
		c = w.receiver
	}
	c.killSyncs = map[int]bool{}
	first := 1 + w.choices.below(8, "aim", 2)
	for n := range 1 + w.choices.below(3, "aim", 3) {
		c.killSyncs[first+n] = true
	}
}

// isKilledAtSync reports whether a process is to be killed before the sync that it is about to do.
// The importer then has a power cut a few operations later, the receiver when it acknowledges a
// repeated delivery: see [world.cutAfterRepetition]. The caller holds c.mu.
func (c *computer) isKilledAtSync() bool {
	if c.killSyncs == nil {
		return false
	}
	c.syncs++
	if !c.killSyncs[c.syncs] {
		return false
	}
	if w := c.world; c == w.importer && !c.killSyncs[c.syncs+1] {
		c.faults[c.operations+1+w.choices.below(10, "aim", 4)] = fault{powerCut, w.choices.below(2, "aim", 5) == 0}
	}
	return true
}

// cutAfterRepetition cuts the power of the receiver when it has acknowledged a repeated delivery.
func (w *world) cutAfterRepetition(attempt int) {
	if w.plan.aim != aimUnsynced || attempt == 1 || w.calm.Load() {
		return
	}
	if r := w.current(); r != nil && w.receiver.boots == 1 {
		r.process.kill(true)
	}
}

// killInFlight kills the importer while its first import is in flight, and returns when the order
// of the import is created.
func (w *world) killInFlight(sampleID string, n int) (delay time.Duration, ok bool) {
	if w.plan.aim != aimInFlight || n != 1 || sampleID != w.plan.records[0].SampleID || w.calm.Load() {
		return 0, false
	}
	p := w.importing.Load()
	time.AfterFunc(w.choices.within(5*time.Second, "aim", 6), func() { p.kill(false) })
	return w.choices.within(settle, "aim", 7), true
}

// restartAfter returns how long a process is down after it was killed or its power was cut.
func (w *world) restartAfter(subject string, n int) time.Duration {
	if w.plan.aim != aimNone {
		return w.choices.within(2*time.Second, subject, n)
	}
	return w.choices.within(40*time.Second, subject, n)
}

// callHeader has the number of a call. Its length is fixed, and choices do not depend on it: the
// order of concurrent calls depends on the scheduler.
const callHeader = "X-World-Call"

type callKey struct{}

// observeCalls numbers the imports of a process, and records what they say about their outcome.
func (w *world) observeCalls(p *process) labhealth.Option {
	return labhealth.WithCallObserver(labhealth.CallObserver{
		Start: func(ctx context.Context, _ string, header http.Header) context.Context {
			call := fmt.Sprintf("%08d", w.calls.Add(1))
			header.Set(callHeader, call)
			return context.WithValue(ctx, callKey{}, call)
		},
		End: func(ctx context.Context, c labhealth.Call) {
			call, ok := ctx.Value(callKey{}).(string)
			if ok && c.Op == "POST /v3/order/import" && !p.isDead() {
				w.claim(call, c.Outcome)
			}
		},
	})
}
