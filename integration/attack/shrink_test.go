package attack

import (
	"encoding/json"
	"maps"
	"slices"
)

// shrink returns the smallest schedule that it finds for which breaks is true. It knows nothing of
// the fields of a schedule: it removes and reduces parts of its JSON.
func shrink(s *schedule, breaks func(*schedule) bool) *schedule {
	var tree any
	text, err := json.Marshal(s)
	if err != nil || json.Unmarshal(text, &tree) != nil {
		return s
	}
	best := s
	for smaller := true; smaller; {
		smaller = false
		for candidate := range reductions(tree) {
			text, err := json.Marshal(candidate)
			if err != nil {
				continue
			}
			next := new(schedule)
			if json.Unmarshal(text, next) != nil || !breaks(next) {
				continue
			}
			best, tree, smaller = next, candidate, true
			break
		}
	}
	return best
}

// reductions yields copies of a JSON value, each smaller by one step.
func reductions(v any) func(yield func(any) bool) {
	return func(yield func(any) bool) { reduce(v, yield) }
}

// reduce calls yield until it returns false, and reports whether it never did.
func reduce(v any, yield func(any) bool) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name == "Method" {
				continue
			}
			without := maps.Clone(v)
			delete(without, name)
			if !yield(without) {
				return false
			}
			replaced := func(smaller any) bool {
				with := maps.Clone(v)
				with[name] = smaller
				return yield(with)
			}
			if !reduce(v[name], replaced) {
				return false
			}
		}
	case []any:
		for i := range v {
			if !yield(slices.Delete(slices.Clone(v), i, i+1)) {
				return false
			}
		}
		for i := range v {
			replaced := func(smaller any) bool {
				with := slices.Clone(v)
				with[i] = smaller
				return yield(with)
			}
			if !reduce(v[i], replaced) {
				return false
			}
		}
	case float64:
		for _, smaller := range []float64{1, float64(int64(v / 2)), v - 1} {
			if smaller > 0 && smaller < v && !yield(smaller) {
				return false
			}
		}
	}
	return true
}
