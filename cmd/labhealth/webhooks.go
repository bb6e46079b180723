package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/management"
	"github.com/labhealth/labhealth-go/webhooks"
)

func newWebhooks(a *app) *cobra.Command {
	return group("webhooks", "Manage the webhooks of a team",
		newWebhooksList(a), newWebhooksCreate(a), newWebhooksSecret(a), newWebhooksGenerate(a), newWebhooksRotate(a), newWebhooksDelete(a))
}

func newWebhooksList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the webhooks of a team",
		Long: `List the webhooks of a team. Queries of URLs are hidden, because they may have secrets.

With --json, each line is a webhook as the service has it.`,
		Example: `  labhealth webhooks list
  labhealth webhooks list --json | jq -r .id`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := a.management(cmd.Context(), true)
			if err != nil {
				return err
			}
			separator := ""
			all := m.Webhooks.All(cmd.Context(), m.team, m.environment, management.ListWebhooksParams{})
			return printList(a, all, 0, "", "the team has no webhooks", func(webhook *management.Webhook) {
				fmt.Fprint(a.out, separator)
				a.printWebhook(webhook)
				separator = "\n"
			})
		},
	}
}

func (a *app) printWebhook(w *management.Webhook) {
	events := "all"
	if w.FilterTypes != nil {
		events = clean(strings.Join(w.FilterTypes, ", "))
	}
	state := "enabled"
	if w.Disabled != nil && *w.Disabled {
		state = a.paint(yellow, "disabled")
	}
	lines := [][2]string{
		{"webhook", clean(w.ID)}, {"URL", clean(withoutQuery(w.URL))}, {"state", state}, {"events", events}, {"created", stamp(w.CreatedAt)},
	}
	if w.Description != nil && *w.Description != "" {
		lines = append(lines, [2]string{"description", clean(*w.Description)})
	}
	a.fields(lines...)
}

// withoutQuery hides the parts of a URL that may have secrets.
func withoutQuery(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return hidden
	}
	if u.User != nil {
		u.User = url.User(hidden)
	}
	if u.RawQuery != "" {
		u.RawQuery = hidden
	}
	if u.Fragment != "" {
		u.Fragment, u.RawFragment = hidden, ""
	}
	return strings.ReplaceAll(u.String(), "%2A%2A%2A", hidden)
}

func newWebhooksCreate(a *app) *cobra.Command {
	var description string
	var events []string
	var disabled bool
	cmd := &cobra.Command{
		Use:   "create URL",
		Short: "Create a webhook",
		Long: `Create a webhook. If LABHEALTH_WEBHOOK_SECRET or LABHEALTH_WEBHOOK_SECRET_FILE is set, it is the signing
secret. Otherwise the service generates one, which labhealth webhooks secret prints.

With --json, it prints the webhook as the service has it.`,
		Example: `  labhealth webhooks create https://example.com/webhooks
  labhealth webhooks create https://example.com/webhooks --event labtest.order.created,labtest.order.updated`,
		Args:              exactArgs("the URL of the endpoint"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkURL("the URL of the endpoint", args[0]); err != nil {
				return err
			}
			a.warnEventTypes(events)
			body := management.CreateWebhookBody{URL: args[0], FilterTypes: events}
			if description != "" {
				body.Description = &description
			}
			if disabled {
				body.Disabled = &disabled
			}
			if !a.useSandbox {
				secret, err := a.oneSecret("LABHEALTH_WEBHOOK_SECRET")
				if err != nil {
					return err
				}
				body.Secret = labhealth.Secret(secret)
			}
			m, err := a.management(cmd.Context(), true)
			if err != nil {
				return err
			}
			webhook, err := m.Webhooks.Create(cmd.Context(), m.team, m.environment, body)
			return printResult(a, webhook, err, a.printWebhook)
		},
	}
	cmd.Flags().StringVar(&description, "description", "", "text for people")
	cmd.Flags().StringSliceVar(&events, "event", nil, "event types to deliver, such as labtest.order.updated; all if missing")
	cmd.Flags().BoolVar(&disabled, "disabled", false, "create it without deliveries")
	complete(cmd, "event", webhooks.EventTypes()...)
	return cmd
}

// warnEventTypes warns of types that may be misspelled: a webhook for them gets no events.
func (a *app) warnEventTypes(types []string) {
	for _, t := range types {
		if !slices.Contains(webhooks.EventTypes(), webhooks.EventType(t)) {
			a.problem(fmt.Sprintf("--event: this version does not know the type %q: check its spelling", t))
		}
	}
}

// oneSecret returns the signing secret of an environment variable, or "".
func (a *app) oneSecret(name string) (string, error) {
	secret, err := a.secret(name)
	if err != nil || secret == "" {
		return "", err
	}
	if _, err := webhooks.NewVerifier(secret); err != nil {
		return "", usagef("%s: %s", name, errorText(err))
	}
	return secret, nil
}

