package main

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/console"
	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/inspect"
	"github.com/labhealth/labhealth-go/management"
)

// secretVariable is the environment variable with the signing secret of the webhook.
const secretVariable = "LABHEALTH_WEBHOOK_SECRET"

// storeFlags are the flags of commands that use the file of deliveries.
type storeFlags struct {
	file     string
	unsigned bool
}

func (f *storeFlags) add(cmd *cobra.Command, unsigned string) {
	cmd.Flags().StringVar(&f.file, "file", "", "file of the deliveries (default deliveries.db in the state directory of the user)")
	cmd.Flags().BoolVar(&f.unsigned, "unsigned", false, unsigned)
}

// path returns the file of the deliveries.
func (f *storeFlags) path() (string, error) {
	if f.file != "" {
		return f.file, nil
	}
	dir, err := stateDir()
	return filepath.Join(dir, "deliveries.db"), err
}

// secrets returns the signing secrets, nil with --unsigned.
func (f *storeFlags) secrets(ctx context.Context, a *app) ([]string, error) {
	switch {
	case f.unsigned && a.useSandbox:
		return nil, usagef("--sandbox and --unsigned cannot be combined")
	case f.unsigned:
		return nil, nil
	}
	return a.requiredWebhookSecrets(ctx)
}

// listenFlags are the flags of the command listen.
type listenFlags struct {
	storeFlags
	addr    string
	forward string
	keep    time.Duration
	public  bool
}

func newListen(a *app) *cobra.Command {
	var f listenFlags
	cmd := &cobra.Command{
		Use:   "listen",
		Short: "Receive, inspect, forward and replay webhooks",
		Long: `Receive webhooks, store them, show them in a console in the browser, and forward them to your
application with their original headers.

Deliveries are received by POST at every path outside /console/, so that any tunnel can point here.
Each is stored in a file before it is forwarded, and the sender gets the status code of your
application. The file has mode 0600 and holds patient data; --keep says for how long.

The signing secret comes from ` + secretVariable + ` or ` + secretVariable + `_FILE. With --sandbox,
the command registers itself as a webhook of the running sandbox, with its secret, until it stops.`,
		Example: `  labhealth listen --sandbox --forward http://localhost:3000/webhooks
  ` + secretVariable + `=whsec_… labhealth listen --forward http://localhost:3000/webhooks`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listen(cmd.Context(), f) },
	}
	f.add(cmd, "do without a secret: accept every delivery, also a forged one")
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "addr", "127.0.0.1:8081", "address to listen on; port 0 uses a free port")
	flags.StringVar(&f.forward, "forward", "", "URL of your application")
	flags.DurationVar(&f.keep, "keep", 7*24*time.Hour, "how long deliveries are stored, such as 24h")
	flags.BoolVar(&f.public, "public", false, "permit an --addr that other machines can reach")
	return cmd
}

// listen serves until ctx is done.
func (a *app) listen(ctx context.Context, f listenFlags) (err error) {
	if f.keep < time.Minute {
		return usagef("--keep must be at least 1m")
	}
	secrets, err := f.secrets(ctx, a)
	if err != nil {
		return err
	}
	var box *sandboxState
	if a.useSandbox {
		if box, err = a.runningSandbox(ctx); err != nil {
			return err
		}
	}
	file, err := f.path()
	if err != nil {
		return err
	}
	listener, err := listenAt(ctx, f.addr, f.public)
	if err != nil {
		return err
	}
	inspector, err := inspect.Open(ctx, inspect.Config{
		File: file, Secrets: secrets, Forward: f.forward, Keep: f.keep, Problem: a.problem,
		Admit: admits(listener.Addr(), f.public, box != nil || slices.Contains(secrets, webhookSecret(1))),
	})
	if err != nil {
		listener.Close()
		return invalid(err)
	}
	l := &listening{app: a, flags: f, file: file, token: crand.Text(), inspector: inspector, listener: listener}
	defer func() { err = errors.Join(err, inspector.Close()) }()
	l.console, err = console.New(console.Config{
		Inspector: inspector, Token: l.token, Hosts: hosts(listener.Addr(), f.public),
		Values: []console.Value{{Name: "Receiver", Value: baseURL(listener.Addr())}},
	})
	if err != nil {
		listener.Close()
		return invalid(err)
	}
	return l.run(ctx, box)
}

// listening is the command listen while it runs.
type listening struct {
	app       *app
	flags     listenFlags
	file      string
	token     string
	inspector *inspect.Inspector
	console   *console.Console
	listener  net.Listener
}

