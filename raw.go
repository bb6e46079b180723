package labhealth

import (
	"encoding/json"
	"strings"

	"github.com/labhealth/labhealth-go/internal/jsonread"
)

// RawObject is embedded in every type that is read from the service. It remembers the bytes the value came as, so that nothing is
// lost: members this version does not know, and members whose value does not fit, are still there, and encoding the value to
// JSON writes them again, with the changes the program made on top. The zero RawObject belongs to a value that a program made itself.
type RawObject jsonread.Ref

var _ = jsonread.Embeds(func(k *RawObject) *jsonread.Ref { return (*jsonread.Ref)(k) })

// RawJSON returns a copy of the bytes the value came as, spaces and all. It is nil for a value that did not come from the
// service. It holds patient data wherever the value does.
func (k RawObject) RawJSON() json.RawMessage { return jsonread.Ref(k).Raw() }

// Malformed names the members, at any depth of the value, that came with a value that does not fit their type: a bad UUID or
// date, a string for a number. Such a member is left zero here and keeps its bytes in [RawObject.RawJSON]. Null is never malformed:
// it reads as absent. The list ends after 1,000 entries.
func (k RawObject) Malformed() []Malformed {
	var list []Malformed
	for _, p := range jsonread.Ref(k).Problems() {
		list = append(list, Malformed{Path: strings.Join(p.Path, "."), Want: p.Want})
	}
	return list
}

// Equal reports true: two values are the same if their members are, whatever bytes they came as. go-cmp calls it, so that
// cmp.Diff compares a decoded value with one a test wrote down. It compares nothing itself: do not call it.
func (RawObject) Equal(RawObject) bool { return true }

// Malformed is a member whose value did not fit. It never holds the value.
type Malformed struct {
	Path string // from the value that was asked, such as "events.1.created_at"
	Want string // what was expected: "uuid", "date", "date-time", "string", "integer", "number", "boolean", "array", "object"
}

// Every type that embeds RawObject reads and writes itself through jsonread, also when a program puts it into a struct of its own
// and uses encoding/json.

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *PostOrderResponse) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v PostOrderResponse) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *Order) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v Order) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *OrderPage) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v OrderPage) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *OrderEvent) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v OrderEvent) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *OrderPhysician) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v OrderPhysician) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *OrderDetails) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v OrderDetails) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *WalkInTestOrder) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v WalkInTestOrder) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *TestkitOrder) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v TestkitOrder) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *AtHomePhlebotomyOrder) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v AtHomePhlebotomyOrder) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *OnSiteCollectionOrder) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v OnSiteCollectionOrder) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *UnknownOrderDetails) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v UnknownOrderDetails) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *Shipment) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v Shipment) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *OrderTransaction) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v OrderTransaction) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *OrderInTransaction) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v OrderInTransaction) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *OrderPatientDetails) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v OrderPatientDetails) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *OrderPatientAddress) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v OrderPatientAddress) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *ShippingAddress) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v ShippingAddress) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *GuarantorDetails) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v GuarantorDetails) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *Address) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v Address) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *LabTest) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v LabTest) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *Lab) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v Lab) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *Marker) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v Marker) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *AoE) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v AoE) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *AoEQuestion) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v AoEQuestion) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *AoEAnswerOption) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v AoEAnswerOption) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *User) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v User) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *UserPage) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v UserPage) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *ConnectedSource) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v ConnectedSource) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *Source) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v Source) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *FallbackBirthDate) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v FallbackBirthDate) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *FallbackTimeZone) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v FallbackTimeZone) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *OrderResults) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v OrderResults) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *ResultsMetadata) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v ResultsMetadata) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *Result) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v Result) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *MissingResult) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v MissingResult) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *SourceMarker) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v SourceMarker) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *WorkoutStream) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v WorkoutStream) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *LabTestPage) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v LabTestPage) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *UserDeletion) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v UserDeletion) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *HistoricalPullPage) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v HistoricalPullPage) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *UserHistoricalPulls) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v UserHistoricalPulls) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *ProviderHistoricalPulls) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v ProviderHistoricalPulls) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *HistoricalPull) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v HistoricalPull) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *HistoricalPullTimeline) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v HistoricalPullTimeline) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *Organisation) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v Organisation) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *BatchDeletion) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v BatchDeletion) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *Webhook) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v Webhook) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *WebhookPage) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v WebhookPage) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *WebhookHeaders) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v WebhookHeaders) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *WebhookSecret) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v WebhookSecret) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *ManagementKey) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v ManagementKey) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *TeamRoleBinding) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v TeamRoleBinding) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *ManagementKeyCreator) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v ManagementKeyCreator) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *ManagementKeyPage) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v ManagementKeyPage) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *Team) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v Team) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *TeamSettings) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v TeamSettings) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *BrandInformation) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v BrandInformation) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *TeamPage) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v TeamPage) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *AccessToken) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v AccessToken) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *TeamAPIKey) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v TeamAPIKey) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *TeamAPIKeyPage) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v TeamAPIKeyPage) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *TeamCustomCredentials) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v TeamCustomCredentials) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *TeamCustomCredentialsPage) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v TeamCustomCredentialsPage) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *TeamCustomCredentialsPreparation) UnmarshalJSON(b []byte) error {
	return jsonread.Unmarshal(b, v)
}

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v TeamCustomCredentialsPreparation) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *PreparationStep) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v PreparationStep) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *ETLPipeline) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v ETLPipeline) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *ETLPipelinePage) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v ETLPipelinePage) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *AzureAMQP) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v AzureAMQP) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *EventHubMatcher) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v EventHubMatcher) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads a JSON value; only text that is not JSON is an error. See [RawObject].
func (v *BlobStorage) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every member that came, with the changes made since. See [RawObject].
func (v BlobStorage) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads v from JSON. It fails only if b is not valid JSON. See [RawObject].
func (v *EventDestinationPreferences) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every received field, with the changes made since. See [RawObject].
func (v EventDestinationPreferences) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads v from JSON. It fails only if b is not valid JSON. See [RawObject].
func (v *CloudPubSub) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every received field, with the changes made since. See [RawObject].
func (v CloudPubSub) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads v from JSON. It fails only if b is not valid JSON. See [RawObject].
func (v *RabbitMQ) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every received field, with the changes made since. See [RawObject].
func (v RabbitMQ) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }

// UnmarshalJSON reads v from JSON. It fails only if b is not valid JSON. See [RawObject].
func (v *Svix) UnmarshalJSON(b []byte) error { return jsonread.Unmarshal(b, v) }

// MarshalJSON writes every received field, with the changes made since. See [RawObject].
func (v Svix) MarshalJSON() ([]byte, error) { return jsonread.Marshal(v) }
