// Command conformance runs a client against servers that fail as conformance/faults.json describes,
// and judges what it did: how many requests it made, how many orders they created, what it says
// about them, and what other hosts received. The client is one of those that are built in, or a
// command in any language: conformance/README.md describes how it is called.
//
//	go run -C integration ./conformance                      # this library
//	go run -C integration ./conformance -client resty
//	go run -C integration ./conformance -client "python3 $PWD/conformance/example/client.py" -lines
//	go run -C integration ./conformance -write               # the tables of the documentation
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"regexp"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("conformance: ")
	name := flag.String("client", "labhealth", "a built-in client ("+clientNames()+"), or the command of another one")
	root := flag.String("root", "..", "the directory of the repository")
	pattern := flag.String("rows", "", "a regular expression for the names of the rows")
	parallel := flag.Int("parallel", 32, "how many cases run at the same time")
	lines := flag.Bool("lines", false, "the command makes one call for each line that it reads, until there is none")
	verbose := flag.Bool("v", false, "print every case")
	write := flag.Bool("write", false, "measure all built-in clients and write the tables of the documentation")
	flag.Parse()
	suite, err := readSuite(*root + "/conformance/faults.json")
	if err == nil && *write {
		err = writeTables(*root, suite, *parallel)
	} else if err == nil {
		err = runNamed(suite, *name, *lines, *pattern, *parallel, *verbose)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// runNamed runs a built-in client, or a command.
func runNamed(s *suite, name string, lines bool, pattern string, parallel int, verbose bool) error {
	for _, c := range clients {
		if c.flag == name {
			return runOne(s, c, pattern, parallel, verbose)
		}
	}
	c := client{flag: name, label: name, reports: true, do: command(strings.Fields(name))}
	if lines {
		do, stop := commands(strings.Fields(name), parallel)
		defer stop()
		c.do = do
	}
	return runOne(s, c, pattern, parallel, verbose)
}

func clientNames() string {
	names := make([]string, len(clients))
	for i, c := range clients {
		names[i] = c.flag
	}
	return strings.Join(names, ", ")
}

// runOne runs one client and prints the cases that it fails.
func runOne(s *suite, c client, pattern string, parallel int, verbose bool) error {
	rows, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	cases, failed := s.cases(rows), 0
	results := runAll(context.Background(), c, cases, parallel)
	runAgain(context.Background(), c, cases, results, parallel, func(i int) bool {
		return results[i].err != nil || len(results[i].violations) == 0 || !cases[i].hasOwnTimes()
	})
	for i, r := range results {
		if r.err != nil {
			return fmt.Errorf("%s: %w", cases[i], r.err)
		}
		if len(r.violations) > 0 {
			failed++
		}
		if verbose || len(r.violations) > 0 {
			fmt.Fprintf(os.Stdout, "%s: %s%s\n", cases[i], r, strings.Join(append([]string{""}, r.violations...), "\n    "))
		}
	}
	fmt.Printf("%s: %d of %d cases passed\n", c.label, len(cases)-failed, len(cases))
	if failed > 0 {
		return fmt.Errorf("%d cases failed", failed)
	}
	return nil
}
