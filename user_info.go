// The demographic data of users.

package labhealth

// Source of this file: public API reference only.

import (
	"context"

	"github.com/google/uuid"
)

const (
	opGetUserInfo    = "GET /v2/user/{user_id}/info/latest"
	opUpdateUserInfo = "PATCH /v2/user/{user_id}/info"
)

// UserInfo is the demographic data of a user.
type UserInfo struct {
	FirstName   string  `json:"first_name"`   // given name
	LastName    string  `json:"last_name"`    // family name
	Email       string  `json:"email"`        // one address
	PhoneNumber string  `json:"phone_number"` // no format is documented; +14155550123 is usual
	Gender      Gender  `json:"gender"`       // any string; the constants are usual
	DOB         Date    `json:"dob"`          // date of birth
	Address     Address `json:"address"`      // home address

	MedicalProxy      *GuarantorDetails  `json:"medical_proxy,omitzero"`      // parent or proxy, nil if there is none
	Race              *Race              `json:"race,omitzero"`               // nil if not specified
	Ethnicity         *Ethnicity         `json:"ethnicity,omitzero"`          // nil if not specified
	SexualOrientation *SexualOrientation `json:"sexual_orientation,omitzero"` // nil if not specified
	GenderIdentity    *GenderIdentity    `json:"gender_identity,omitzero"`    // nil if not specified

	RawObject `json:"-"`
}

// UpdateUserInfoBody is the request of [UsersService.UpdateInfo]. The fields up to Address are
// required. [Null] clears one of the others; whether an absent one is kept is not documented.
type UpdateUserInfoBody struct {
	Redacted

	FirstName   string  `json:"first_name"`   // given name
	LastName    string  `json:"last_name"`    // family name
	Email       string  `json:"email"`        // one address
	PhoneNumber string  `json:"phone_number"` // no format is documented; +14155550123 is usual
	Gender      Gender  `json:"gender"`       // values other than the constants may be accepted
	DOB         Date    `json:"dob"`          // date of birth
	Address     Address `json:"address"`      // home address; its access notes have no documented limit

	MedicalProxy      Nullable[GuarantorDetails]  `json:"medical_proxy,omitzero"`      // parent or proxy
	Race              Nullable[Race]              `json:"race,omitzero"`               // the user's race
	Ethnicity         Nullable[Ethnicity]         `json:"ethnicity,omitzero"`          // the user's ethnicity
	SexualOrientation Nullable[SexualOrientation] `json:"sexual_orientation,omitzero"` // the user's sexual orientation
	GenderIdentity    Nullable[GenderIdentity]    `json:"gender_identity,omitzero"`    // the user's gender identity
}

func (b *UpdateUserInfoBody) validate(v *validator) {
	v.required("first_name", b.FirstName)
	v.required("last_name", b.LastName)
	v.email("email", b.Email)
	v.required("phone_number", b.PhoneNumber)
	v.required("gender", string(b.Gender))
	v.date("dob", b.DOB)
	v.within("address", func() {
		a := &b.Address
		v.address(a.FirstLine, a.City, a.State, a.Zip, a.Country, nil)
	})
	if proxy, ok := b.MedicalProxy.Get(); ok {
		v.within("medical_proxy", func() { proxy.validate(v) })
	}
}

// Info returns the latest demographic data of a user: GET /v2/user/{user_id}/info/latest. The error
// for a user who has none matches [ErrNotFound]; this status is an inference.
func (s *UsersService) Info(ctx context.Context, userID uuid.UUID, opts ...CallOption) (*UserInfo, error) {
	return call(ctx, coreOf(s), new(UserInfo), request{op: opGetUserInfo, ids: []string{userID.String()}}, opts)
}

// UpdateInfo creates or replaces the demographic data of a user: PATCH /v2/user/{user_id}/info.
// Orders that were placed before keep theirs; this is an inference.
func (s *UsersService) UpdateInfo(ctx context.Context, userID uuid.UUID, body UpdateUserInfoBody, opts ...CallOption) (*UserInfo, error) {
	// Nullable would send the unknown fields of a value that was received from the service.
	if proxy, ok := body.MedicalProxy.Get(); ok {
		proxy.RawObject, proxy.Address.RawObject = RawObject{}, RawObject{}
		body.MedicalProxy = Value(proxy)
	}
	return call(ctx, coreOf(s), new(UserInfo), request{op: opUpdateUserInfo, ids: []string{userID.String()}, body: &body}, opts)
}
