package main

import (
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/console"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/labhealthtest"
)

// sandboxFlags are the flags of the command sandbox.
type sandboxFlags struct {
	addr      string
	users     int
	orders    int
	deliver   string
	seed      uint64
	forward   string
	file      string
	public    bool
	noConsole bool
	problem   func(string) // prints what fails
}

func newSandbox(a *app) *cobra.Command {
	f := sandboxFlags{problem: a.problem}
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Run the embedded service with a console in the browser",
		Long: `Run the embedded service with a console in the browser.

The service has all operations of the API. Its data is invented and kept in memory. The keys, the
IDs and the webhook secret are the same at every start, unless --seed 0 makes them random.

The sandbox receives its own webhooks, signed and with retries, and shows them in the console. With
--forward, it passes them on to your application and prints a line for each, and with --deliver, your
application receives them directly from the service, unsigned.`,
		Example: `  labhealth sandbox
  labhealth sandbox --forward http://localhost:3000/webhooks
  eval "$(labhealth sandbox env)"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.public && !cmd.Flags().Changed("seed") {
				f.seed = 0 // anyone knows the keys of seed 1
			}
			return a.sandbox(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "addr", "127.0.0.1:8080", "address to listen on; port 0 uses a free port")
	flags.IntVar(&f.users, "users", 20, "number of users at the start")
	flags.IntVar(&f.orders, "orders", 50, "number of orders at the start, with different statuses")
	flags.StringVar(&f.deliver, "deliver", "", "URL to which the service posts future events, unsigned")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of keys, IDs and the webhook secret; 0, and the default with --public, makes them random")
	flags.StringVar(&f.forward, "forward", "", "URL of your application, which receives the signed webhooks")
	flags.StringVar(&f.file, "file", "", "file that keeps the deliveries; without it, they are in memory")
	flags.BoolVar(&f.public, "public", false, "permit an --addr that other machines can reach")
	flags.BoolVar(&f.noConsole, "no-console", false, "run the service only")
	cmd.AddCommand(newSandboxEnv(a))
	return cmd
}

// sandbox serves until ctx is done.
func (a *app) sandbox(ctx context.Context, f sandboxFlags) (err error) {
	box, err := startSandbox(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.close()) }()
	remove, err := box.state().save()
	if err != nil {
		a.problem("other commands will not find this sandbox: " + err.Error())
	}
	defer remove()
	if f.forward != "" {
		deliveries := box.inspector.Watch(box.running)
		box.tasks.Go(func() { a.printDeliveries(box.running, box.inspector, deliveries, true) })
	}
	if err := box.print(a); err != nil {
		return err
	}
	<-ctx.Done()
	if !a.json {
		fmt.Fprintln(a.out, "stopped")
	}
	return nil
}

// sandbox is a running sandbox.
type sandbox struct {
	server    *labhealthtest.Server
	inspector *inspect.Inspector
	console   *console.Console  // nil without a console
	client    *labhealth.Client // without faults, and not in the log of requests
	clock     *seedClock
	addr      net.Addr
	baseURL   string
	local     *http.Server // for this machine, if baseURL is not a loopback address
	localURL  string       // of local, or empty
	secret    string
	token     string
	workout   uuid.UUID
	users     int

	filling sync.Mutex

	gate    *gate
	running context.Context // until close
	stop    context.CancelFunc
	tasks   sync.WaitGroup
}

// sandboxKeep is how long deliveries are kept. It is longer than the history of a new sandbox.
const sandboxKeep = 30 * 24 * time.Hour

// startSandbox starts the service, then what looks at it.
func startSandbox(ctx context.Context, f sandboxFlags) (*sandbox, error) {
	if f.users < 0 || f.orders < 0 {
		return nil, usagef("--users and --orders must be 0 or more")
	}
	if f.deliver != "" {
		if err := checkURL("--deliver", f.deliver); err != nil {
			return nil, err
		}
	}
	listener, err := listenAt(ctx, f.addr, f.public)
	if err != nil {
		return nil, err
	}
	box := &sandbox{secret: webhookSecret(f.seed), token: crand.Text(), clock: &seedClock{}, gate: &gate{public: f.public}}
	box.running, box.stop = context.WithCancel(context.WithoutCancel(ctx))
	opts := []labhealthtest.Option{
		labhealthtest.WithListener(listener), labhealthtest.WithClock(box.clock.Now), labhealthtest.WithMiddleware(box.gate.wrap), labhealthtest.WithResponseLog(2000),
	}
	if f.seed != 0 {
		opts = append(opts, labhealthtest.WithSeed(f.seed))
	}
	box.server, err = labhealthtest.Start(opts...)
	if err != nil {
		box.stop()
		listener.Close()
		return nil, err
	}
	box.addr, box.baseURL = listener.Addr(), baseURL(listener.Addr())
	box.gate.proof.Store(&box.server.DebugToken)
	box.client, err = directClient(box.server)
	if err == nil {
		err = box.fill(ctx, f)
	}
	if err == nil {
		err = box.serveLocally(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, box.close())
	}
	return box, nil
}

// directClient returns a client that calls the service without a connection. The base URL is not
// that of the service, which may be an address that a client uses only with https.
func directClient(server *labhealthtest.Server) (*labhealth.Client, error) {
	return labhealth.NewClient(server.APIKey, labhealth.WithBaseURL("http://localhost"),
		labhealth.WithHTTPClient(&http.Client{Transport: server.Direct()}))
}

// serveLocally serves the same at the loopback interface, if the address is one that only others
// can use: clients use plain http for no other.
func (b *sandbox) serveLocally(ctx context.Context) error {
	if isLoopback(b.baseURL) {
		return nil
	}
	_, port, err := net.SplitHostPort(b.addr.String())
	if err != nil {
		return err
	}
	listener, err := listenAt(ctx, net.JoinHostPort("localhost", port), false)
	if err != nil {
		return fmt.Errorf("programs of this machine need the same port of its loopback interface: %w", err)
	}
	b.localURL = baseURL(listener.Addr())
	b.local = &http.Server{Handler: b.gate.handler, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return b.running }}
	b.tasks.Go(func() { _ = b.local.Serve(listener) }) // ends with close
	return nil
}

// fill adds the receivers, the data and the console.
func (b *sandbox) fill(ctx context.Context, f sandboxFlags) (err error) {
	b.inspector, err = inspect.Open(ctx, inspect.Config{File: f.file, Secrets: []string{b.secret}, Now: b.clock.Now, Keep: sandboxKeep, Problem: f.problem})
	if err != nil {
		return invalid(err)
	}
	receiver := b.inspector.Transport()
	if !f.noConsole {
		if b.console, err = b.newConsole(f); err != nil {
			return err
		}
		receiver = b.console.DeliveryTransport(receiver)
	}
	err = b.server.DeliverTo("http://inspector.invalid/", labhealthtest.WithSigningSecrets(b.secret),
		labhealthtest.WithRetries(), labhealthtest.WithTransport(receiver))
	if err != nil {
		return err
	}
	if err := b.addData(ctx, f); err != nil {
		return err
	}
	if err := b.forward(ctx, f); err != nil {
		return err
	}
	if b.console != nil {
		b.tasks.Go(func() { b.console.Run(b.running) })
		b.gate.console.Store(b.console)
	}
	return nil
}

// forward passes future events to the application. Those of the data that is there at the start are
// not for it.
func (b *sandbox) forward(ctx context.Context, f sandboxFlags) error {
	if err := b.server.Flush(ctx); err != nil {
		return err
	}
	if err := b.inspector.SetForward(f.forward); err != nil {
		return usagef("--forward: %s", errorText(err))
	}
	if f.deliver != "" {
		if err := b.server.DeliverTo(f.deliver); err != nil {
			return usagef("--deliver: %s", errorText(err))
		}
	}
	return nil
}

// addData adds users and orders with their history, and a workout whose stream can be read.
func (b *sandbox) addData(ctx context.Context, f sandboxFlags) error {
	if err := seed(ctx, b.server, b.clock, f.users, f.orders); err != nil {
		return fmt.Errorf("add data: %w", err)
	}
	b.users = f.users
	if f.users == 0 && f.orders > 0 {
		b.users = 1 // who has the orders
	}
	if f.users == 0 {
		return nil
	}
	user, err := b.client.Users.Resolve(ctx, "user-1")
	if err != nil {
		return err
	}
	b.workout, err = b.server.AddWorkout(user.UserID, 600)
	return err
}

// addHistory adds invented users and orders of the last days. Meanwhile the clock is set back, and
// nothing is forwarded.
func (b *sandbox) addHistory(users, orders int) (err error) {
	b.filling.Lock()
	defer b.filling.Unlock()
	forward := b.inspector.Forward()
	if err := b.inspector.SetForward(""); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.inspector.SetForward(forward)) }()
	return seed(b.running, b.server, b.clock, users, orders)
}

func (b *sandbox) newConsole(f sandboxFlags) (*console.Console, error) {
	return console.New(console.Config{
		Now:       b.clock.Now,
		Inspector: b.inspector,
		Server:    b.server,
		Client:    b.client,
		Token:     b.token,
		Hosts:     hosts(b.addr, f.public),
		Fill:      b.addHistory,
		Values: []console.Value{
			{Name: "Service", Value: b.baseURL},
			{Name: "Team key", Value: b.server.APIKey, Secret: true},
			{Name: "Webhook secret", Value: b.secret, Secret: true},
		},
	})
}

// close stops everything and waits for it.
func (b *sandbox) close() error {
	b.stop()
	if b.inspector != nil {
		b.inspector.HangUp() // the service does not wait for its receiver
	}
	if b.local != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if b.local.Shutdown(ctx) != nil {
			b.local.Close()
		}
	}
	b.server.Close()
	b.tasks.Wait()
	if b.inspector != nil {
		return b.inspector.Close()
	}
	return nil
}

// state is what other commands learn of the sandbox.
func (b *sandbox) state() sandboxState {
	s := sandboxState{
		URL:           b.baseURL,
		LocalURL:      b.localURL,
		APIKey:        b.server.APIKey,
		TeamID:        b.server.TeamID,
		OrgID:         b.server.OrgID,
		OrgKey:        b.server.OrgKey,
		WebhookSecret: b.secret,
		Proof:         b.server.DebugToken,
		PID:           os.Getpid(),
	}
	if b.console != nil {
		s.Console = b.baseURL + "/console/?token=" + b.token
	}
	return s
}

// print prints the addresses and the keys.
func (b *sandbox) print(a *app) error {
	s := b.state()
	orders, workout := len(b.server.Orders()), ""
	if b.workout != uuid.Nil {
		workout = b.workout.String()
	}
	if a.json {
		return a.printJSON(struct {
			sandboxState
			Users   int    `json:"users"`
			Orders  int    `json:"orders"`
			Workout string `json:"workout,omitempty"`
		}{s, b.users, orders, workout})
	}
	a.fields([][2]string{
		{"base URL", s.URL}, {"local URL", s.LocalURL}, {"team key", s.APIKey}, {"team", s.TeamID.String()},
		{"organisation", s.OrgID.String()}, {"management key", s.OrgKey}, {"webhook secret", s.WebhookSecret}, {"debug token", s.Proof},
		{"holds", fmt.Sprintf("%d users, %d orders", b.users, orders)}, {"workout", workout}, {"console", s.Console},
		{"try", fmt.Sprintf("curl -H 'x-service-api-key: %s' %s/v2/user/", s.APIKey, s.URL)},
	}...)
	return nil
}

// webhookSecret returns the secret of a seed, or a random one for seed 0.
func webhookSecret(seed uint64) string {
	key := make([]byte, 24)
	if seed == 0 {
		crand.Read(key)
	} else {
		sum := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("labhealth sandbox: webhook secret "), seed))
		copy(key, sum[:])
	}
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}
