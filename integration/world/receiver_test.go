package world

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
	"github.com/labhealth/labhealth-go/webhooks/sqlstore"
)

const databasePath = "/labhealth.db"

// template is an empty database with its tables.
var template = sync.OnceValues(func() (content, error) {
	registerVFS()
	w := newWorld(0)
	p := newComputer(w, "template").start()
	m := newMount(p)
	defer m.remove()
	db, err := sql.Open(driverName, m.dataSource(databasePath))
	if err != nil {
		return content{}, err
	}
	store, err := sqlstore.Open(db, sqlstore.SQLite)
	if err == nil {
		err = store.Migrate(context.Background())
	}
	if err == nil {
		_, err = db.Exec(`CREATE TABLE world_applied (id text NOT NULL, received integer NOT NULL)`)
	}
	err = errors.Join(err, db.Close()) // with a checkpoint
	if err != nil {
		return content{}, err
	}
	return p.computer.disk.files[databasePath].clone(), nil
})

// receiver is the process that receives events.
type receiver struct {
	world   *world
	process *process
	mount   *mount
	db      *sql.DB
	store   *sqlstore.Store
}

// runReceiver runs and restarts the receiver until the end of the schedule.
func (w *world) runReceiver() {
	for n := 1; ; n++ {
		p := w.receiver.start()
		r, err := w.startReceiver(p)
		if err != nil {
			if !p.isDead() && !w.hadDiskError() {
				w.report("the store cannot be opened: " + err.Error())
				return
			}
			p.kill(false)
		}
		w.setRunning(r)
		<-p.ctx.Done()
		w.setRunning(nil)
		w.dying.Go(func() { r.close() })
		if w.ended.Load() {
			return
		}
		if !w.calm.Load() {
			time.Sleep(w.restartAfter("restart receiver", n))
		}
	}
}

func (w *world) startReceiver(p *process) (*receiver, error) {
	r := &receiver{world: w, process: p, mount: newMount(p)}
	var err error
	if r.db, err = sql.Open(driverName, r.mount.dataSource(databasePath)); err != nil {
		return r, err
	}
	r.db.SetMaxOpenConns(2) // each parses the whole schema
	if r.store, err = sqlstore.Open(r.db, sqlstore.SQLite); err != nil {
		return r, err
	}
	if err := r.store.Migrate(p.ctx); err != nil {
		return r, err
	}
	verifier, err := webhooks.NewVerifier(secret)
	if err != nil {
		return r, err
	}
	handler, err := webhooks.NewRawHandler(verifier, r.receive, webhooks.WithClock(p.computer.now))
	if err != nil {
		return r, err
	}
	serve(p, receiverAddress, handler)
	if w.plan.lateWorker && !w.settling.Load() {
		return r, nil
	}
	worker := &sqlstore.Worker{Store: r.store, Apply: r.apply, Poll: 2 * time.Minute, Batch: w.plan.batch, Attempts: 1000}
	p.running.Go(func() { worker.Run(p.ctx) })
	if w.plan.reconcile {
		reconciler, err := r.reconciler()
		if err != nil {
			return r, err
		}
		reconciler.Interval, reconciler.Poll = time.Minute, time.Minute
		p.running.Go(func() { reconciler.Run(p.ctx) })
	}
	return r, nil
}

func (r *receiver) reconciler() (*sqlstore.Reconciler, error) {
	client, err := r.world.newAPIClient(r.process)
	return &sqlstore.Reconciler{Store: r.store, Client: client, OrdersOnly: true}, err
}

// receive stores a delivery, and records what the store says about it.
func (r *receiver) receive(ctx context.Context, d webhooks.RawDelivery) error {
	w := r.world
	w.noteReceipt(d)
	err := r.store.Receive(ctx, d)
	if err == nil && !r.process.isDead() {
		w.noteAccepted(d.ID)
	}
	return err
}

// apply records in the transaction of a delivery when it was received.
func (r *receiver) apply(ctx context.Context, tx *sql.Tx, d webhooks.Delivery, _ webhooks.Changes) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO world_applied (id, received) VALUES (?, ?)`, d.ID, d.Event.ReceivedAt.UnixNano())
	return err
}

// close waits for the goroutines of a process that is dead.
func (r *receiver) close() {
	r.process.running.Wait()
	if r.db != nil {
		r.db.Close()
	}
	r.mount.remove()
}

// drain waits until the inbox is empty, and compares the orders with the service.
func (r *receiver) drain(ctx context.Context) error {
	for wait := time.Second; ; wait = min(2*wait, time.Hour) {
		backlog, err := r.store.Backlog(ctx)
		if err != nil {
			return err
		}
		if backlog.DeadLetters > 0 {
			return fmt.Errorf("%d dead letters", backlog.DeadLetters)
		}
		if backlog.Waiting+backlog.Delayed == 0 {
			break
		}
		if wait == time.Hour {
			return fmt.Errorf("%d deliveries stay in the inbox", backlog.Waiting+backlog.Delayed)
		}
		time.Sleep(wait)
	}
	reconciler, err := r.reconciler()
	if err != nil {
		return err
	}
	found, err := reconciler.Since(ctx, time.Time{})
	if err == nil && found.Failed > 0 {
		err = fmt.Errorf("%d orders were not compared", found.Failed)
	}
	return err
}
