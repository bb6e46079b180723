package labhealth

import (
	"strings"
	"testing"
)

func TestOrderStatusParts(t *testing.T) {
	tests := []struct {
		status OrderStatus
		top    OrderTopLevelStatus
		method LabTestCollectionMethod
		low    OrderLowLevelStatus
	}{
		{"received.walk_in_test.ordered", "received", "walk_in_test", "ordered"},
		{"collecting_sample.at_home_phlebotomy.draw_completed", "collecting_sample", "at_home_phlebotomy", "draw_completed"},
		{"failed.testkit.lost", "failed", "testkit", "lost"},
		{"cancelled.on_site_collection.cancelled", "cancelled", "on_site_collection", "cancelled"},

		// Unknown values of the same shape.
		{"received.testkit.testkit_registered", "received", "testkit", "testkit_registered"},
		{"collecting_sample.on_site_collection.draw_completed", "collecting_sample", "on_site_collection", "draw_completed"},
		{"archived.drone.landed", "archived", "drone", "landed"},
		{"Received.Testkit.Ordered", "Received", "Testkit", "Ordered"},
		{" received.testkit.ordered ", " received", "testkit", "ordered "},
		{"empfangen.gerät.bestätigt", "empfangen", "gerät", "bestätigt"},
		{"a\x00.\xff.\n", "a\x00", "\xff", "\n"},

		// More than three parts: the rest belongs to the low level.
		{"received.testkit.ordered.again", "received", "testkit", "ordered.again"},
		{"received.testkit.ordered.", "received", "testkit", "ordered."},
		{"a.b.c.d.e", "a", "b", "c.d.e"},

		// Parts may be empty.
		{"received..ordered", "received", "", "ordered"},
		{".testkit.ordered", "", "testkit", "ordered"},
		{"received.testkit.", "received", "testkit", ""},
		{"..", "", "", ""},
		{"...", "", "", "."},

		// Fewer than three parts.
		{"", "", "", ""},
		{".", "", "", ""},
		{"received", "", "", ""},
		{"ordered", "", "", ""},
		{"received.", "", "", ""},
		{"received.testkit", "", "", ""},
		{".ordered", "", "", ""},
	}
	for _, test := range tests {
		t.Run(string(test.status), func(t *testing.T) {
			if got := test.status.TopLevel(); got != test.top {
				t.Errorf("TopLevel() = %q, want %q", got, test.top)
			}
			if got := test.status.Method(); got != test.method {
				t.Errorf("Method() = %q, want %q", got, test.method)
			}
			if got := test.status.LowLevel(); got != test.low {
				t.Errorf("LowLevel() = %q, want %q", got, test.low)
			}
		})
	}
}

func TestCollectionMethodAppointmentType(t *testing.T) {
	for method, want := range map[LabTestCollectionMethod]AppointmentType{
		CollectionMethodAtHomePhlebotomy: AppointmentAtHome,
		CollectionMethodWalkInTest:       AppointmentWalkIn,
		CollectionMethodTestkit:          "",
		CollectionMethodOnSiteCollection: "",
		"":                               "",
		"drone":                          "",
		OrderStatusCollectingSampleWalkInTestAppointmentPending.Method(): AppointmentWalkIn,
	} {
		if got := method.AppointmentType(); got != want {
			t.Errorf("%q: %q, want %q", method, got, want)
		}
	}
}

func TestOrderStatusModifiable(t *testing.T) {
	tests := []struct {
		status OrderStatus
		want   bool
	}{
		{"received.walk_in_test.ordered", true},
		{"received.at_home_phlebotomy.ordered", true},
		{"received.testkit.ordered", true},
		{"received.testkit.awaiting_registration", true},
		{"received.on_site_collection.ordered", true},

		// The rule is about the low level only.
		{"archived.drone.ordered", true},
		{"..ordered", true},

		{"received.testkit.registered", false},
		{"received.walk_in_test.requisition_created", false},
		{"received.walk_in_test.requisition_bypassed", false},
		{"completed.testkit.completed", false},
		{"cancelled.testkit.cancelled", false},
		{"received.testkit.Ordered", false},
		{"received.testkit.ordered ", false},
		{"received.testkit.ordered.again", false},
		{"received.testkit.", false},
		{"received.ordered", false},
		{"ordered", false},
		{"awaiting_registration", false},
		{"", false},
	}
	for _, test := range tests {
		t.Run(string(test.status), func(t *testing.T) {
			if got := test.status.Modifiable(); got != test.want {
				t.Errorf("Modifiable() = %v, want %v", got, test.want)
			}
		})
	}
}

// The joined parts of a status with at least two dots are the status. Any other status has no
// parts.
func FuzzOrderStatus(f *testing.F) {
	for _, seed := range []string{
		"",
		".",
		"..",
		"...",
		"ordered",
		"received.testkit",
		"received.testkit.ordered",
		"received.testkit.awaiting_registration",
		"received.testkit.ordered.again",
		"completed.walk_in_test.completed",
		"received..ordered",
		"empfangen.gerät.bestätigt",
		"\xff.\x00.\xfe",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		status := OrderStatus(text)
		top, method, low := string(status.TopLevel()), string(status.Method()), string(status.LowLevel())
		if strings.Count(text, ".") < 2 {
			if top != "" || method != "" || low != "" || status.Modifiable() {
				t.Errorf("%q: parts %q, %q, %q, modifiable %v, want none", text, top, method, low, status.Modifiable())
			}
			return
		}
		if got := top + "." + method + "." + low; got != text {
			t.Errorf("%q: the parts joined give %q", text, got)
		}
		if strings.Contains(top, ".") || strings.Contains(method, ".") {
			t.Errorf("%q: a dot in %q or %q", text, top, method)
		}
		if want := low == "ordered" || low == "awaiting_registration"; status.Modifiable() != want {
			t.Errorf("%q: Modifiable() = %v, want %v", text, !want, want)
		}
	})
}