// checkURL returns an error for what is no address of an application.
func checkURL(name, value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return usagef("%s must be an http or https URL, such as https://example.com/webhooks", name)
	}
	return nil
}

// secretJSON is a secret that was asked for, with --json.
type secretJSON struct {
	ID     string           `json:"id,omitzero"`
	Label  string           `json:"label,omitzero"`
	Secret labhealth.Secret `json:"secret"`
}

// aboutWebhook completes a command whose argument is the ID of a webhook.
func (a *app) aboutWebhook(cmd *cobra.Command, do func(ctx context.Context, m *managed, id string) error) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = exactArgs("the ID of a webhook"), cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		m, err := a.management(cmd.Context(), true)
		if err != nil {
			return err
		}
		return do(cmd.Context(), m, args[0])
	}
	return cmd
}

func newWebhooksSecret(a *app) *cobra.Command {
	return a.aboutWebhook(&cobra.Command{
		Use:   "secret WEBHOOK",
		Short: "Print the signing secret of a webhook",
		Long: `Print the signing secret of a webhook on stdout, and nothing else.

With --json, it prints id and secret.`,
		Example: `  (umask 077; labhealth webhooks secret ep_1 > webhook.secret)
  export LABHEALTH_WEBHOOK_SECRET_FILE=webhook.secret`,
	}, a.printWebhookSecret)
}

func (a *app) printWebhookSecret(ctx context.Context, m *managed, id string) error {
	secret, err := m.Webhooks.Secret(ctx, m.team, m.environment, id)
	if err != nil {
		return err
	}
	return a.printSecret(secretJSON{ID: id, Secret: secret.Key})
}

// printSecret prints a secret. It is the only output on stdout.
func (a *app) printSecret(s secretJSON) error {
	if a.json {
		return a.printJSON(s)
	}
	fmt.Fprintln(a.out, clean(string(s.Secret)))
	return nil
}

func newWebhooksGenerate(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "generate",
		Short: "Print a new random signing secret",
		Long: `Print a new random signing secret on stdout, for webhooks create or rotate, and for tests. Nothing is
sent, and no webhook has it yet.

With --json, it prints secret.`,
		Example: `  (umask 077; labhealth webhooks generate > webhook.secret)
  LABHEALTH_WEBHOOK_SECRET_FILE=webhook.secret labhealth webhooks create https://example.com/webhooks`,
		Args: exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			return a.printSecret(secretJSON{Secret: labhealth.Secret(webhookSecret(0))})
		},
	}
}

func newWebhooksRotate(a *app) *cobra.Command {
	return a.confirmed(a.aboutWebhook(&cobra.Command{
		Use:   "rotate WEBHOOK",
		Short: "Replace the signing secret of a webhook",
		Long: `Replace the signing secret of a webhook by that of LABHEALTH_NEW_WEBHOOK_SECRET or
LABHEALTH_NEW_WEBHOOK_SECRET_FILE. Without it, the service generates one, which is printed on stdout.

To lose no deliveries: generate a secret, let the receiver accept the old and the new one, rotate, and
remove the old one a day later.`,
		Example: `  (umask 077; labhealth webhooks generate > new.secret)
  LABHEALTH_NEW_WEBHOOK_SECRET_FILE=new.secret labhealth webhooks rotate ep_1`,
	}, func(ctx context.Context, m *managed, id string) error {
		secret, err := a.oneSecret("LABHEALTH_NEW_WEBHOOK_SECRET")
		if err != nil {
			return err
		}
		if err := a.confirm(fmt.Sprintf("Replace the signing secret of the webhook %s? A receiver that does not accept the new one rejects its deliveries.", clean(id))); err != nil {
			return err
		}
		if err := m.Webhooks.RotateSecret(ctx, m.team, m.environment, id, labhealth.Secret(secret)); err != nil {
			return err
		}
		if secret == "" {
			return a.printWebhookSecret(ctx, m, id)
		}
		a.note("the webhook has the new secret")
		if a.json {
			return a.printJSON(secretJSON{ID: id, Secret: hidden})
		}
		return nil
	}))
}

func newWebhooksDelete(a *app) *cobra.Command {
	return a.confirmed(a.aboutWebhook(&cobra.Command{
		Use:     "delete WEBHOOK",
		Short:   "Delete a webhook",
		Long:    "Delete a webhook. With --json, it prints id and deleted.",
		Example: `  labhealth webhooks delete ep_1`,
	}, func(ctx context.Context, m *managed, id string) error {
		if err := a.confirm(fmt.Sprintf("Delete the webhook %s? Events are no longer delivered to it.", clean(id))); err != nil {
			return err
		}
		if err := m.Webhooks.Delete(ctx, m.team, m.environment, id); err != nil {
			return err
		}
		if a.json {
			return a.printJSON(map[string]any{"id": id, "deleted": true})
		}
		fmt.Fprintf(a.out, "deleted the webhook %s\n", clean(id))
		return nil
	}))
}
