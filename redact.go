package labhealth

import (
	"fmt"
	"log/slog"
	"strings"
)

// Types that hold patient data print a short form under every verb of fmt and as attributes of slog. Encoding them to JSON is
// complete: that is how they are stored and sent. What no type can prevent: fmt prints the content of an unexported field of a
// caller's struct, and slog's JSON handler encodes values that sit inside structs and slices.

// redacted prints what the value says of itself to a log.
func redacted(s fmt.State, v slog.LogValuer) { fmt.Fprint(s, v.LogValue().String()) }

func redactedValue(name string) slog.Value {
	return slog.StringValue("labhealth." + name + "{redacted}")
}

// LogValue shows the order's id and status.
func (v Order) LogValue() slog.Value {
	return slog.StringValue("labhealth.Order{" + v.ID.String() + " " + statusText(v.CurrentStatus()) + ", redacted}")
}

// statusText shows a status that looks like one: it comes from outside, and any text may come.
func statusText(s OrderStatus) string {
	if len(s) > 128 || strings.Trim(string(s), codeChars+".") != "" {
		return "?"
	}
	return string(s)
}

// Format prints what [Order.LogValue] returns.
func (v Order) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows the service's id of the user.
func (v User) LogValue() slog.Value {
	return slog.StringValue("labhealth.User{" + v.UserID.String() + ", redacted}")
}

// Format prints what [User.LogValue] returns.
func (v User) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (PatientDetailsWithValidation) LogValue() slog.Value {
	return redactedValue("PatientDetailsWithValidation")
}

// Format shows nothing of the value.
func (v PatientDetailsWithValidation) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (GuarantorDetails) LogValue() slog.Value { return redactedValue("GuarantorDetails") }

// Format shows nothing of the value.
func (v GuarantorDetails) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (Address) LogValue() slog.Value { return redactedValue("Address") }

// Format shows nothing of the value.
func (v Address) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (PatientAddress) LogValue() slog.Value { return redactedValue("PatientAddress") }

// Format shows nothing of the value.
func (v PatientAddress) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (PatientAddressWithValidation) LogValue() slog.Value {
	return redactedValue("PatientAddressWithValidation")
}

// Format shows nothing of the value.
func (v PatientAddressWithValidation) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (PhysicianCreateRequest) LogValue() slog.Value { return redactedValue("PhysicianCreateRequest") }

// Format shows nothing of the value.
func (v PhysicianCreateRequest) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (SignatureImage) LogValue() slog.Value { return redactedValue("SignatureImage") }

// Format shows nothing of the value.
func (v SignatureImage) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (OrderPatientDetails) LogValue() slog.Value { return redactedValue("OrderPatientDetails") }

// Format shows nothing of the value.
func (v OrderPatientDetails) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (OrderPatientAddress) LogValue() slog.Value { return redactedValue("OrderPatientAddress") }

// Format shows nothing of the value.
func (v OrderPatientAddress) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (ShippingAddress) LogValue() slog.Value { return redactedValue("ShippingAddress") }

// Format shows nothing of the value.
func (v ShippingAddress) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (OrderPhysician) LogValue() slog.Value { return redactedValue("OrderPhysician") }

// Format shows nothing of the value.
func (v OrderPhysician) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (OrderDetails) LogValue() slog.Value { return redactedValue("OrderDetails") }

// Format shows nothing of the value.
func (v OrderDetails) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (TestkitOrder) LogValue() slog.Value { return redactedValue("TestkitOrder") }

// Format shows nothing of the value.
func (v TestkitOrder) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (UnknownOrderDetails) LogValue() slog.Value { return redactedValue("UnknownOrderDetails") }

// Format shows nothing of the value.
func (v UnknownOrderDetails) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (Shipment) LogValue() slog.Value { return redactedValue("Shipment") }

// Format shows nothing of the value.
func (v Shipment) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (AoEAnswer) LogValue() slog.Value { return redactedValue("AoEAnswer") }

// Format shows nothing of the value.
func (v AoEAnswer) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (ImportOrderBody) LogValue() slog.Value { return redactedValue("ImportOrderBody") }

// Format shows nothing of the value.
func (v ImportOrderBody) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (CreateOrderBody) LogValue() slog.Value { return redactedValue("CreateOrderBody") }

// Format shows nothing of the value.
func (v CreateOrderBody) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows what [Order.LogValue] shows of the order.
func (v PostOrderResponse) LogValue() slog.Value {
	return slog.StringValue("labhealth.PostOrderResponse{" + v.Order.LogValue().String() + ", redacted}")
}

// Format prints what [PostOrderResponse.LogValue] returns.
func (v PostOrderResponse) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (OrderPage) LogValue() slog.Value { return redactedValue("OrderPage") }

// Format shows nothing of the value.
func (v OrderPage) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (UserPage) LogValue() slog.Value { return redactedValue("UserPage") }

// Format shows nothing of the value.
func (v UserPage) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (FallbackBirthDate) LogValue() slog.Value { return redactedValue("FallbackBirthDate") }

