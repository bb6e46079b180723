// Package testform chooses how much the tests do.
//
//	go test ./...                         the short form, as with -short
//	LABHEALTH_TEST_FULL=1 go test ./...   the full form: more cases, and what takes longer
//	LABHEALTH_TEST_LONG=1 go test ./...   the long form: many more cases
//
// .ci/run runs the full form and .ci/run schedule the long one.
package testform

import (
	"flag"
	"os"
)

// Choose makes testing.Short report whether the tests run in their short form. TestMain calls it.
func Choose() {
	flag.Parse()
	if os.Getenv("LABHEALTH_TEST_FULL") == "" && os.Getenv("LABHEALTH_TEST_LONG") == "" {
		if err := flag.Set("test.short", "true"); err != nil {
			panic(err) // the program is no test
		}
	}
}
