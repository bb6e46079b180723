// Webhook-receiver is a server that receives events, verifies their signatures, keeps the latest
// version of all data and prints the changes.
//
// With -demo it receives ten seconds of invented deliveries, which are signed, repeated, late and
// out of order like real ones:
//
//	go run ./examples/webhook-receiver -demo
//
// Without -demo it listens:
//
//	LABHEALTH_WEBHOOK_SECRET=whsec_… go run ./examples/webhook-receiver -addr :8080
//
// While a secret is rotated, set both secrets, separated by a space.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
)

func main() {
	addr := flag.String("addr", ":8080", "address to listen on")
	demo := flag.Bool("demo", false, "receive invented deliveries")
	length := flag.Duration("for", 10*time.Second, "duration of the demo")
	flag.Parse()
	log.SetFlags(0)
	log.SetOutput(os.Stdout)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	var err error
	if *demo {
		err = play(ctx, *length)
	} else {
		err = listen(ctx, *addr, strings.Fields(os.Getenv("LABHEALTH_WEBHOOK_SECRET")))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "webhook-receiver:", err)
		os.Exit(1)
	}
}

func listen(ctx context.Context, addr string, secrets []string) error {
	// Fails without a secret, so that unsigned events are never accepted by mistake.
	verifier, err := webhooks.NewVerifier(secrets...)
	if err != nil {
		return fmt.Errorf("LABHEALTH_WEBHOOK_SECRET: %w", err)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	log.Print("listening on ", listener.Addr(), ", POST /events")
	return serve(ctx, listener, verifier, new(receiver))
}

// serve receives events until ctx is done. It then waits for those in flight.
func serve(ctx context.Context, listener net.Listener, verifier *webhooks.Verifier, r *receiver) error {
	handler, err := webhooks.NewHandler(verifier, r.apply, webhooks.WithObserver(r.count), webhooks.WithDeadLetter(r.deadLetter))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("/events", handler)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}

	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
	}
	shutdownCtx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(shutdownCtx), handler.Shutdown(shutdownCtx))
}

// receiver keeps the latest version of all data in memory. The zero value is ready to use.
type receiver struct {
	latest webhooks.Latest // summaries and samples

	mu        sync.Mutex
	orders    map[uuid.UUID]order
	responses map[webhooks.Reason]int // number of responses by reason

	deadLetters [][]byte // bodies that cannot be applied or decoded completely
}

type order struct {
	status    labhealth.OrderStatus
	updatedAt time.Time
}

// apply applies an event. The handler calls it once per event. If it returns an error, the sender
// retries the delivery.
//
// apply logs types, IDs and counts. It does not log values, which are patient data.
func (r *receiver) apply(ctx context.Context, e *webhooks.Event) error {
	switch data := e.Data.(type) {
	case *webhooks.LabOrder:
		r.mu.Lock()
		defer r.mu.Unlock()
		// Events arrive in any order. Ignore older ones. Orders.Get returns the current order.
		if stored, ok := r.orders[data.ID]; ok && stored.updatedAt.After(data.UpdatedAt) {
			log.Printf("%s: order %s: %s is out of date", e.Type, data.ID, data.CurrentStatus())
			return nil
		}
		if r.orders == nil {
			r.orders = map[uuid.UUID]order{}
		}
		r.orders[data.ID] = order{data.CurrentStatus(), data.UpdatedAt}
		log.Printf("%s: order %s: %s", e.Type, data.ID, data.CurrentStatus())

	case *webhooks.ProviderConnection:
		log.Printf("%s: user %s has connected %s", e.Type, e.UserID, e.ProviderSlug())

	default: // Latest stores samples and summaries, and ignores other events, such as unknown ones.
		changes, err := r.latest.Apply(webhooks.Delivery{Event: e, ID: webhooks.DeliveryIDFrom(ctx)})
		if err != nil {
			log.Printf("%s: not applied completely: %v", e.Type, err)
			return err // If a retry cannot succeed, the handler calls deadLetter.
		}
		log.Printf("%s: user %s, %s: %d added, %d changed, %d unchanged, %d replaced by a later one of the batch",
			e.Type, e.UserID, e.ProviderSlug(), changes.Added, changes.Updated, changes.Same, changes.Repeated)
	}
	return e.Err() // not nil if the event was not decoded completely
}

// deadLetter keeps a body for manual inspection. Package sqlstore has a table of dead letters.
func (r *receiver) deadLetter(_ context.Context, body []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadLetters = append(r.deadLetters, body)
	return nil
}

func (r *receiver) count(_ context.Context, a webhooks.DeliveryResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.responses == nil {
		r.responses = map[webhooks.Reason]int{}
	}
	r.responses[a.Reason]++
	if a.StatusCode != http.StatusNoContent && !a.Late {
		log.Printf("responded with %d: %s %s", a.StatusCode, a.Reason, a.Panic)
	}
}

func (r *receiver) printState() {
	summaries, samples := 0, 0
	for range r.latest.Summaries() {
		summaries++
	}
	for range r.latest.Samples() {
		samples++
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	log.Printf("\nkept: %d samples, %d summaries, %d orders", samples, summaries, len(r.orders))
	for id, o := range r.orders {
		log.Printf("order %s is %s", id, o.status)
	}
	log.Printf("%d deliveries applied, %d recognized as repeated", r.responses[webhooks.ReasonApplied], r.responses[webhooks.ReasonDuplicate])
}
