// Package plain has answers and events as a program writes them down that has nothing but encoding/json: the same members as the
// types of this module, and nothing kept. Tests and measurements read the same invented texts into both. encoding/json reads the
// plain types without any method but those of time.Time and uuid.UUID; dates are strings, and what may be null is a pointer.
package plain
