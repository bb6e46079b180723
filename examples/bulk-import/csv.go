package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/bulk"
)

// csvFlags are the flags for a CSV file.
type csvFlags struct {
	comma, labTest, billing, collection, country string

	dates  []string
	rename map[string]string
}

func (c *csvFlags) add(flags *flag.FlagSet) {
	c.rename = map[string]string{}
	flags.StringVar(&c.comma, "comma", "", "CSV: the character that separates cells (default ,)")
	flags.Func("dates", "CSV: layout of dates in the form of Go's package time, such as 01/02/2006; can be repeated (default 2006-01-02)", func(s string) error {
		c.dates = append(c.dates, s)
		return nil
	})
	flags.Func("rename", "CSV: a column and its name for the service, such as DOB=patient_details.dob, or Notes=- to ignore it; can be repeated", func(s string) error {
		from, to, ok := strings.Cut(s, "=")
		if c.rename[from] = to; !ok {
			return fmt.Errorf("it has no =")
		}
		return nil
	})
	flags.StringVar(&c.labTest, "lab-test", "", "CSV: ID or name of the lab test of rows without one")
	flags.StringVar(&c.billing, "billing", "", "CSV: billing type of rows without one, such as client_bill")
	flags.StringVar(&c.collection, "collection", "", "CSV: collection method of rows without one, such as walk_in_test")
	flags.StringVar(&c.country, "country", "", "CSV: country of addresses without one, such as US")
}

// source returns the records of a CSV file. Users are found or created by the column
// client_user_id.
func (c *csvFlags) source(ctx context.Context, client *labhealth.Client, file io.ReadSeeker, opts bulk.Options) (bulk.Source, error) {
	csv := bulk.CSVOptions{DateLayouts: c.dates, Rename: c.rename, Users: bulk.NewUsers(ctx, client, opts)}
	if comma := []rune(strings.ReplaceAll(c.comma, `\t`, "\t")); len(comma) > 1 {
		return nil, fmt.Errorf("-comma must be one character: %q", c.comma)
	} else if len(comma) == 1 {
		csv.Comma = comma[0]
	}
	csv.Defaults.BillingType = labhealth.Billing(c.billing)
	csv.Defaults.CollectionMethod = labhealth.LabTestCollectionMethod(c.collection)
	csv.Defaults.PatientAddress.Country = c.country
	if c.labTest != "" {
		id, err := findLabTest(ctx, client, c.labTest)
		if err != nil {
			return nil, err
		}
		csv.Defaults.OrderSet.LabTestIDs = []uuid.UUID{id}
	}
	return bulk.CSV(file, csv), nil
}

// findLabTest returns the ID of the lab test with an ID or a name.
func findLabTest(ctx context.Context, client *labhealth.Client, idOrName string) (found uuid.UUID, _ error) {
	if id, err := uuid.Parse(idOrName); err == nil {
		return id, nil
	}
	count := 0
	for test, err := range client.LabTests.All(ctx, labhealth.ListLabTestsParams{}) {
		if err != nil {
			return uuid.Nil, err
		}
		if strings.EqualFold(test.Name, idOrName) {
			found = test.ID
			count++
		}
	}
	if count != 1 {
		return uuid.Nil, fmt.Errorf("-lab-test: %d lab tests have the name %q", count, idOrName)
	}
	return found, nil
}