// run serves until ctx is done, or serving fails.
func (l *listening) run(ctx context.Context, box *sandboxState) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	server := &http.Server{
		Handler:           l,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return running },
	}
	failed := make(chan error, 1)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer stop()
	tasks.Go(func() { failed <- server.Serve(l.listener) })
	tasks.Go(func() { l.console.Run(running) })
	deliveries := l.inspector.Watch(running)
	tasks.Go(func() { l.app.printDeliveries(running, l.inspector, deliveries, false) })
	unregister := func() error { return nil }
	if box != nil {
		var err error
		if unregister, err = l.register(ctx, box); err != nil {
			server.Close()
			return err
		}
	}
	l.printStart(box)
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	err = errors.Join(err, unregister())
	l.app.note("stopping: waiting for deliveries in progress")
	stop() // pages that are open
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	if server.Shutdown(shutdown) != nil {
		server.Close()
	}
	return err
}

// note prints a line for people.
func (a *app) note(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) }

// problem prints what fails while a command runs.
func (a *app) problem(text string) {
	a.note("%s %s", a.paintErr(yellow, "warning:"), clean(text))
}

// ServeHTTP serves the console, and receives everything else.
func (l *listening) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	limitBody(w, r)
	if console.IsConsole(r) {
		l.console.ServeHTTP(w, r)
		return
	}
	l.inspector.ServeHTTP(w, r)
}

// registered is the description of the webhook at the sandbox.
const registered = "labhealth listen"

// register creates a webhook of the sandbox, which unregister deletes. It deletes one that a
// process left behind that was killed.
func (l *listening) register(ctx context.Context, box *sandboxState) (unregister func() error, err error) {
	transport := &http.Transport{} // without a proxy
	client, err := management.NewClient(box.OrgID, box.OrgKey, labhealth.WithBaseURL(box.local()),
		labhealth.WithHTTPClient(&http.Client{Transport: transport, Timeout: 10 * time.Second}))
	if err != nil {
		return nil, err
	}
	url, description := baseURL(l.listener.Addr())+"/", registered
	for old, err := range client.Webhooks.All(ctx, box.TeamID, labhealth.TeamEnvironmentSandbox, management.ListWebhooksParams{}) {
		if err != nil {
			return nil, fmt.Errorf("the webhooks of the sandbox at %s: %w", box.URL, err)
		}
		if old.URL == url && old.Description != nil && *old.Description == registered {
			if err := client.Webhooks.Delete(ctx, box.TeamID, labhealth.TeamEnvironmentSandbox, old.ID); err != nil {
				return nil, err
			}
		}
	}
	hook, err := client.Webhooks.Create(ctx, box.TeamID, labhealth.TeamEnvironmentSandbox, management.CreateWebhookBody{
		URL: url, Description: &description, Secret: labhealth.Secret(box.WebhookSecret),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot register at the sandbox at %s: %w", box.URL, err)
	}
	return func() error {
		defer transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err := client.Webhooks.Delete(ctx, box.TeamID, labhealth.TeamEnvironmentSandbox, hook.ID)
		if err != nil && box.runs(ctx) {
			return fmt.Errorf("the webhook of the sandbox was not deleted: %w", err)
		}
		return nil // the sandbox is gone, and its webhooks with it
	}, nil
}

// printStart prints the addresses.
func (l *listening) printStart(box *sandboxState) {
	address := baseURL(l.listener.Addr())
	page := address + "/console/?token=" + l.token
	if l.app.json {
		_ = l.app.printJSON(struct { // whoever reads it may be gone
			Receiver string `json:"receiver"`
			Console  string `json:"console"`
			Forward  string `json:"forward,omitempty"`
			File     string `json:"file"`
		}{address, page, l.flags.forward, l.file})
	} else {
		lines := [][2]string{{"receiver", address + "  (POST, any path)"}, {"forward", l.flags.forward}, {"console", page}, {"file", l.file + ", kept " + keepText(l.flags.keep)}}
		if box != nil {
			lines = append(lines, [2]string{"sandbox", box.URL})
		}
		l.app.fields(lines...)
	}
	if l.flags.public {
		l.app.problem("other machines can reach this address; whoever has the secret can send deliveries, and whoever has the token sees patient data")
	}
	if l.flags.unsigned {
		l.app.problem("--unsigned accepts every delivery, also a forged one, and stores it")
	}
}

func keepText(d time.Duration) string {
	if d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return d.String()
}
