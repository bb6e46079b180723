// System errors on Plan 9, which have no numbers.

package transport

// SystemOf returns 0: system errors have no numbers.
func SystemOf(error) System { return 0 }
