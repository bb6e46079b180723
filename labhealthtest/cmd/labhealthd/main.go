// Labhealthd runs the embedded service of package labhealthtest alone, on a port: for curl, other languages and front-end work.
//
//	go run ./labhealthtest/cmd/labhealthd -addr 127.0.0.1:8080 -users 20 -orders 50
//
// It prints its base URL and its key, which are the same at every start unless -seed 0 is given, and runs until it is
// interrupted. What it holds is in memory and invented. An order goes on when it is told to:
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

// run serves until ctx ends.
func run(ctx context.Context, args []string, out, usage io.Writer) error {
	flags := flag.NewFlagSet("labhealthd", flag.ContinueOnError)
	flags.SetOutput(usage)
	addr := flags.String("addr", "127.0.0.1:8080", "address to listen on; port 0 takes a free one")
	users := flags.Int("users", 20, "users to begin with")
	orders := flags.Int("orders", 50, "orders to begin with, at different stages")
	deliver := flags.String("deliver", "", "URL that is sent the events from now on")
	seed := flags.Uint64("seed", 1, "makes key and ids the same at every start; 0 makes them random")
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
	workout, err := fill(srv, *users, *orders)
	if err != nil {
		return err
	}
	if *deliver != "" {
		if err := srv.DeliverTo(*deliver); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "base URL   %s\nkey        %s\n", srv.URL, srv.APIKey)
	fmt.Fprintf(out, "holds      %d users, %d orders\n", *users, len(srv.Orders()))
	if workout != uuid.Nil {
		fmt.Fprintf(out, "workout    %s\n", workout)
	}
	fmt.Fprintf(out, "try        curl -H 'x-service-api-key: %s' %s/v2/user/\n", srv.APIKey, srv.URL)
	<-ctx.Done()
	fmt.Fprintln(out, "stopped")
	return nil
}

// fill makes users, some with a connected source, orders at different stages, and a workout.
func fill(srv *labhealthtest.Server, users, orders int) (workout uuid.UUID, err error) {
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
		steps := i % 9
		for range steps {
			if _, end := srv.Advance(id); end != nil {
				break // The methods of collection have different numbers of steps.
			}
		}
		switch i % 10 {
		case 3:
			err = errors.Join(err, srv.SetInterpretation(id, "abnormal"))
		case 9:
			if srv.Cancel(id) != nil {
				continue // It is completed already.
			}
		}
	}
	return workout, err
}
