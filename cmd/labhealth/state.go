package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go/cmd/labhealth/internal/owner"
)

// sandboxState is what other commands learn of a running sandbox, from a file with mode 0600.
type sandboxState struct {
	URL           string    `json:"url"`
	LocalURL      string    `json:"local_url,omitempty"` // for this machine, if URL is not a loopback address
	APIKey        string    `json:"api_key"`
	TeamID        uuid.UUID `json:"team_id"`
	OrgID         uuid.UUID `json:"organisation_id"`
	OrgKey        string    `json:"management_key"`
	WebhookSecret string    `json:"webhook_secret"`
	Console       string    `json:"console,omitempty"` // with the token
	Proof         string    `json:"debug_token"`
	PID           int       `json:"pid"` // of its process
	StartedAt     time.Time `json:"started_at"`
}

var errNoSandbox = errors.New("no sandbox is running: start one with labhealth sandbox")

// stateDir returns the directory of the user for files that are of no use after a while. It exists,
// and no other user can put files into it: what it says of a sandbox is trusted.
func stateDir() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		var err error
		if home := os.Getenv("HOME"); home != "" && runtime.GOOS != "windows" && runtime.GOOS != "darwin" {
			dir = filepath.Join(home, ".local", "state")
		} else if dir, err = os.UserCacheDir(); err != nil {
			return "", err
		}
	}
	dir = filepath.Join(dir, "labhealth")
	return dir, owner.Directory(dir)
}

// local returns the base URL for programs of this machine.
func (s sandboxState) local() string { return cmp.Or(s.LocalURL, s.URL) }

// save writes the file of the sandbox and returns a function that removes it.
func (s sandboxState) save() (remove func(), err error) {
	remove = func() {}
	dir, err := stateDir()
	if err != nil {
		return remove, err
	}
	s.StartedAt = time.Now().UTC()
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return remove, err
	}
	name := filepath.Join(dir, "sandbox-"+s.Proof[:12]+".json")
	file, err := createFile(name) // another sandbox never reads half a file
	if err != nil {
		return remove, err
	}
	defer file.discard()
	_, err = file.Write(append(b, '\n'))
	if err = errors.Join(err, file.finish()); err != nil {
		return remove, err
	}
	return func() { _ = os.Remove(name) }, nil // others remove it when they see that nothing runs
}

// runningSandboxes returns the sandboxes of the user that run, latest first. It removes the files
// of others: those of processes that were killed.
func runningSandboxes(ctx context.Context) ([]sandboxState, error) {
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(dir, "sandbox-*.json"))
	if err != nil {
		return nil, err
	}
	var running []sandboxState
	for _, name := range names {
		b, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was stopped just now
		}
		if err != nil {
			return nil, err
		}
		var s sandboxState
		if json.Unmarshal(b, &s) != nil || !s.runs(ctx) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			_ = os.Remove(name) // another command may have removed it
			continue
		}
		running = append(running, s)
	}
	slices.SortFunc(running, func(a, b sandboxState) int {
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(a.URL, b.URL))
	})
	return running, nil
}

// runs reports whether the sandbox runs, and not another program at its address. One that does not
// respond in time, such as on a busy machine, runs as long as its process does.
func (s sandboxState) runs(ctx context.Context) bool {
	if s.Proof == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.local()+proofPath, nil)
	if err != nil {
		return false
	}
	transport := &http.Transport{DisableKeepAlives: true} // no proxy
	resp, err := transport.RoundTrip(req)
	if errors.Is(err, context.DeadlineExceeded) {
		return isRunning(s.PID)
	}
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.Header.Get(proofHeader) == s.Proof
}

// isRunning reports whether there is a process.
func isRunning(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil || pid <= 0 {
		return false
	}
	defer func() { _ = process.Release() }() // of a handle
	return runtime.GOOS == "windows" || process.Signal(syscall.Signal(0)) == nil
}

// chooseSandbox returns the sandbox with a base URL, or without one the only sandbox that runs. If
// there are several, the error has how to choose.
func chooseSandbox(ctx context.Context, url, how string) (*sandboxState, error) {
	running, err := runningSandboxes(ctx)
	if err != nil {
		return nil, err
	}
	var urls []string
	for _, s := range running {
		if base := strings.TrimRight(url, "/"); base != "" && (base == s.URL || base == s.LocalURL) {
			return &s, nil
		}
		urls = append(urls, s.URL)
	}
	switch {
	case len(running) == 0:
		return nil, errNoSandbox
	case url != "":
		return nil, usagef("no sandbox of this user is running at %s", url)
	case len(running) > 1:
		return nil, usagef("several sandboxes are running: %s: name one of them: %s", strings.Join(urls, ", "), how)
	}
	return &running[0], nil
}

func newSandboxEnv(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "env [URL]",
		Short: "Print the environment for programs that use the running sandbox",
		Long: `Print the environment for programs that use the running sandbox, for a shell: LABHEALTH_URL,
LABHEALTH_API_KEY and LABHEALTH_WEBHOOK_SECRET. If several sandboxes are running, give the base URL of
one.

With --json, it prints what labhealth sandbox --json prints.`,
		Example: `  eval "$(labhealth sandbox env)"
  labhealth sandbox env http://127.0.0.1:8081
  labhealth sandbox env --json | jq -r .api_key`,
		Args: maximumArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := chooseSandbox(cmd.Context(), strings.Join(args, ""), "labhealth sandbox env URL")
			if err != nil {
				return invalid(err)
			}
			if a.json {
				return a.printJSON(s)
			}
			fmt.Fprintf(a.out, "export LABHEALTH_URL='%s' LABHEALTH_API_KEY='%s' LABHEALTH_WEBHOOK_SECRET='%s'\n", s.local(), s.APIKey, s.WebhookSecret)
			return nil
		},
	}
}
