// The types that print their fields, because they hold nothing about a person and no secret.

package management

import (
	"fmt"
	"log/slog"

	"github.com/labhealth/labhealth-go/internal/redact"
)

// What a type embeds redacts it, unless it stands here: these hold nothing about a person and no
// secret, neither do the types of their fields, and they print their fields. Types that show an ID
// have a LogValue beside their declaration.

func (v BatchDeletion) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v BatchDeletion) LogValue() slog.Value       { return redact.LogFields(v) }

func (v BrandInformation) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v BrandInformation) LogValue() slog.Value       { return redact.LogFields(v) }

func (v LabAccountResponse) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v LabAccountResponse) LogValue() slog.Value       { return redact.LogFields(v) }

func (v Organisation) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v Organisation) LogValue() slog.Value       { return redact.LogFields(v) }

func (v Team) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v Team) LogValue() slog.Value       { return redact.LogFields(v) }

func (v TeamPage) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v TeamPage) LogValue() slog.Value       { return redact.LogFields(v) }

func (v TeamSettings) Format(s fmt.State, _ rune) { redact.PrintFields(s, v) }
func (v TeamSettings) LogValue() slog.Value       { return redact.LogFields(v) }
