package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/pflag"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/management"
)

// settings are the flags that say which deployment a command uses.
type settings struct {
	environment   string
	baseURL       string
	managementURL string
	org, team     string
	useSandbox    bool
	timeout       time.Duration
}

const environments = "production-us, production-eu, sandbox-us or sandbox-eu"

// addFlags adds the flags. Their values have precedence over the environment.
func (s *settings) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.environment, "environment", "", "environment of the service: "+environments+" (LABHEALTH_ENVIRONMENT)")
	flags.StringVar(&s.baseURL, "base-url", "", "base URL of the team API (LABHEALTH_URL)")
	flags.StringVar(&s.managementURL, "management-url", "", "base URL of the management API (LABHEALTH_MANAGEMENT_URL)")
	flags.StringVar(&s.org, "org", "", "ID of the organisation (LABHEALTH_ORG_ID)")
	flags.StringVar(&s.team, "team", "", "ID of the team (LABHEALTH_TEAM_ID)")
	flags.BoolVar(&s.useSandbox, "sandbox", false, "use the sandbox that runs on this machine, and its keys")
	flags.DurationVar(&s.timeout, "timeout", 30*time.Second, "time limit of each request")
}

// setting returns the value of a flag, or else of an environment variable.
func setting(flag, name string) string { return cmp.Or(flag, strings.TrimSpace(os.Getenv(name))) }

// target is a deployment, and what is needed to use it.
type target struct {
	url         string
	environment labhealth.Environment // empty for a loopback address without one
	sandbox     *sandboxState         // nil without --sandbox
}

// resolve returns the deployment of the team API.
func (a *app) resolve(ctx context.Context) (target, error) {
	environment := setting(a.environment, "LABHEALTH_ENVIRONMENT")
	if a.useSandbox {
		if a.baseURL != "" || a.environment != "" || a.managementURL != "" {
			return target{}, usagef("--sandbox has its own address: omit --base-url, --management-url and --environment")
		}
		s, err := a.runningSandbox(ctx)
		if err != nil {
			return target{}, err
		}
		return target{s.local(), labhealth.SandboxUS, s}, nil
	}
	t := target{url: strings.TrimSuffix(setting(a.baseURL, "LABHEALTH_URL"), "/")}
	if environment != "" {
		var err error
		if t.environment, err = labhealth.ParseEnvironment(environment); err != nil {
			return target{}, usagef("--environment or LABHEALTH_ENVIRONMENT must be %s", environments)
		}
	}
	switch {
	case t.url == "":
		return target{}, usagef("no base URL is set: set LABHEALTH_URL or --base-url to the one that you have from the service, or try --sandbox with a running labhealth sandbox")
	case t.environment == "" && !isLoopback(t.url):
		return target{}, usagef("no environment is set: set LABHEALTH_ENVIRONMENT or --environment to %s", environments)
	}
	return t, nil
}

// runningSandbox returns the sandbox of --sandbox: the one that runs or, if there are several, the
// one of LABHEALTH_URL.
func (a *app) runningSandbox(ctx context.Context) (*sandboxState, error) {
	s, err := chooseSandbox(ctx, "", "set LABHEALTH_URL to its URL")
	if url := os.Getenv("LABHEALTH_URL"); err != nil && url != "" {
		if chosen, err := chooseSandbox(ctx, url, ""); err == nil {
			return chosen, nil
		}
	}
	if errors.Is(err, errNoSandbox) {
		return nil, usagef("--sandbox: %v", errNoSandbox)
	}
	return s, err
}

