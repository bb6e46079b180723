package labhealth

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"go/ast"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

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

	APIKey{}, ConnectedProvider{}, ConnectionErrorDetails{}, CreateLinkTokenBody{}, Device{}, SearchUsersParams{}, UpdateWebhookBody{}, Webhook{}, WebhookPage{}, LinkProvider{}, LinkSource{}, LinkToken{}, TeamDetails{}, UpdateUserBody{}, UpdateUserInfoBody{}, UserInfo{},

	NumericResult{}, RangeResult{}, CommentResult{}, CodedResult{}, UnparsedResult{},

	AccessToken{}, AzureAMQP{}, BlobStorage{}, CreateWebhookBody{}, Credentials{}, CustomCredentialsDetails{}, ETLPipeline{}, ETLPipelinePage{},
	EventHubDestination{}, EventHubMatcher{}, FitbitCredentials{}, GetLabsCredentials{}, ManagementKey{}, ManagementKeyCreator{},
	ManagementKeyPage{}, PhlebFindersCredentials{}, RabbitMQ{}, Secret(""), TeamAPIKey{}, TeamAPIKeyPage{},
	TeamCustomCredentials{}, TeamCustomCredentialsPage{}, UpsertETLPipelinesBody{}, UpsertTeamCustomCredentialsBody{}, WebhookHeaders{},
	WebhookSecret{},
}

// patientFields are the JSON names of fields with patient data.
var patientFields = []string{
	"first_name", "last_name", "dob", "gender", "phone_number", "email", "medical_proxy", "race", "ethnicity", "sexual_orientation",
	"gender_identity", "household_income", "household_size", "receiver_name", "first_line", "second_line", "zip", "zip_code", "appointment_notes", "access_notes", "npi",
	"sample_id", "notes", "clinical_notes", "requisition_form_url", "outbound_tracking_number", "outbound_tracking_url",
	"inbound_tracking_number", "inbound_tracking_url", "fallback_birth_date", "patient", "patient_id", "specimen_number", "external_user_id", "device_id", "result", "lat", "heartrate",
}

// harmlessFields have the name of a field with patient data and hold none.
var harmlessFields = map[string]bool{"PrometheusQueryData.result": true}

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
				if slices.Contains(patientFields, tag) && !harmlessFields[name+"."+tag] {
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

const (
	canaryText   = "Kanarie vogel@7Q"
	canaryNumber = 987654321
	canaryYear   = 7391
)

// canaries are texts that no output may have: the values in the forms of fmt and encoders.
var canaries = func() []string {
	list := []string{
		canaryText, url.QueryEscape(canaryText), url.PathEscape(canaryText), hex.EncodeToString([]byte(canaryText)),
		strings.ToUpper(hex.EncodeToString([]byte(canaryText))), strings.Trim(fmt.Sprint([]byte(canaryText)), "[]"),
		strconv.Itoa(canaryNumber), fmt.Sprintf("%x", canaryNumber), fmt.Sprintf("%X", canaryNumber),
		"Kanarie", "vogel",
	}
	for shift := range 3 { // base64 depends on where the text begins
		b := base64.StdEncoding.EncodeToString(append(make([]byte, shift), canaryText...))
		list = append(list, b[4:len(b)-4])
	}
	return list
}()

// canaryYears matches the year as a word, because it may occur within other digits by chance.
var canaryYears = regexp.MustCompile(`\b` + strconv.Itoa(canaryYear) + `\b`)

// fillCanaries sets every exported field of v to a canary. n numbers the strings.
func fillCanaries(v reflect.Value, n *int) {
	if !v.CanSet() {
		return
	}
	switch p := v.Addr().Interface().(type) {
	case *RawObject:
		return
	case *uuid.UUID:
		*p = uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01")
		return
	case *time.Time:
		*p = time.Date(canaryYear, 6, 5, 4, 3, 2, 0, time.UTC)
		return
	case *Date:
		*p = Date{canaryYear, 6, 5}
		return
	case *OrderStatus:
		*p = "received.testkit.ordered" // an order shows it
		return
	case *json.Number:
		*p = json.Number(strconv.Itoa(canaryNumber))
		return
	case *json.RawMessage:
		*n++
		*p = json.RawMessage(fmt.Sprintf(`"%s-%d"`, canaryText, *n))
		return
	case *http.Header:
		*p = http.Header{"X-Echo": {canaryText}}
		return
	case *OrderDetailsData:
		*p = &TestkitOrder{}
		fillCanaries(reflect.ValueOf(*p).Elem(), n)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillCanaries(v.Elem(), n)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fillCanaries(field, n)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(canaryText))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillCanaries(v.Index(0), n)
	case reflect.Map:
		e := reflect.New(v.Type().Elem()).Elem()
		fillCanaries(e, n)
		v.Set(reflect.MakeMap(v.Type()))
		*n++
		v.SetMapIndex(reflect.ValueOf(fmt.Sprintf("%s-%d", canaryText, *n)).Convert(v.Type().Key()), e)
	case reflect.String:
		*n++
		v.SetString(fmt.Sprintf("%s-%d", canaryText, *n))
	case reflect.Int64, reflect.Int:
		v.SetInt(canaryNumber)
	case reflect.Float64:
		v.SetFloat(canaryNumber)
	case reflect.Bool:
		v.SetBool(true)
	}
}

