package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/labhealth/labhealth-go"
)

func newUsers(a *app) *cobra.Command {
	return group("users", "List, create and delete users",
		newUsersList(a), newUsersGet(a), newUsersCreate(a), newUsersDelete(a), newUsersUndo(a))
}

const userRow = "%s  %-20s  %s\n"

func newUsersList(a *app) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List users",
		Long: `List users. All pages are read, and users are printed as they arrive.

Your own IDs of users (client_user_id) often name the person, and count as patient data.
With --json, each line is a user as the service has it.`,
		Example: `  labhealth users list --limit 10
  labhealth users list --json | jq -r .user_id`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			size, err := pageSize(limit, 500)
			if err != nil {
				return err
			}
			client, _, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			header := fmt.Sprintf(userRow, pad("USER", 36), "CREATED", a.clientIDHeader()+"SOURCES")
			return printList(a, client.Users.All(cmd.Context(), labhealth.ListUsersParams{Limit: size}), limit, header, "there are no users", a.printUserRow)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "print at most this many users; 0 prints all")
	return cmd
}

func (a *app) clientIDHeader() string {
	if a.showPatient {
		return pad("CLIENT USER ID", 30) + "  "
	}
	return ""
}

func (a *app) printUserRow(user *labhealth.User) {
	last := sources(user)
	if a.showPatient {
		last = pad(clean(user.ClientUserID), 30) + "  " + last
	}
	fmt.Fprintf(a.out, userRow, user.UserID, stamp(user.CreatedOn), last)
}

// sources returns the names of the connected sources of a user.
func sources(user *labhealth.User) string {
	var slugs []string
	for _, s := range user.ConnectedSources {
		slugs = append(slugs, clean(s.Source.Slug))
	}
	if len(slugs) == 0 {
		return "-"
	}
	return strings.Join(slugs, ", ")
}

func newUsersGet(a *app) *cobra.Command {
	return a.aboutUser(&cobra.Command{
		Use:   "get USER",
		Short: "Show a user",
		Long:  "Show a user. With --json, it prints the user as the service has it.",
		Example: `  labhealth users get 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02
  labhealth users get 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02 --show-patient`,
	}, func(ctx context.Context, client *labhealth.Client, id uuid.UUID) error {
		user, err := client.Users.Get(ctx, id)
		return printResult(a, user, err, a.printUser)
	})
}

// aboutUser completes a command whose argument is the ID of a user.
func (a *app) aboutUser(cmd *cobra.Command, do func(context.Context, *labhealth.Client, uuid.UUID) error) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = exactArgs("the ID of a user"), cobra.NoFileCompletions
	return a.aboutID(cmd, "the ID of the user", do)
}

func (a *app) printUser(user *labhealth.User) {
	clientID := "hidden: see --show-patient"
	if a.showPatient {
		clientID = clean(user.ClientUserID)
	}
	a.fields([2]string{"user", user.UserID.String()}, [2]string{"client user ID", clientID},
		[2]string{"created", stamp(user.CreatedOn)}, [2]string{"sources", sources(user)})
}

func newUsersCreate(a *app) *cobra.Command {
	var ifMissing bool
	cmd := &cobra.Command{
		Use:   "create CLIENT-USER-ID",
		Short: "Create a user with your own ID",
		Long: `Create a user with your own ID. - reads the ID from stdin, because other users of the machine can read
arguments: use it if your IDs name people.

If the outcome is unknown (exit code 4), repeat it with --if-missing.
With --json, it prints the user as the service has it.`,
		Example: `  labhealth users create u-4711
  echo u-4711 | labhealth users create --if-missing -`,
		Args:              exactArgs("your ID of the user, or - to read it from stdin"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if name == "-" {
				var err error
				if name, err = readLine(a.in); err != nil {
					return err
				}
			}
			if name == "" {
				return usagef("your ID of the user is empty")
			}
			client, _, err := a.client(cmd.Context())
			if err != nil {
				return err
			}
			create := client.Users.Create
			if ifMissing {
				create = client.Users.GetOrCreate
			}
			user, err := create(cmd.Context(), labhealth.CreateUserBody{ClientUserID: name})
			return printResult(a, user, err, a.printUser)
		},
	}
	cmd.Flags().BoolVar(&ifMissing, "if-missing", false, "print the user if there is one with this ID")
	return cmd
}

func newUsersDelete(a *app) *cobra.Command {
	return a.confirmed(a.aboutUser(&cobra.Command{
		Use:   "delete USER",
		Short: "Delete a user, which can be undone for some time",
		Long: `Delete a user with all data. The service deletes it after some days: until then, labhealth users undo
restores the user. It asks first; without a terminal it needs --yes.`,
		Example: `  labhealth users delete 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02
  labhealth users delete 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02 --yes`,
	}, func(ctx context.Context, client *labhealth.Client, id uuid.UUID) error {
		if err := a.confirm(fmt.Sprintf("Delete the user %s with all data?", id)); err != nil {
			return err
		}
		deletion, err := client.Users.Delete(ctx, id)
		return a.printDeletion(deletion, err, fmt.Sprintf("deleted the user %s: labhealth users undo restores it", id))
	}))
}

func (a *app) printDeletion(deletion *labhealth.UserDeletion, err error, text string) error {
	if err == nil && !deletion.Success {
		return &exitError{exitFailed, "the service reports that it did not succeed"}
	}
	return printResult(a, deletion, err, func(*labhealth.UserDeletion) { fmt.Fprintln(a.out, text) })
}

func newUsersUndo(a *app) *cobra.Command {
	return a.aboutUser(&cobra.Command{
		Use:     "undo USER",
		Short:   "Restore a deleted user",
		Long:    "Restore a user that labhealth users delete has deleted, as long as the service still has the data.",
		Example: `  labhealth users undo 5b41f610-ebc5-4803-8f0c-a61c3bdc7f02`,
	}, func(ctx context.Context, client *labhealth.Client, id uuid.UUID) error {
		deletion, err := client.Users.UndoDelete(ctx, labhealth.UndoDeleteParams{UserID: id})
		return a.printDeletion(deletion, err, fmt.Sprintf("restored the user %s", id))
	})
}
