package labhealth

import (
	"bytes"
	"fmt"
	"go/ast"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/canarytest"
	"github.com/labhealth/labhealth-go/internal/reference/referencetest"
)

// redactedTypes are the types that can hold patient data or keys. TestRedactedTypes compares them
// with the source.
var redactedTypes = []any{
	Appointment{}, AppointmentAvailability{}, AppointmentEvent{}, AppointmentLocation{}, AreaInfo{}, AreaParams{},
	BookAppointmentBody{}, CancelAppointmentBody{}, DaySlots{}, LabLocation{}, LabLocationMetadata{}, LngLat{}, PSCInfo{},
	RequestAppointmentBody{}, RescheduleAppointmentBody{}, SitesParams{}, USAddress{}, WalkInAvailabilityParams{},

	Address{}, AoEAnswer{}, CreateOrderBody{}, CreateUserBody{}, FallbackBirthDate{}, FieldError{}, GuarantorDetails{}, ImportOrderBody{},
	ListOrdersParams{}, MissingResult{}, Order{}, OrderDetails{}, OrderPage{}, OrderPatientAddress{}, OrderPatientDetails{}, OrderPhysician{},
	OrderResults{}, PatientAddress{}, PatientAddressWithValidation{}, PatientDetailsWithValidation{}, PhysicianCreateRequest{},
	PostOrderResponse{}, Response{}, Result{}, ResultsMetadata{}, Shipment{}, ShippingAddress{}, SignatureImage{}, TestkitOrder{},
	SamplePage{}, SleepStream{}, SleepStreamSample{}, SummaryPage{},
	ClinicalInformation{}, CreateTestkitBody{}, HealthInsuranceCreateRequest{}, PerformingLaboratory{}, PersonDetails{},
	PhysicianCreateRequestBase{}, RegisterTestkitBody{}, SampleData{}, SampleTime{}, UndoDeleteParams{}, UnknownOrderDetails{}, User{}, UserPage{}, WorkoutStream{},

	APIKey{}, ConnectedProvider{}, ConnectionErrorDetails{}, CreateLinkTokenBody{}, Device{}, SearchUsersParams{}, LinkProvider{}, LinkSource{}, LinkToken{}, TeamDetails{}, UpdateUserBody{}, UpdateUserInfoBody{}, UserInfo{},

	CreateInsuranceBody{}, InsuredPerson{}, Insurance{}, CompanyDetails{}, Payor{}, DeprecatedPayor{}, SearchPayorsParams{}, CreatePayorBody{},
	UnmatchedResult{}, UnmatchedResultPage{}, MatchReviewPatient{}, ListUnmatchedResultsParams{}, AcceptUnmatchedResultBody{},
	ResolveUnmatchedResultBody{}, CreateUnmatchedResultTestBody{}, CreateParsingJobBody{}, LabReportFile{}, ParsingJob{}, ParsedLabReportData{},
	ResultMetadata{}, ConnectPasswordBody{}, ConnectEmailBody{}, SignInToken{}, ProviderLink{}, LinkRedirect{},

	NumericResult{}, RangeResult{}, CommentResult{}, CodedResult{}, UnparsedResult{},

	Credentials{}, Secret(""),
}

// patientFields are the JSON names of fields with patient data.
var patientFields = []string{
	"first_name", "last_name", "dob", "gender", "phone_number", "email", "medical_proxy", "race", "ethnicity", "sexual_orientation",
	"gender_identity", "household_income", "household_size", "receiver_name", "first_line", "second_line", "zip", "zip_code", "appointment_notes", "access_notes", "npi",
	"sample_id", "notes", "clinical_notes", "requisition_form_url", "outbound_tracking_number", "outbound_tracking_url",
	"inbound_tracking_number", "inbound_tracking_url", "member_id", "group_id", "username", "password", "mfa_code", "sign_in_token", "fallback_birth_date", "patient", "patient_id", "specimen_number", "external_user_id", "device_id", "result", "lat", "heartrate",
}

