// Package compare measures this module beside what else a Go programmer could pick: encoding/json, goccy/go-json, sonic and a
// decoder written by hand over jx. Every benchmark has one sub-benchmark for each of them, called "ours" and by their names, and
// checks before it measures that all of them read the same from the same text.
//
// The others are in the form in which they are fastest. Nothing is measured here that a program would have to do beside them:
// encoding/json learns from the envelope what the data is, all others are told; sonic does not check what it steps over, and the
// text values that it reads point into the body; none keeps a copy of the body or members that have no field.
//
// go run ./scripts/speed, in the root of the repository, runs all of it and writes docs/speed.md.
package compare
