package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go/management"
)

func newKeys(a *app) *cobra.Command {
	return group("keys", "List and create keys", newKeysList(a), newKeysCreate(a))
}

const keyRow = "%s  %s  %s  %s\n"

func newKeysList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the keys of the team API without their values",
		Long: `List the keys of the team API, of all teams or of --team, without their values. With --json, each line is a
key as the service has it, with its value hidden.`,
		Example: `  labhealth keys list
  labhealth keys list --json | jq -r .id`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := a.management(cmd.Context(), false)
			if err != nil {
				return err
			}
			keys := m.TeamAPIKeys.All(cmd.Context(), m.environment, m.region, management.ListTeamAPIKeysParams{TeamID: m.team})
			header := fmt.Sprintf(keyRow, pad("KEY ID", 36), pad("TEAM", 36), pad("CREATED", 20), "LABEL")
			return printList(a, keys, 0, header, "there are no keys", func(key *management.TeamAPIKey) {
				fmt.Fprintf(a.out, keyRow, key.ID, pad(key.TeamID.String(), 36), stamp(key.CreatedAt), clean(key.Label))
			})
		},
	}
}

func newKeysCreate(a *app) *cobra.Command {
	var label, output string
	cmd := &cobra.Command{
		Use:   "create --label LABEL",
		Short: "Create a key and print it once",
		Long: `Create a key of the team API for --team. The key is the only output on stdout, and cannot be read again.
With --output, it is written to a new file that only you can read.

With --json, it prints id, label and secret.`,
		Example: `  labhealth keys create --label billing -o billing.key
  export LABHEALTH_API_KEY_FILE=billing.key`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(label) == "" {
				return usagef("--label must be a name for the key, such as billing")
			}
			m, err := a.management(cmd.Context(), true)
			if err != nil {
				return err
			}
			var file *outputFile
			if output != "" {
				if _, err := os.Lstat(output); err == nil {
					return usagef("%s exists: name another file, because a key that it may have cannot be read again", output)
				}
				if file, err = createFile(output); err != nil {
					return err
				}
				defer file.discard()
			}
			key, err := m.TeamAPIKeys.Create(cmd.Context(), m.environment, m.region, management.CreateTeamAPIKeyBody{Label: label, TeamID: m.team})
			if err != nil {
				return err
			}
			created := secretJSON{key.ID.String(), key.Label, key.Value}
			if file != nil {
				return a.saveKey(created, file)
			}
			if !a.json {
				a.note("key ID %s: store the key now, it cannot be read again", clean(created.ID))
			}
			return a.printSecret(created)
		},
	}
	cmd.Flags().StringVar(&label, "label", "", "name of the key, for people")
	cmd.Flags().StringVarP(&output, "output", "o", "", "new file for the key instead of stdout")
	return cmd
}

// saveKey writes a key to its file.
func (a *app) saveKey(created secretJSON, file *outputFile) error {
	_, err := file.WriteString(string(created.Secret) + "\n")
	if err == nil {
		err = file.finish()
	}
	if err != nil {
		// The key exists and cannot be read again.
		return fmt.Errorf("the key %s was created, but cannot be stored: delete it: %w", created.ID, err)
	}
	if a.json {
		return a.printJSON(secretJSON{created.ID, created.Label, hidden})
	}
	fmt.Fprintf(a.out, "%s (key ID %s)\n", file.path, clean(created.ID))
	return nil
}