// A type with patient data in a field, or within an exported field, redacts itself. The types are
// those of the source, so that none is left out.
func TestRedactedTypes(t *testing.T) {
	fset, files := referencetest.ParsePackage(t)
	type source struct {
		structure *ast.StructType
		methods   map[string]bool
		redacted  bool // embeds Redacted, or declares LogValue by hand
		shown     bool // declares it in printed.go
	}
	types := map[string]*source{}
	of := func(name string) *source {
		if types[name] == nil {
			types[name] = &source{methods: map[string]bool{}}
		}
		return types[name]
	}
	interfaces := map[string]string{} // a sealed interface, by its method
	for _, f := range files {
		for _, decl := range f.Decls {
			switch decl := decl.(type) {
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					spec, ok := spec.(*ast.TypeSpec)
					if !ok {
						continue
					}
					switch typ := spec.Type.(type) {
					case *ast.StructType:
						of(spec.Name.Name).structure = typ
						for _, field := range typ.Fields.List {
							if len(field.Names) == 0 && fmt.Sprint(field.Type) == "Redacted" {
								of(spec.Name.Name).redacted = true
							}
						}
					case *ast.InterfaceType:
						for _, m := range typ.Methods.List {
							if len(m.Names) == 1 {
								interfaces[m.Names[0].Name] = spec.Name.Name
							}
						}
					}
				}
			case *ast.FuncDecl:
				if decl.Recv != nil {
					typ := decl.Recv.List[0].Type
					if pointer, ok := typ.(*ast.StarExpr); ok {
						if decl.Name.Name == "Format" || decl.Name.Name == "LogValue" {
							continue // a method of the pointer does not help the value
						}
						typ = pointer.X
					}
					if name, ok := typ.(*ast.Ident); ok {
						of(name.Name).methods[decl.Name.Name] = true
						file := fset.Position(decl.Pos()).Filename // in these two, LogValue shows what it holds
						if decl.Name.Name == "LogValue" && file != "printed.go" && file != "observe.go" {
							of(name.Name).redacted = true
						}
						of(name.Name).shown = of(name.Name).shown || file == "printed.go"
					}
				}
			}
		}
	}
	// named returns the types in an expression, and those that implement its interfaces.
	named := func(e ast.Expr) (list []string) {
		ast.Inspect(e, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				list = append(list, id.Name)
				for method, name := range interfaces {
					for typ, s := range types {
						if id.Name == name && s.methods[method] {
							list = append(list, typ)
						}
					}
				}
			}
			return true
		})
		return list
	}
	bears := map[string]string{}
	for changed := true; changed; {
		changed = false
		for name, s := range types {
			if s.structure == nil || bears[name] != "" || !ast.IsExported(name) {
				continue
			}
			for _, field := range s.structure.Fields.List {
				tag := ""
				if field.Tag != nil {
					text, _ := strconv.Unquote(field.Tag.Value)
					tag, _, _ = strings.Cut(reflect.StructTag(text).Get("json"), ",")
				}
				if slices.Contains(patientFields, tag) {
					bears[name] = tag
				}
				if len(field.Names) > 0 && !field.Names[0].IsExported() {
					continue
				}
				for _, typ := range named(field.Type) {
					if bears[typ] != "" && bears[name] == "" {
						bears[name] = typ
					}
				}
			}
			changed = changed || bears[name] != ""
		}
	}
	// The method set decides, because two embedded types hide each other's methods.
	tested := map[string]bool{}
	for _, v := range redactedTypes {
		name := reflect.TypeOf(v).Name()
		tested[name] = true
		_, formats := v.(fmt.Formatter)
		logs, ok := v.(slog.LogValuer)
		if !formats || !ok {
			t.Errorf("%s does not redact itself", name)
		} else if got := logs.LogValue().String(); got != "{redacted}" && name != "Secret" && name != "FieldError" && !strings.HasPrefix(got, "labhealth."+name+"{") {
			t.Errorf("%s prints as %s", name, got)
		}
	}
	for name, why := range bears {
		if !tested[name] {
			t.Errorf("%s holds patient data (%s) and is not tested", name, why)
		}
		if types[name].shown {
			t.Errorf("%s holds patient data (%s) and prints it: remove it from printed.go", name, why)
		}
	}
	for name, s := range types {
		if s.redacted && ast.IsExported(name) && name != "Redacted" && name != "RawObject" && !tested[name] {
			t.Errorf("%s redacts itself and is not tested", name)
		}
	}
	if len(bears) < 25 {
		t.Errorf("only %d types hold patient data: the search is broken", len(bears))
	}
}

