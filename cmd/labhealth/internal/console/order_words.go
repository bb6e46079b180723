package console

import (
	"slices"
	"strings"
	"time"
)

// lane is a column of the board: a top-level status.
type lane struct {
	Key, Name, Short string
	Vial             vial
}

// vial is the mark of a status. Level is 0 to 3, State is done, failed, void, stuck or empty.
type vial struct {
	Level int
	State string
}

// lanes are the columns of the board, in order.
var lanes = []lane{
	{"received", "Received", "Received", vial{0, ""}},
	{"collecting", "Collecting", "Collecting", vial{1, ""}},
	{"lab", "With lab", "With lab", vial{2, ""}},
	{"completed", "Completed", "Completed", vial{3, "done"}},
	{"ended", "Cancelled, failed", "Ended", vial{0, "failed"}},
}

var laneOf = map[string]int{"received": 0, "collecting_sample": 1, "sample_with_lab": 2, "completed": 3, "cancelled": 4, "failed": 4}

// splitStatus returns the parts of a status: top_level.method.low_level.
func splitStatus(status string) (top, method, low string) {
	top, rest, _ := strings.Cut(status, ".")
	method, low, _ = strings.Cut(rest, ".")
	return top, method, low
}

// isKnownStatus reports whether the top-level part of a status has a lane.
func isKnownStatus(status string) bool {
	top, _, _ := splitStatus(status)
	_, ok := laneOf[top]
	return ok
}

// vialOf returns the mark of a status.
func vialOf(status string) vial {
	top, _, _ := splitStatus(status)
	switch top {
	case "cancelled":
		return vial{0, "void"}
	case "failed":
		return vial{0, "failed"}
	}
	return lanes[laneOf[top]].Vial
}

// method is a collection method. Key is the name of its icon, too.
type method struct{ Key, Name string }

var methods = []method{{"testkit", "Testkit"}, {"walk_in_test", "Walk-in"}, {"at_home_phlebotomy", "At home"}, {"on_site_collection", "On site"}}

// methodName returns the name of a collection method, and of one that does not exist yet.
func methodName(method string) string {
	for _, m := range methods {
		if m.Key == method {
			return m.Name
		}
	}
	return words(method)
}

// methodIcon returns the icon of a collection method.
func methodIcon(method string) string {
	for _, m := range methods {
		if m.Key == method {
			return m.Key
		}
	}
	return "help"
}

var statusNames = map[string]string{
	"transit_customer":               "In transit to customer",
	"problem_in_transit_customer":    "Problem in transit to customer",
	"transit_lab":                    "In transit to lab",
	"problem_in_transit_lab":         "Problem in transit to lab",
	"failure_to_deliver_to_customer": "Not delivered to customer",
	"failure_to_deliver_to_lab":      "Not delivered to lab",
	"lost":                           "Lost",
	"do_not_process":                 "Do not process",
}

// statusWords describes a status with its detail.
func statusWords(status, detail string) string {
	_, _, low := splitStatus(status)
	text := statusNames[low]
	if text == "" {
		text = words(low)
	}
	if text == "" {
		text = words(status)
	}
	if text == "" {
		text = "No status"
	}
	if detail != "" {
		text += ": " + strings.ToLower(words(strings.TrimPrefix(detail, "sample_")))
	}
	return text
}

// words makes "Draw completed" of draw_completed. Texts of another form stay as they are.
func words(name string) string {
	if len(name) > 200 {
		name = strings.ToValidUTF8(name[:200], "") + "…"
	}
	name = visible(name)
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") != "" {
		return name
	}
	name = strings.ReplaceAll(name, "_", " ")
	return strings.ToUpper(name[:1]) + name[1:]
}

// problems are the statuses from which an order does not continue by itself.
var problems = []string{"problem_in_transit_customer", "problem_in_transit_lab", "lab_processing_blocked", "appointment_cancelled"}

const day = 24 * time.Hour

// usualTimes are how long orders usually stay in a status.
var usualTimes = map[string]time.Duration{
	"ordered":               day,
	"requisition_created":   3 * day,
	"requisition_bypassed":  3 * day,
	"registered":            2 * day,
	"awaiting_registration": 30 * day,
	"appointment_pending":   3 * day,
	"appointment_scheduled": 7 * day,
	"redraw_available":      7 * day,
	"transit_customer":      4 * day,
	"out_for_delivery":      day,
	"with_customer":         10 * day,
	"transit_lab":           4 * day,
	"delivered_to_lab":      5 * day,
	"draw_completed":        5 * day,
	"partial_results":       5 * day,
}

// isStuck reports whether an order with a status does not continue, or stays longer than usual.
func isStuck(status string, since, now time.Time) bool {
	top, _, low := splitStatus(status)
	if top == "completed" || top == "cancelled" || top == "failed" {
		return false
	}
	usual, ok := usualTimes[low]
	return slices.Contains(problems, low) || ok && !since.IsZero() && now.Sub(since) > usual
}
