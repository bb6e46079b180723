// The devices of users.

package labhealth

// Source of this file: public API reference only.

import (
	"context"

	"github.com/google/uuid"
)

// DeviceSourceType is the kind of a [Device], or the method by which it measures. Values other than
// the constants occur.
type DeviceSourceType string

// Values of [DeviceSourceType].
const (
	DeviceSourceTypeUnknown         DeviceSourceType = "unknown"
	DeviceSourceTypePhone           DeviceSourceType = "phone"
	DeviceSourceTypeWatch           DeviceSourceType = "watch"
	DeviceSourceTypeApp             DeviceSourceType = "app"
	DeviceSourceTypeMultipleSources DeviceSourceType = "multiple_sources"
	DeviceSourceTypeFingerprick     DeviceSourceType = "fingerprick"
	DeviceSourceTypeCuff            DeviceSourceType = "cuff"
	DeviceSourceTypeManualScan      DeviceSourceType = "manual_scan"
	DeviceSourceTypeAutomatic       DeviceSourceType = "automatic"
	DeviceSourceTypeInsulinPump     DeviceSourceType = "insulin_pump"
	DeviceSourceTypeScale           DeviceSourceType = "scale"
	DeviceSourceTypeChestStrap      DeviceSourceType = "chest_strap"
	DeviceSourceTypeRing            DeviceSourceType = "ring"
	DeviceSourceTypeLab             DeviceSourceType = "lab"
	DeviceSourceTypeExerciseMachine DeviceSourceType = "exercise_machine"
	DeviceSourceTypeEarphone        DeviceSourceType = "earphone"
)

const (
	opListDevices = "GET /v2/user/{user_id}/device"
	opGetDevice   = "GET /v2/user/{user_id}/device/{device_id}"
)

// Device is a device or an app that recorded data of a user.
type Device struct {
	ID         uuid.UUID        `json:"id"`          // the service's ID of the device
	UserID     uuid.UUID        `json:"user_id"`     // the service's ID of the user
	Provider   string           `json:"provider"`    // slug of the provider; see [Provider]
	SourceType DeviceSourceType `json:"source_type"` // kind of device
	// AppID identifies the app that wrote the data, nil if unknown.
	AppID              *string `json:"app_id,omitzero"`
	DeviceManufacturer *string `json:"device_manufacturer,omitzero"` // nil if unknown
	DeviceModel        *string `json:"device_model,omitzero"`        // nil if unknown
	DeviceVersion      *string `json:"device_version,omitzero"`      // hardware or software version; nil if unknown
	// DeviceID is the provider's ID of the device, nil if unknown.
	DeviceID *string `json:"device_id,omitzero"`

	RawObject `json:"-"`
}

func (d *Device) verify() error { return requireID(d.ID, "device") }

// Devices returns the devices of a user: GET /v2/user/{user_id}/device.
func (s *UsersService) Devices(ctx context.Context, userID uuid.UUID, opts ...CallOption) ([]Device, error) {
	return callList[Device](ctx, coreOf(s), request{op: opListDevices, ids: []string{userID.String()}}, opts)
}

// Device returns one device of a user: GET /v2/user/{user_id}/device/{device_id}. The error for an
// unknown device matches [ErrNotFound].
func (s *UsersService) Device(ctx context.Context, userID, deviceID uuid.UUID, opts ...CallOption) (*Device, error) {
	return call(ctx, coreOf(s), new(Device), request{op: opGetDevice, ids: []string{userID.String(), deviceID.String()}}, opts)
}