// isLoopback reports whether a URL is of this machine.
func isLoopback(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// client returns a client of the team API, and its base URL.
func (a *app) client(ctx context.Context) (*labhealth.Client, string, error) {
	t, err := a.resolve(ctx)
	if err != nil {
		return nil, "", err
	}
	key, err := a.apiKey(t)
	if err != nil {
		return nil, "", err
	}
	client, err := labhealth.NewClient(key, a.clientOptions(t)...)
	if err != nil {
		return nil, "", usagef("%s", errorText(err))
	}
	a.closers = append(a.closers, client.CloseIdleConnections)
	return client, t.url, nil
}

func (a *app) apiKey(t target) (string, error) {
	if t.sandbox != nil {
		return t.sandbox.APIKey, nil
	}
	return a.requiredSecret("LABHEALTH_API_KEY", "team API key")
}

func (a *app) clientOptions(t target) []labhealth.Option {
	base := labhealth.WithBaseURL(t.url)
	if t.environment != "" && t.sandbox == nil {
		base = labhealth.WithEnvironment(t.environment, t.url)
	}
	return []labhealth.Option{base, labhealth.WithHTTPClient(a.httpClient()), labhealth.WithUserAgent(userAgent())}
}

func userAgent() string { return "labhealth-cli/" + version() }

// httpClient returns a client with the time limit, and connections for concurrent requests.
func (a *app) httpClient() *http.Client {
	client := &http.Client{Timeout: a.timeout}
	if transport, ok := http.DefaultTransport.(*http.Transport); ok {
		transport = transport.Clone()
		transport.MaxIdleConnsPerHost = 64
		client.Transport = transport
	}
	return client
}

// managed is a client of the management API, with the team that a command is about.
type managed struct {
	*management.Client

	team        uuid.UUID
	environment labhealth.TeamEnvironment
	region      labhealth.Region
}

// management returns a client of the management API.
func (a *app) management(ctx context.Context, needsTeam bool) (*managed, error) {
	t, err := a.resolveManagement(ctx)
	if err != nil {
		return nil, err
	}
	m := &managed{environment: t.environment.TeamEnvironment(), region: t.environment.Region()}
	var key string
	var org uuid.UUID
	if t.sandbox != nil {
		org, key, m.team = t.sandbox.OrgID, t.sandbox.OrgKey, t.sandbox.TeamID
		if a.team != "" {
			m.team, err = parseID("--team", a.team)
		}
	} else {
		org, key, err = a.managementKey()
		if err == nil {
			m.team, err = a.teamID(needsTeam)
		}
	}
	if err != nil {
		return nil, err
	}
	m.Client, err = management.NewClient(org, key, a.clientOptions(target{url: t.url})...)
	if err != nil {
		return nil, usagef("%s", errorText(err))
	}
	a.closers = append(a.closers, m.CloseIdleConnections)
	return m, nil
}

// resolveManagement returns the deployment of the management API. That of a local service has the
// same address as the team API.
func (a *app) resolveManagement(ctx context.Context) (target, error) {
	base := strings.TrimSuffix(setting(a.managementURL, "LABHEALTH_MANAGEMENT_URL"), "/")
	if base == "" || a.useSandbox {
		t, err := a.resolve(ctx)
		if err != nil {
			return target{}, err
		}
		if !isLoopback(t.url) {
			return target{}, usagef("no base URL of the management API is set: set LABHEALTH_MANAGEMENT_URL or --management-url")
		}
		if t.environment == "" {
			t.environment = labhealth.SandboxUS
		}
		return t, nil
	}
	environment, err := labhealth.ParseEnvironment(setting(a.environment, "LABHEALTH_ENVIRONMENT"))
	if err != nil {
		return target{}, usagef("no environment is set: set LABHEALTH_ENVIRONMENT or --environment to %s", environments)
	}
	return target{url: base, environment: environment}, nil
}

func (a *app) managementKey() (org uuid.UUID, key string, err error) {
	value := setting(a.org, "LABHEALTH_ORG_ID")
	if value == "" {
		return uuid.Nil, "", usagef("no organisation is set: set LABHEALTH_ORG_ID or --org")
	}
	if org, err = parseID("--org or LABHEALTH_ORG_ID", value); err != nil {
		return uuid.Nil, "", err
	}
	key, err = a.requiredSecret("LABHEALTH_MANAGEMENT_KEY", "management key")
	return org, key, err
}

func (a *app) teamID(required bool) (uuid.UUID, error) {
	value := setting(a.team, "LABHEALTH_TEAM_ID")
	if value == "" {
		if required {
			return uuid.Nil, usagef("no team is set: set LABHEALTH_TEAM_ID or --team")
		}
		return uuid.Nil, nil
	}
	return parseID("--team or LABHEALTH_TEAM_ID", value)
}

// requiredSecret returns a secret. It is an error if there is none.
func (a *app) requiredSecret(name, what string) (string, error) {
	value, err := a.secret(name)
	switch {
	case err == nil && value == "":
		err = usagef("no %s is set: set %s, or %s_FILE to a file that only you can read", what, name, name)
	case os.Getenv(name) == "" && strings.ContainsAny(value, "\r\n"):
		err = usagef("%s_FILE must have the key in one line", name)
	}
	return value, err
}

// secret returns the secret of an environment variable, or of the file of NAME_FILE, or "".
func (a *app) secret(name string) (string, error) {
	value, file := strings.TrimSpace(os.Getenv(name)), os.Getenv(name+"_FILE")
	switch {
	case file == "":
		return value, nil
	case value != "":
		return "", usagef("%s and %s_FILE are both set: unset one", name, name)
	}
	value, err := a.readSecret(name+"_FILE", file)
	if err != nil {
		return "", usagef("%s_FILE: %v", name, pathError(err))
	}
	return value, nil
}

// readSecret reads a file that others cannot read.
func (a *app) readSecret(name, file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	mode := info.Mode().Perm()
	checked := runtime.GOOS != "windows" && info.Mode().IsRegular() // a pipe is of the shell
	if checked && mode&0o007 != 0 {
		return "", fmt.Errorf("all users can read or change %s (mode %04o): run chmod 600 on it, and replace the key if others use this machine", file, mode)
	}
	if checked && mode&0o070 != 0 {
		a.problem(fmt.Sprintf("%s: the group can read or change %s (mode %04o): chmod 600 prevents that", name, file, mode))
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	const limit = 64 << 10
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	value := strings.TrimSpace(string(b))
	if err == nil && (value == "" || len(b) > limit) {
		err = fmt.Errorf("%s must be a file with the key in one line", file)
	}
	return value, err
}

// webhookSecrets returns the secrets of the webhook: one, or several separated by spaces or lines
// while the secret is rotated.
func (a *app) webhookSecrets(ctx context.Context) ([]string, error) {
	if a.useSandbox {
		s, err := a.runningSandbox(ctx)
		if err != nil {
			return nil, err
		}
		return []string{s.WebhookSecret}, nil
	}
	value, err := a.secret(secretVariable)
	return strings.Fields(value), err
}

func (a *app) requiredWebhookSecrets(ctx context.Context) ([]string, error) {
	secrets, err := a.webhookSecrets(ctx)
	if err == nil && len(secrets) == 0 {
		err = usagef("no webhook secret is set: set %s, or %[1]s_FILE to a file that only you can read, or use --sandbox", secretVariable)
	}
	return secrets, err
}

// pathError removes the operation from an error of package os.
func pathError(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", e.Path, e.Err)
	}
	return err
}
