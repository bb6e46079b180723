// The prices of lab tests and markers.

package labhealthtest

import (
	"strconv"
	"strings"
)

// price is the price of a lab test or marker: an amount with modifiers, or the reason why there is
// none.
type price struct {
	BaseAmountMinor *int64          `json:"base_amount_minor,omitempty"`
	Modifiers       []priceModifier `json:"modifiers,omitempty"`
	Unspecified     string          `json:"unspecified,omitempty"`
}

type priceModifier struct {
	DeltaAmountMinor any             `json:"delta_amount_minor"` // an int64 or a priceRange
	Conditions       priceConditions `json:"conditions"`
}

type priceRange struct {
	Minimum int64 `json:"minimum"`
	Maximum int64 `json:"maximum"`
}

type priceConditions struct {
	USState *stateCondition `json:"us_state"`
	Reflex  *struct{}       `json:"reflex"`
}

type stateCondition struct {
	AnyOf []string `json:"any_of"`
}

type testPrice struct {
	Pricing         price            `json:"pricing"`
	MarkerBreakdown map[string]price `json:"marker_breakdown"`
}

// requestedPricing returns the result of pricing if the request asks for prices.
func requestedPricing(r *request, pricing func() any) any {
	if !r.queryBool("include_pricing") {
		return nil
	}
	return map[string]any{"currency": "USD", "data": pricing()}
}

func pricingOfTests(tests []*labTest) any {
	data := map[string]testPrice{}
	for _, t := range tests {
		data[t.ID.String()] = testPrice{priceOf(t.Price.String()), pricingOfMarkers(t.Markers)}
	}
	return data
}

func pricingOfMarkers(markers []marker) map[string]price {
	data := map[string]price{}
	for _, m := range markers {
		p := priceOf(*m.Price)
		if m.ID == lead.ID { // with one modifier of each form
			p.Modifiers = []priceModifier{
				{int64(500), priceConditions{USState: &stateCondition{[]string{"NJ", "NY"}}}},
				{priceRange{300, 900}, priceConditions{Reflex: &struct{}{}}},
			}
		}
		data[strconv.FormatInt(m.ID, 10)] = p
	}
	return data
}

// priceOf returns the price with an amount such as "45.00". Others are not numbers.
func priceOf(amount string) price {
	minor, err := strconv.ParseInt(strings.Replace(amount, ".", "", 1), 10, 64)
	if err != nil {
		return price{Unspecified: "refer_to_contract"}
	}
	return price{BaseAmountMinor: &minor}
}