const canaryText = canarytest.Text

// special fills what has a form of its own.
func special(f *canarytest.Filler, pointer any) bool {
	switch p := pointer.(type) {
	case *OrderStatus:
		*p = "received.testkit.ordered" // an order shows it
	case *OrderDetailsData:
		filled := &TestkitOrder{}
		f.Fill(reflect.ValueOf(filled).Elem())
		*p = filled
	default:
		return false
	}
	return true
}

func TestRedaction(t *testing.T) {
	outputs := 0
	for _, example := range redactedTypes {
		var raw []byte
		if typ := reflect.TypeOf(example); typ == reflect.TypeFor[UnknownOrderDetails]() {
			raw = []byte(`"` + canaryText + `"`)
		}
		outputs += canarytest.Redacted(t, reflect.TypeOf(example), canarytest.Filler{Special: special}, raw)
	}
	t.Logf("%d types, %d outputs", len(redactedTypes), outputs)
}

// The redacted forms of orders and users have what a log needs to identify them.
func TestRedactedForms(t *testing.T) {
	id := uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01")
	order := Order{ID: id, Notes: new("n"), LastEvent: OrderEvent{Status: OrderStatusReceivedTestkitOrdered}}
	tests := map[string]any{
		"labhealth.Order{3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01 received.testkit.ordered, redacted}": order,
		"labhealth.User{3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01, redacted}":                           &User{UserID: id},
		"{redacted}":   ImportOrderBody{},
		"[{redacted}]": []Shipment{{}},
		"<nil>":        (*Order)(nil),
		"patient_details.first_name (string_too_long)": FieldError{Loc: []string{"patient_details", "first_name"}, Type: "string_too_long", Msg: "Ada Example"},
	}
	for want, v := range tests {
		for _, verb := range []string{"%v", "%+v", "%#v", "%d", "%q"} {
			if got := fmt.Sprintf(verb, v); got != want && !(v == (*Order)(nil) && strings.Contains(got, "nil")) && !strings.Contains(verb+got, "#v[]labhealth.Shipment{{redacted}}") {
				t.Errorf("%s: got %s, want %s", verb, got, want)
			}
		}
	}
}

// A status is printed only if it looks like one.
func TestMalformedStatusIsNotPrinted(t *testing.T) {
	o := Order{LastEvent: OrderEvent{Status: "received.testkit.ordered"}}
	if got := fmt.Sprint(o); got != "labhealth.Order{00000000-0000-0000-0000-000000000000 received.testkit.ordered, redacted}" {
		t.Error(got)
	}
	for _, status := range []OrderStatus{"Ada Example 1990\nfoo", "Ada", "ada.example.ordered", "received.Ada.ordered", "received.testkit.1990"} {
		o.LastEvent.Status = status
		if got := fmt.Sprint(o); got != "labhealth.Order{00000000-0000-0000-0000-000000000000 ?, redacted}" {
			t.Error(got)
		}
	}
}

type (
	ownPatient struct{ OrderPatientDetails }
	twoOwn     struct {
		OrderPatientDetails
		Shipment
	}
	ownOrder struct {
		Order
		OrderPatientDetails
	}
)

// A program's struct that embeds a received type is redacted as that type, also beside another, if
// the methods of one come first. Otherwise they hide each other: it is redacted when it is printed,
// but for the JSON handler of slog it is a struct like any other, which SECURITY.md says.
func TestRedactedWithinEmbeddedTypes(t *testing.T) {
	patient := OrderPatientDetails{FirstName: new(canaryText), Gender: canaryText}
	logged := func(v any) string {
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "value", v)
		return log.String()
	}
	printed := func(v any) (all []string) {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			all = append(all, fmt.Sprintf(verb, v))
		}
		return all
	}
	one, two, order := ownPatient{patient}, twoOwn{OrderPatientDetails: patient}, ownOrder{OrderPatientDetails: patient}
	for _, out := range append(slices.Concat(printed(one), printed(two), printed(order)), logged(one), logged(order)) {
		if strings.Contains(out, canaryText) {
			t.Errorf("printed as %s", out)
		}
	}
	if !strings.Contains(logged(two), canaryText) {
		t.Error("two embedded types are redacted for slog's JSON handler: remove the limit from SECURITY.md and Redacted")
	}
}
