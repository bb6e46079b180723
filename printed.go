// The types that print their fields, because they hold nothing about a person.

package labhealth

import (
	"fmt"
	"log/slog"

	"github.com/labhealth/labhealth-go/internal/redact"
)

// What a type embeds redacts it, unless it stands here: these hold nothing about a person and no
// secret, neither do the types of their fields, and they print their fields. Types that show an ID
// have a LogValue beside their declaration.

func (v AoE) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v AoE) LogValue() slog.Value       { return redact.LogFields(v) }

func (v AoEAnswerOption) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v AoEAnswerOption) LogValue() slog.Value       { return redact.LogFields(v) }

func (v AoEQuestion) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v AoEQuestion) LogValue() slog.Value       { return redact.LogFields(v) }

func (v AppointmentCancellationReason) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v AppointmentCancellationReason) LogValue() slog.Value       { return redact.LogFields(v) }

func (v ExpectedResult) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v ExpectedResult) LogValue() slog.Value       { return redact.LogFields(v) }

func (v LOINC) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v LOINC) LogValue() slog.Value       { return redact.LogFields(v) }

func (v Lab) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v Lab) LogValue() slog.Value       { return redact.LogFields(v) }

func (v LabAccount) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v LabAccount) LogValue() slog.Value       { return redact.LogFields(v) }

func (v LabTest) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v LabTest) LogValue() slog.Value       { return redact.LogFields(v) }

func (v LabTestPage) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v LabTestPage) LogValue() slog.Value       { return redact.LogFields(v) }

func (v LabTestPanelPricing) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v LabTestPanelPricing) LogValue() slog.Value       { return redact.LogFields(v) }

func (v LabTestPricing) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v LabTestPricing) LogValue() slog.Value       { return redact.LogFields(v) }

func (v Marker) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v Marker) LogValue() slog.Value       { return redact.LogFields(v) }

func (v MarkerPage) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v MarkerPage) LogValue() slog.Value       { return redact.LogFields(v) }

func (v MarkerPricing) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v MarkerPricing) LogValue() slog.Value       { return redact.LogFields(v) }

func (v Pricing) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v Pricing) LogValue() slog.Value       { return redact.LogFields(v) }

func (v PricingConditions) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v PricingConditions) LogValue() slog.Value       { return redact.LogFields(v) }

func (v PricingModifier) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v PricingModifier) LogValue() slog.Value       { return redact.LogFields(v) }

func (v PricingModifierRange) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v PricingModifierRange) LogValue() slog.Value       { return redact.LogFields(v) }

func (v ProviderDetails) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v ProviderDetails) LogValue() slog.Value       { return redact.LogFields(v) }

func (v Source) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v Source) LogValue() slog.Value       { return redact.LogFields(v) }

func (v SourceMarker) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v SourceMarker) LogValue() slog.Value       { return redact.LogFields(v) }

func (v USStatePricingCondition) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v USStatePricingCondition) LogValue() slog.Value       { return redact.LogFields(v) }
