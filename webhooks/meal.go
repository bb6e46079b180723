// The summary of a meal.

package webhooks

// Source of this file: public API reference only.

import (
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
)

// Meal is what a user ate or drank at one time: the data of daily.data.meal.created and .updated.
// Printed or logged, it shows only its IDs.
type Meal struct {
	ID     uuid.UUID `json:"id"`      // the same in every version of the summary; zero if it cannot be read
	UserID uuid.UUID `json:"user_id"` // the service's ID of the user
	Source Source    `json:"source"`  // origin of the data
	// PriorityID is a number of the service.
	//
	// Deprecated: no replacement is documented.
	PriorityID int64 `json:"priority_id"`
	// SourceID is the service's number of the source.
	//
	// Deprecated: no replacement is documented.
	SourceID int64 `json:"source_id"`
	// ProviderID is the provider's ID of the meal.
	//
	// Deprecated: no replacement is documented.
	ProviderID     string     `json:"provider_id"`
	SourceAppID    *string    `json:"source_app_id,omitzero"`    // ID of the app that recorded the data
	SourceDeviceID *uuid.UUID `json:"source_device_id,omitzero"` // ID of the device that recorded the data

	Name         string         `json:"name"`          // such as the time of day
	Timestamp    time.Time      `json:"timestamp"`     // when the user ate
	CalendarDate labhealth.Date `json:"calendar_date"` // the day in the user's local time

	Energy *Energy `json:"energy"` // of the whole meal; nil if not known
	Macros *Macros `json:"macros"` // of the whole meal; nil if not known
	Micros *Micros `json:"micros"` // of the whole meal; nil if not known
	// Data has the parts of the meal by name. It is nil if they are not known.
	Data map[string]Food `json:"data,omitzero"`

	CreatedAt time.Time `json:"created_at"` // when the summary was created
	UpdatedAt time.Time `json:"updated_at"` // when it last changed

	labhealth.RawObject `json:"-"`
}

// Food is a part of a [Meal]. A value that is not known is nil.
type Food struct {
	Energy *Energy `json:"energy,omitzero"` // energy
	Macros *Macros `json:"macros,omitzero"` // macronutrients
	Micros *Micros `json:"micros,omitzero"` // micronutrients

	labhealth.RawObject `json:"-"`
}

// Energy is the energy of food.
type Energy struct {
	Unit  string  `json:"unit"`  // always "kcal"
	Value float64 `json:"value"` // in Unit

	labhealth.RawObject `json:"-"`
}

// Macros are the macronutrients of food. The reference does not give their units. A value that is
// not known is nil.
type Macros struct {
	Carbs       *float64 `json:"carbs,omitzero"`       // carbohydrates
	Protein     *float64 `json:"protein,omitzero"`     // protein
	Fats        *Fats    `json:"fats,omitzero"`        // fats
	Alcohol     *float64 `json:"alcohol,omitzero"`     // alcohol
	Water       *float64 `json:"water,omitzero"`       // water
	Fibre       *float64 `json:"fibre,omitzero"`       // fiber
	Sugar       *float64 `json:"sugar,omitzero"`       // sugar
	Cholesterol *float64 `json:"cholesterol,omitzero"` // cholesterol

	labhealth.RawObject `json:"-"`
}

// Fats are the fats of food. The reference does not give their units. A value that is not known is
// nil.
type Fats struct {
	Saturated       *float64 `json:"saturated,omitzero"`       // saturated fats
	Monounsaturated *float64 `json:"monounsaturated,omitzero"` // monounsaturated fats
	Polyunsaturated *float64 `json:"polyunsaturated,omitzero"` // polyunsaturated fats
	Omega3          *float64 `json:"omega3,omitzero"`          // omega-3 fatty acids
	Omega6          *float64 `json:"omega6,omitzero"`          // omega-6 fatty acids
	Total           *float64 `json:"total,omitzero"`           // all fats

	labhealth.RawObject `json:"-"`
}

// Micros are the micronutrients of food by name. The reference gives neither their names nor their
// units. A map that is missing or null is nil.
type Micros struct {
	Minerals      map[string]float64 `json:"minerals,omitzero"`       // minerals
	TraceElements map[string]float64 `json:"trace_elements,omitzero"` // trace elements
	Vitamins      map[string]float64 `json:"vitamins,omitzero"`       // vitamins

	labhealth.RawObject `json:"-"`
}