func TestRedaction(t *testing.T) {
	outputs := 0
	for _, example := range redactedTypes {
		typ := reflect.TypeOf(example)
		made, texts := reflect.New(typ), 0
		fillCanaries(made.Elem(), &texts)
		values := map[string]reflect.Value{"made": made}
		if reader, ok := reflect.New(typ).Interface().(json.Unmarshaler); ok { // with the bytes it came as
			text := []byte(`"` + canaryText + `"`) // for the type that has nothing else
			if typ != reflect.TypeFor[UnknownOrderDetails]() {
				text = mustEncode(t, made.Interface())
			}
			if err := reader.UnmarshalJSON(text); err != nil {
				t.Fatal(err)
			}
			values["read"] = reflect.ValueOf(reader)
		}
		for how, p := range values {
			t.Run(typ.Name()+"/"+how, func(t *testing.T) { outputs += checkPrinted(t, p) })
		}
		if typ.Kind() == reflect.Struct && encodes(typ) && typ != reflect.TypeFor[UnknownOrderDetails]() {
			text := string(mustEncode(t, made.Interface()))
			for n := 1; n <= texts; n++ {
				if !strings.Contains(text, fmt.Sprintf(`%s-%d"`, canaryText, n)) {
					t.Errorf("%s: encoding to JSON leaves out text %d of %d", typ.Name(), n, texts)
				}
			}
		}
	}
	t.Logf("%d types, %d outputs", len(redactedTypes), outputs)
}

// encodes reports whether typ is meant to be encoded to JSON.
func encodes(typ reflect.Type) bool {
	for _, field := range reflect.VisibleFields(typ) {
		if name := field.Tag.Get("json"); name != "" && name != "-" {
			return true
		}
	}
	return false
}

// checkPrinted checks all output of the value of p that its type can control, and returns the
// number of outputs.
func checkPrinted(t *testing.T, p reflect.Value) (outputs int) {
	v := p.Elem()
	pp := reflect.New(p.Type())
	pp.Elem().Set(p)
	anys := func(v reflect.Value) []reflect.Value {
		s := reflect.MakeSlice(reflect.SliceOf(v.Type()), 1, 1)
		s.Index(0).Set(v)
		a := reflect.New(reflect.ArrayOf(1, v.Type())).Elem()
		a.Index(0).Set(v)
		m := reflect.MakeMap(reflect.MapOf(reflect.TypeFor[string](), v.Type()))
		m.SetMapIndex(reflect.ValueOf("key"), v)
		f := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "Field", Type: v.Type()}})).Elem()
		f.Field(0).Set(v)
		return []reflect.Value{v, s, a, m, f, reflect.ValueOf(struct{ Any any }{v.Interface()}), reflect.ValueOf([]any{v.Interface()})}
	}
	check := func(how, out string) {
		t.Helper()
		outputs++
		for _, canary := range canaries {
			if strings.Contains(out, canary) {
				t.Errorf("%s of %s shows %q: %.300s", how, p.Type().Elem(), canary, out)
				return
			}
		}
		if canaryYears.MatchString(out) {
			t.Errorf("%s of %s shows a date: %.300s", how, p.Type().Elem(), out)
		}
	}
	untimed := &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey { // whose digits may be any
			return slog.Attr{}
		}
		return a
	}}
	all := append(anys(v), anys(p)...)
	all = append(all, pp, reflect.Zero(p.Type()))
	for _, value := range all {
		x := value.Interface()
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%o", "%t", "%f", "%20.5v", "%-8s", "%T"} {
			check(fmt.Sprintf("%s with %T", verb, x), fmt.Sprintf(verb, x))
		}
		check("Sprint", fmt.Sprint(x))
		check("Sprintln", fmt.Sprintln(x, x))
		check("Errorf", fmt.Errorf("failed: %v", x).Error())
		var b bytes.Buffer
		slog.New(slog.NewTextHandler(&b, untimed)).Info("m", "value", x, slog.Group("g", "value", x))
		check(fmt.Sprintf("slog's text handler with %T", x), b.String())
	}
	for _, x := range []any{v.Interface(), p.Interface(), reflect.Zero(p.Type()).Interface()} {
		var b bytes.Buffer
		logger := slog.New(slog.NewJSONHandler(&b, untimed))
		logger.Info("m", "value", x, slog.Group("g", "value", x))
		logger.With("with", x).WithGroup("g").Info("m")
		check(fmt.Sprintf("slog's JSON handler with %T", x), b.String())
	}
	return outputs
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
