// Package plain has responses and events as a program declares them for encoding/json: the same
// fields as the types of this module, without the received JSON. Tests and benchmarks decode the
// same invented documents into both. encoding/json calls no methods of the plain types except those
// of time.Time and uuid.UUID. Dates are strings, and nullable values are pointers.
package plain
