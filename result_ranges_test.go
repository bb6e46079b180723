package labhealth

import "testing"

func TestResultPosition(t *testing.T) {
	for _, test := range []struct {
		result, bounds string
		want           Position
	}{
		{"5.6", "<5.7", PositionWithin},
		{"5.7", "<5.7", PositionAbove},
		{"5.7", "<=5.7", PositionWithin},
		{"5.8", "<=5.7", PositionAbove},
		{"9.9", "< OR = 9.9", PositionWithin},
		{"10", "< or = 9.9", PositionAbove},
		{"2", "> OR = 2", PositionWithin},
		{"2", ">2", PositionBelow},
		{"1.9", ">= 2", PositionBelow},
		{"3.6", "3.6-10.0", PositionWithin},
		{"10.0", "3.6-10.0", PositionWithin},
		{"10.01", "3.6 - 10.0", PositionAbove},
		{"-1", "-2--0.5", PositionWithin},

		{"<1.0", "0-3.5", PositionUnknown}, // it may be below 0
		{"<1.0", "<3.5", PositionWithin},
		{"<3.5", "<3.5", PositionWithin},
		{"<=3.5", "<3.5", PositionUnknown},
		{"<2", "2-3", PositionBelow},
		{"<=2", "2-3", PositionUnknown},
		{">60", ">= 60", PositionWithin},
		{">90", "60-90", PositionAbove},
		{">=90", "60-90", PositionUnknown},
		{"61-89", "60-90", PositionWithin},
		{"61-91", "60-90", PositionUnknown},

		{"Negative", "<5.7", PositionUnknown},
		{"5", "normal", PositionUnknown},
		{"5", "", PositionUnknown},
	} {
		r := Result{Result: test.result, Type: new(ResultTypeNumeric), ReferenceRange: &test.bounds}
		if got := r.Position(); got != test.want {
			t.Errorf("%q in %q: %d, want %d", test.result, test.bounds, got, test.want)
		}
	}
	// The numbers count only without a text, in which they may be rounded.
	r := Result{Result: "5.7", Type: new(ResultTypeNumeric), MaxRangeValue: new(5.7)}
	if got := r.Position(); got != PositionWithin {
		t.Error(got)
	}
	r.ReferenceRange = new("<5.7")
	if got := r.Position(); got != PositionAbove {
		t.Error(got)
	}
	if _, ok := new(Result).Range(); ok {
		t.Error("a result without a range has one")
	}
}
