// Webhook-receiver is a server that takes events, checks who sent them, keeps the newest version of everything and prints what
// changed:
//
//	go run ./examples/webhook-receiver -demo
//
// plays ten seconds of invented deliveries to itself, signed, repeated, late and out of order as real ones are. Without -demo it
// listens:
//
//	LABHEALTH_WEBHOOK_SECRET=whsec_… go run ./examples/webhook-receiver -addr :8080
//
// While a secret is being exchanged, give both, separated by a space.
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
	addr := flag.String("addr", ":8080", "listen on this address")
	demo := flag.Bool("demo", false, "play invented deliveries to itself")
	length := flag.Duration("for", 10*time.Second, "how long the demo plays")
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
	// Without a secret this fails, and the program ends: it never believes everybody by mistake.
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

// serve takes events until ctx ends. It then lets no more in and waits for those that are in work.
func serve(ctx context.Context, listener net.Listener, verifier *webhooks.Verifier, r *receiver) error {
	handler, err := webhooks.NewHandler(verifier, r.apply, webhooks.WithObserver(r.count), webhooks.WithDeadLetter(r.putAside))
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
	patience, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(patience), handler.Shutdown(patience))
}

// receiver keeps the newest version of everything in memory. The zero receiver is ready.
type receiver struct {
	latest webhooks.Latest // summaries and samples

	mu      sync.Mutex
	orders  map[uuid.UUID]order
	answers map[webhooks.Reason]int // how many, by reason
	letters [][]byte                // bodies that cannot be applied, or not read whole
}

type order struct {
	status    labhealth.OrderStatus
	updatedAt time.Time
}

// apply is called with each event once. An error makes the sender try again later, so it is for what may go well then.
//
// What it prints are types, ids and numbers: the values are a patient's, and a terminal or a log is no place for them.
func (r *receiver) apply(ctx context.Context, e *webhooks.Event) error {
	switch data := e.Data.(type) {
	case *webhooks.Samples, *webhooks.Activity, *webhooks.Summary:
		changes, err := r.latest.Apply(webhooks.Delivery{Event: e, ID: webhooks.DeliveryIDFrom(ctx)})
		if err != nil {
			log.Printf("%s: not all of it is kept: %v", e.Type, err)
			return err // The handler calls putAside if it would not go better the next time.
		}
		log.Printf("%s: user %s, %s: %d added, %d changed, %d as before", e.Type, e.UserID, providerOf(e), changes.Added, changes.Updated, changes.Same)

	case *webhooks.LabOrder:
		r.mu.Lock()
		defer r.mu.Unlock()
		// Events come in any order, so one that was overtaken changes nothing. Orders.Get reads what holds now.
		if known, found := r.orders[data.ID]; found && known.updatedAt.After(data.UpdatedAt) {
			log.Printf("%s: order %s: %s is out of date", e.Type, data.ID, data.CurrentStatus())
			return nil
		}
		if r.orders == nil {
			r.orders = map[uuid.UUID]order{}
		}
		r.orders[data.ID] = order{data.CurrentStatus(), data.UpdatedAt}
		log.Printf("%s: order %s: %s", e.Type, data.ID, data.CurrentStatus())

	case *webhooks.ProviderConnection:
		log.Printf("%s: user %s has connected %s", e.Type, e.UserID, providerOf(e))

	default: // The service adds types of events; not to know one is no failure.
		log.Printf("%s: not used here", e.Type)
	}
	return e.Err() // nil, unless some of the event cannot be read
}

// putAside keeps a body for a person to look at, in memory as everything here: see package sqlstore for a table of dead letters.
func (r *receiver) putAside(_ context.Context, body []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.letters = append(r.letters, body)
	return nil
}

// providerOf returns the slug of the provider that an event is about, empty if it names none.
func providerOf(e *webhooks.Event) string {
	switch data := e.Data.(type) {
	case *webhooks.Samples:
		return data.Source.ProviderSlug()
	case *webhooks.Activity:
		return data.Source.ProviderSlug()
	case *webhooks.Summary:
		return data.Source.ProviderSlug()
	case *webhooks.ProviderConnection:
		return data.ConnectedProvider().ProviderSlug()
	default:
		return ""
	}
}

func (r *receiver) count(_ context.Context, a webhooks.DeliveryResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers == nil {
		r.answers = map[webhooks.Reason]int{}
	}
	r.answers[a.Reason]++
	if a.StatusCode != http.StatusNoContent && !a.Late {
		log.Printf("answered with %d: %s %s", a.StatusCode, a.Reason, a.Panic)
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
	log.Printf("%d deliveries were applied, %d were recognized as repeated", r.answers[webhooks.ReasonApplied], r.answers[webhooks.ReasonRemembered])
}