// Format shows nothing of the value.
func (v FallbackBirthDate) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (ListOrdersParams) LogValue() slog.Value { return redactedValue("ListOrdersParams") }

// Format shows nothing of the value.
func (v ListOrdersParams) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (Response) LogValue() slog.Value { return redactedValue("Response") }

// Format shows nothing of the value.
func (v Response) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (CreateUserBody) LogValue() slog.Value { return redactedValue("CreateUserBody") }

// Format shows nothing of the value.
func (v CreateUserBody) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (OrderResults) LogValue() slog.Value { return redactedValue("OrderResults") }

// Format shows nothing of the value.
func (v OrderResults) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (ResultsMetadata) LogValue() slog.Value { return redactedValue("ResultsMetadata") }

// Format shows nothing of the value.
func (v ResultsMetadata) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (Result) LogValue() slog.Value { return redactedValue("Result") }

// Format shows nothing of the value.
func (v Result) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (MissingResult) LogValue() slog.Value { return redactedValue("MissingResult") }

// Format shows nothing of the value.
func (v MissingResult) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (WorkoutStream) LogValue() slog.Value { return redactedValue("WorkoutStream") }

// Format shows nothing of the value.
func (v WorkoutStream) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows the id of the key.
func (v ManagementKey) LogValue() slog.Value {
	return slog.StringValue("labhealth.ManagementKey{" + v.ID.String() + ", redacted}")
}

// Format prints what [ManagementKey.LogValue] returns.
func (v ManagementKey) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows the id of the key.
func (v TeamAPIKey) LogValue() slog.Value {
	return slog.StringValue("labhealth.TeamAPIKey{" + v.ID.String() + ", redacted}")
}

// Format prints what [TeamAPIKey.LogValue] returns.
func (v TeamAPIKey) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (ManagementKeyPage) LogValue() slog.Value { return redactedValue("ManagementKeyPage") }

// Format shows nothing of the value.
func (v ManagementKeyPage) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (TeamAPIKeyPage) LogValue() slog.Value { return redactedValue("TeamAPIKeyPage") }

// Format shows nothing of the value.
func (v TeamAPIKeyPage) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (CreateWebhookBody) LogValue() slog.Value { return redactedValue("CreateWebhookBody") }

// Format shows nothing of the value.
func (v CreateWebhookBody) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (WebhookHeaders) LogValue() slog.Value { return redactedValue("WebhookHeaders") }

// Format shows nothing of the value.
func (v WebhookHeaders) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (WebhookSecret) LogValue() slog.Value { return redactedValue("WebhookSecret") }

// Format shows nothing of the value.
func (v WebhookSecret) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (AccessToken) LogValue() slog.Value { return redactedValue("AccessToken") }

// Format shows nothing of the value.
func (v AccessToken) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (TeamCustomCredentials) LogValue() slog.Value { return redactedValue("TeamCustomCredentials") }

// Format shows nothing of the value.
func (v TeamCustomCredentials) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (TeamCustomCredentialsPage) LogValue() slog.Value {
	return redactedValue("TeamCustomCredentialsPage")
}

// Format shows nothing of the value.
func (v TeamCustomCredentialsPage) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (UpsertTeamCustomCredentialsBody) LogValue() slog.Value {
	return redactedValue("UpsertTeamCustomCredentialsBody")
}

// Format shows nothing of the value.
func (v UpsertTeamCustomCredentialsBody) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (ETLPipeline) LogValue() slog.Value { return redactedValue("ETLPipeline") }

// Format shows nothing of the value.
func (v ETLPipeline) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (ETLPipelinePage) LogValue() slog.Value { return redactedValue("ETLPipelinePage") }

// Format shows nothing of the value.
func (v ETLPipelinePage) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (UpsertETLPipelinesBody) LogValue() slog.Value { return redactedValue("UpsertETLPipelinesBody") }

// Format shows nothing of the value.
func (v UpsertETLPipelinesBody) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (RabbitMQ) LogValue() slog.Value { return redactedValue("RabbitMQ") }

// Format shows nothing of the value.
func (v RabbitMQ) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (AzureAMQP) LogValue() slog.Value { return redactedValue("AzureAMQP") }

// Format shows nothing of the value.
func (v AzureAMQP) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (EventHubMatcher) LogValue() slog.Value { return redactedValue("EventHubMatcher") }

// Format shows nothing of the value.
func (v EventHubMatcher) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (BlobStorage) LogValue() slog.Value { return redactedValue("BlobStorage") }

// Format shows nothing of the value.
func (v BlobStorage) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows nothing of the value.
func (EventHubDestination) LogValue() slog.Value { return redactedValue("EventHubDestination") }

// Format shows nothing of the value.
func (v EventHubDestination) Format(s fmt.State, _ rune) { redacted(s, v) }

// LogValue shows what [FieldError.Format] prints.
func (f FieldError) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(f)) }

// LogValue shows nothing of the value.
func (UndoDeleteParams) LogValue() slog.Value { return redactedValue("UndoDeleteParams") }

// Format shows nothing of the value.
func (v UndoDeleteParams) Format(s fmt.State, _ rune) { redacted(s, v) }
