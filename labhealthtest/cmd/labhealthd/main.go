// Labhealthd runs the embedded service of package labhealthtest on a port, for curl, other
// languages and front-end development.
//
//	go run ./labhealthtest/cmd/labhealthd -addr 127.0.0.1:8080 -users 20 -orders 50
//
// It prints its base URL and its team API key, which are the same at every start unless -seed 0 is
// given, and a random token for labhealth.WithDebug, and runs until it is interrupted. Its data is
// invented and kept in memory. With -deliver, it posts events, unsigned. The status of an order
// changes only on request:
//
//	curl -X POST -H "x-service-api-key: $KEY" "$URL/v3/order/$ORDER/test?final_status=completed.testkit.completed"
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/labhealthtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "labhealthd:", err)
		os.Exit(1)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, args []string, out, usage io.Writer) error {
	flags := flag.NewFlagSet("labhealthd", flag.ContinueOnError)
	flags.SetOutput(usage)
	addr := flags.String("addr", "127.0.0.1:8080", "address to listen on; port 0 uses a free port")
	users := flags.Int("users", 20, "number of users at the start")
	orders := flags.Int("orders", 50, "number of orders at the start, with different statuses")
	deliver := flags.String("deliver", "", "URL to which future events are posted")
	seed := flags.Uint64("seed", 1, "seed of keys and IDs; 0 makes them random")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	opts := []labhealthtest.Option{labhealthtest.WithListener(listener)}
	if *seed != 0 {
		opts = append(opts, labhealthtest.WithSeed(*seed))
	}
	srv, err := labhealthtest.Start(opts...)
	if err != nil {
		listener.Close()
		return err
	}
	defer srv.Close()
	workout, err := addData(srv, *users, *orders)
	if err != nil {
		return err
	}
	if *deliver != "" {
		if err := srv.DeliverTo(*deliver); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "base URL   %s\nkey        %s\ndebug      %s\n", srv.URL, srv.APIKey, srv.DebugToken)
	fmt.Fprintf(out, "holds      %d users, %d orders\n", *users, len(srv.Orders()))
	if workout != uuid.Nil {
		fmt.Fprintf(out, "workout    %s\n", workout)
	}
	fmt.Fprintf(out, "try        curl -H 'x-service-api-key: %s' %s/v2/user/\n", srv.APIKey, srv.URL)
	<-ctx.Done()
	fmt.Fprintln(out, "stopped")
	return nil
}

// addData adds users, some of them with a connected source, orders with different statuses, and a
// workout.
func addData(srv *labhealthtest.Server, users, orders int) (workout uuid.UUID, err error) {
	ids := srv.AddUsers(users)
	sources := []string{"oura", "apple_health_kit", "fitbit"}
	for i, id := range ids {
		if i%2 == 0 {
			err = errors.Join(err, srv.Connect(id, sources[i/2%len(sources)]))
		}
	}
	if len(ids) > 0 {
		workout, err = srv.AddWorkout(ids[0], 600)
		err = errors.Join(err, srv.SetHistoricalPull(ids[0], sources[0], "sleep", "retrying", "provider_unavailable"))
	}
	for i, id := range srv.AddOrders(orders) {
		for range i % 9 {
			if _, end := srv.Advance(id); end != nil {
				break // Collection methods have different numbers of statuses.
			}
		}
		switch i % 10 {
		case 3:
			err = errors.Join(err, srv.SetInterpretation(id, "abnormal"))
		case 9:
			if srv.Cancel(id) != nil {
				continue // The order is already completed.
			}
		}
	}
	return workout, err
}
