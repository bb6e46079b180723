// The query parameters that select elements of a list.

package labhealthtest

import (
	"slices"
	"strings"
	"time"
)

// A filter reads its query parameter and returns the condition that it sets. It returns nil if the
// parameter is missing.
type filter[E any] func(*request) func(E) bool

// selected returns the elements of list that meet the conditions of all filters. It may return
// list itself.
func selected[E any](r *request, list []E, filters []filter[E]) []E {
	var conditions []func(E) bool
	for _, f := range filters {
		if condition := f(r); condition != nil {
			conditions = append(conditions, condition)
		}
	}
	if len(conditions) == 0 {
		return list
	}
	return selectFunc(list, func(e E) bool { return meetsAll(e, conditions) })
}

// selectFunc returns the elements of list that match.
func selectFunc[E any](list []E, match func(E) bool) []E {
	found := make([]E, 0, len(list)) // growing it takes longer than all else for 100,000 orders
	for _, e := range list {
		if match(e) {
			found = append(found, e)
		}
	}
	return found
}

// first returns the first element that matches.
func first[E any](list []E, match func(E) bool) (found E, ok bool) {
	if i := slices.IndexFunc(list, match); i >= 0 {
		return list[i], true
	}
	return found, false
}

func meetsAll[E any](e E, conditions []func(E) bool) bool {
	for _, condition := range conditions {
		if !condition(e) {
			return false
		}
	}
	return true
}

// equals selects by a parameter that has one value, or one of several.
func equals[E any](name string, get func(E) string) filter[E] {
	return func(r *request) func(E) bool {
		wanted := r.queryList(name)
		if len(wanted) == 0 {
			return nil
		}
		return func(e E) bool { return slices.Contains(wanted, get(e)) }
	}
}

// contains selects by a part of a text, ignoring case. get returns the text in lower case.
func contains[E any](name string, get func(E) string) filter[E] {
	return func(r *request) func(E) bool {
		part := strings.ToLower(r.queryOne(name))
		if part == "" {
			return nil
		}
		return func(e E) bool { return strings.Contains(get(e), part) }
	}
}

// since selects by the first time.
func since[E any](name string, get func(E) time.Time) filter[E] {
	return func(r *request) func(E) bool {
		start, _, ok := r.queryTime(name)
		if !ok {
			return nil
		}
		return func(e E) bool { return !get(e).Before(start) }
	}
}

// until selects by the last time. It includes the whole day of a date.
func until[E any](name string, get func(E) time.Time) filter[E] {
	return func(r *request) func(E) bool {
		end, isDate, ok := r.queryTime(name)
		if !ok {
			return nil
		}
		if isDate {
			end = end.AddDate(0, 0, 1).Add(-time.Microsecond)
		}
		return func(e E) bool { return !get(e).After(end) }
	}
}
