// Package compare benchmarks this module and its alternatives: encoding/json, goccy/go-json, sonic
// and a hand-written decoder over jx. Every benchmark has one sub-benchmark for each of them, named
// "ours" for this module. Before it measures, it checks that all of them decode the same from the
// same document.
//
// The alternatives are used in their fastest form, without work that a program would have to do in
// addition. Only encoding/json determines the type of the data from the envelope; the others are
// told. sonic does not validate what it skips, and its strings point into the body. None of the
// alternatives keeps a copy of the body, or fields that the struct does not have.
//
// .ci/speed runs all benchmarks and writes docs/speed.md.
package compare
