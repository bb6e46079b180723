// The prices of lab tests and markers.

package labhealth

// Source of this file: public API reference only.

import "encoding/json"

// LabTestPricing has the prices of the lab tests of a [LabTestPage].
type LabTestPricing struct {
	Currency string `json:"currency" default:"USD"` // ISO 4217 code; USD by default
	// Data has the prices by lab test. That its keys are the IDs of lab tests is an inference.
	Data map[string]LabTestPanelPricing `json:"data"`

	RawObject `json:"-"`
}

// LabTestPanelPricing is the price of a lab test.
type LabTestPanelPricing struct {
	Pricing Pricing `json:"pricing"` // the price of the whole test
	// MarkerBreakdown has the prices by marker, nil if there are none. That its keys are the IDs of
	// markers is an inference.
	MarkerBreakdown map[string]Pricing `json:"marker_breakdown,omitzero"`

	RawObject `json:"-"`
}

// MarkerPricing has the prices of the markers of a [MarkerPage].
type MarkerPricing struct {
	Currency string `json:"currency" default:"USD"` // ISO 4217 code; USD by default
	// Data has the prices by marker. That its keys are the IDs of markers is an inference.
	Data map[string]Pricing `json:"data"`

	RawObject `json:"-"`
}

// Pricing is a price, or the reason why there is none. Amounts are in minor units of the currency,
// such as cents.
type Pricing struct {
	// BaseAmountMinor is the price before modifiers, nil if there is none.
	BaseAmountMinor *int64 `json:"base_amount_minor,omitzero"`
	// Modifiers are added to the base amount where their conditions hold.
	Modifiers []PricingModifier `json:"modifiers,omitzero"`
	// Unspecified is the reason why there is no price, nil if there is one.
	Unspecified *UnspecifiedPricing `json:"unspecified,omitzero"`

	RawObject `json:"-"`
}

// PricingModifier changes a price under conditions.
type PricingModifier struct {
	DeltaAmountMinor PricingModifierRange `json:"delta_amount_minor"` // added to the base amount
	Conditions       PricingConditions    `json:"conditions"`         // when it is added

	RawObject `json:"-"`
}

// PricingModifierRange is the range of an amount in minor units of the currency. An amount that is
// a single number is decoded as a range from that number to itself.
type PricingModifierRange struct {
	Minimum int64 `json:"minimum" jsonread:"scalar"` // the smallest amount
	Maximum int64 `json:"maximum" jsonread:"scalar"` // the largest amount

	RawObject `json:"-"`
}

// PricingConditions are the conditions of a [PricingModifier].
type PricingConditions struct {
	// USState limits the modifier to some states, nil if it applies in all of them.
	USState *USStatePricingCondition `json:"us_state,omitzero"`
	// Reflex limits the modifier to reflex tests, nil if it does not. It has no documented fields.
	Reflex json.RawMessage `json:"reflex,omitzero"`

	RawObject `json:"-"`
}

// USStatePricingCondition limits a [PricingModifier] to some states.
type USStatePricingCondition struct {
	AnyOf []string `json:"any_of"` // postal codes of states, such as "CA"

	RawObject `json:"-"`
}

// UnspecifiedPricing is the reason why there is no price. Values other than the constants occur.
type UnspecifiedPricing string

// Values of [UnspecifiedPricing].
const (
	UnspecifiedPricingReferToContract  UnspecifiedPricing = "refer_to_contract"
	UnspecifiedPricingPriceUnavailable UnspecifiedPricing = "price_unavailable"
)
