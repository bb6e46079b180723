package labhealth

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go/internal/jsonread"
	"github.com/labhealth/labhealth-go/internal/plain"
)

// tree is a JSON value that keeps the order of its fields.
type tree struct {
	text  string // of a string, number or literal
	kind  byte   // '{', '[' or 0
	names []string
	parts []*tree
}

func treeOf(text string) *tree {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return readTree(d)
}

func readTree(d *json.Decoder) *tree {
	token, err := d.Token()
	if err != nil {
		panic(err)
	}
	delim, ok := token.(json.Delim)
	if !ok {
		text, _ := json.Marshal(token)
		return &tree{text: string(text)}
	}
	t := &tree{kind: byte(delim)}
	for d.More() {
		if delim == '{' {
			name, _ := d.Token()
			t.names = append(t.names, name.(string))
		}
		t.parts = append(t.parts, readTree(d))
	}
	d.Token()
	return t
}

// disturb changes a document: fields in any order, missing, null, of another type or unknown.
func (t *tree) disturb(r *rand.Rand) {
	if t.kind == '{' {
		for i := len(t.parts) - 1; i >= 0; i-- {
			if r.IntN(12) == 0 {
				t.names, t.parts = slices.Delete(t.names, i, i+1), slices.Delete(t.parts, i, i+1)
			}
		}
	}
	for i, part := range t.parts {
		switch r.IntN(20) {
		case 0:
			t.parts[i] = &tree{text: "null"}
		case 1:
			t.parts[i] = junk(r)
		default:
			part.disturb(r)
		}
	}
	for t.kind != 0 && r.IntN(3) == 0 {
		at := r.IntN(len(t.parts) + 1)
		if t.kind == '{' {
			t.names = slices.Insert(t.names, at, "x_"+strconv.Itoa(len(t.names)))
		}
		t.parts = slices.Insert(t.parts, at, junk(r))
	}
	if t.kind == '{' {
		r.Shuffle(len(t.parts), func(i, j int) {
			t.names[i], t.names[j] = t.names[j], t.names[i]
			t.parts[i], t.parts[j] = t.parts[j], t.parts[i]
		})
	}
}

func junk(r *rand.Rand) *tree {
	return treeOf([]string{
		`null`, `true`, `0`, `-1.50`, `1e3`, `123456789012345678901234567890`, `""`, `"text"`, `"2024-15-"`, `"\u00e9\n<&>"`, `{}`, `[]`,
		`{"id":"x","name":[1,2.0],"created_at":7}`, `[{"a":1},[],null]`, `"e66321dd-4e0g-4a64-9b5e-1f2d3c4b5a69"`,
	}[r.IntN(15)])
}

func (t *tree) write(b *bytes.Buffer, r *rand.Rand) {
	space := func() {
		if r.IntN(10) == 0 {
			b.WriteString([]string{" ", "\n\t", "\r\n"}[r.IntN(3)])
		}
	}
	if t.kind == 0 {
		b.WriteString(t.text)
		return
	}
	b.WriteByte(t.kind)
	for i, part := range t.parts {
		if i > 0 {
			b.WriteByte(',')
		}
		space()
		if t.kind == '{' {
			name, _ := json.Marshal(t.names[i])
			if r.IntN(20) == 0 {
				name = bytes.Replace(name, []byte("e"), []byte(`\u0065`), 1)
			}
			b.Write(name)
			space()
			b.WriteByte(':')
			space()
		}
		part.write(b, r)
		space()
	}
	b.WriteByte(t.kind + 2) // '}' follows '{' and ']' follows '[' by two
}

type (
	object = map[string]any
	list   = []any
)

// dataOf returns the JSON of v, decoded with the digits of its numbers.
func dataOf(t testing.TB, v any) (data any) {
	text, ok := v.([]byte)
	if !ok {
		text = mustEncode(t, v)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&data); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return data
}

// changes are changes of an order by a program, each with its change of the order's JSON. Some have
// no effect on some orders. Changes of one name exclude each other.
var changes = []struct {
	name string
	make func(t testing.TB, r *rand.Rand, o *Order, data object)
}{
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		o.ID, data["id"] = uuid.UUID{15: 9}, "00000000-0000-0000-0000-000000000009"
	}},
	{"Notes", func(t testing.TB, r *rand.Rand, o *Order, data object) { o.Notes, data["notes"] = new("<é>"), "<é>" }},
	{"Notes", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		if o.Notes != nil {
			o.Notes, data["notes"] = nil, nil
		}
	}},
	{"ClinicalNotes", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		if o.ClinicalNotes != nil {
			o.ClinicalNotes = nil
			delete(data, "clinical_notes")
		}
	}},
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) { o.Priority, data["priority"] = true, true }},
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		o.BillingType, data["billing_type"] = "patient_bill", "patient_bill"
	}},
	{"ActivateBy", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		o.ActivateBy, data["activate_by"] = &Date{2030, time.February, 3}, "2030-02-03"
	}},
	{"ActivateBy", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		if o.ActivateBy != nil {
			o.ActivateBy = nil
			delete(data, "activate_by")
		}
	}},
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		o.UpdatedAt, data["updated_at"] = time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC), "2030-01-02T03:04:05.000000006Z"
	}},
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		if test, ok := data["lab_test"].(object); ok {
			o.LabTest.Name, test["name"] = "Changed", "Changed"
			o.LabTest.Price, test["price"] = "12.50", json.Number("12.50")
		}
	}},
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		test, ok := data["lab_test"].(object)
		if !ok {
			return
		}
		if o.LabTest.Lab != nil && r.IntN(2) == 0 {
			lab := test["lab"].(object)
			o.LabTest.Lab.City, lab["city"] = "Shelbyville", "Shelbyville"
		} else if o.LabTest.Markers != nil {
			o.LabTest.Markers, test["markers"] = nil, nil
		}
	}},
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		event := OrderEvent{ID: 7, CreatedAt: time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC), Status: "cancelled.testkit.cancelled"}
		o.Events = append(o.Events, event)
		events, _ := data["events"].(list)
		data["events"] = append(events, object{"id": json.Number("7"), "created_at": "2030-01-02T00:00:00Z", "status": "cancelled.testkit.cancelled"})
	}},
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		if len(o.Events) > 0 {
			i := r.IntN(len(o.Events))
			o.Events = slices.Delete(o.Events, i, i+1)
			data["events"] = slices.Delete(data["events"].(list), i, i+1)
		}
	}},
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		if n := len(o.Events); n > 1 {
			i, j := r.IntN(n), r.IntN(n)
			events := data["events"].(list)
			o.Events[i], o.Events[j] = o.Events[j], o.Events[i]
			events[i], events[j] = events[j], events[i]
		}
	}},
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		if len(o.Events) > 0 {
			i := r.IntN(len(o.Events))
			if event, ok := data["events"].(list)[i].(object); ok {
				o.Events[i].Status, event["status"] = "changed", "changed"
			}
		}
	}},
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		if len(o.Events) > 0 { // a value that moves takes all it came with along
			i := r.IntN(len(o.Events))
			o.LastEvent = o.Events[i]
			data["last_event"] = dataOf(t, mustEncode(t, data["events"].(list)[i]))
		}
	}},
	{"ICDCodes", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		o.ICDCodes = append(o.ICDCodes, "Z00.0")
		codes, _ := data["icd_codes"].(list)
		data["icd_codes"] = append(codes, "Z00.0")
	}},
	{"ICDCodes", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		empty := 0
		for _, code := range o.ICDCodes {
			if code == "" {
				empty++
			}
		}
		if len(o.ICDCodes) > 1 && empty < 2 { // nobody can tell which of two malformed ones is meant
			i := r.IntN(len(o.ICDCodes))
			o.ICDCodes = slices.Delete(o.ICDCodes, i, i+1)
			data["icd_codes"] = slices.Delete(data["icd_codes"].(list), i, i+1)
		}
	}},
	{"ICDCodes", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		if o.ICDCodes != nil {
			o.ICDCodes = nil
			delete(data, "icd_codes")
		}
	}},
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		if o.PatientDetails != nil {
			o.PatientDetails.Email, data["patient_details"].(object)["email"] = new("new@example.com"), "new@example.com"
		}
	}},
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		if o.PatientAddress != nil {
			o.PatientAddress, data["patient_address"] = nil, nil
		}
	}},
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		o.Physician = &OrderPhysician{FirstName: "Alan", LastName: "Sample", NPI: "1"}
		data["physician"] = object{"first_name": "Alan", "last_name": "Sample", "npi": "1"}
	}},
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		if kit, ok := o.Details.Data.(*TestkitOrder); ok && kit.Shipment != nil {
			shipment := data["details"].(object)["data"].(object)["shipment"].(object)
			kit.Shipment.Notes, shipment["notes"] = new("left at the door"), "left at the door"
		}
	}},
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		details, ok := data["details"].(object)
		if !ok {
			return
		}
		if o.Details.Data != nil || details["data"] == nil {
			o.Details.Type, details["type"] = "on_site_collection", "on_site_collection"
			o.Details.Data = &OnSiteCollectionOrder{}
			details["data"] = object{"id": "00000000-0000-0000-0000-000000000000", "created_at": "0001-01-01T00:00:00Z", "updated_at": "0001-01-01T00:00:00Z"}
		}
	}},
	{"", func(t testing.TB, r *rand.Rand, o *Order, data object) {
		if tx := o.OrderTransaction; tx != nil && len(tx.Orders) > 0 {
			tx.Orders = tx.Orders[1:]
			transaction := data["order_transaction"].(object)
			transaction["orders"] = transaction["orders"].(list)[1:]
		}
	}},
}

func merge(t testing.TB, seed1, seed2 uint64) {
	r := rand.New(rand.NewPCG(seed1, seed2))
	doc := treeOf(plain.OrderJSON(r.IntN(1000)))
	doc.disturb(r)
	var b bytes.Buffer
	doc.write(&b, r)
	text := b.Bytes()

	var order Order
	if err := json.Unmarshal(text, &order); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if out, err := order.MarshalJSON(); err != nil || !bytes.Equal(out, text) {
		t.Fatalf("%s: unchanged, but written as %s, %v", text, out, err)
	}
	data := dataOf(t, text).(object)
	var made []int
	done := map[string]bool{}
	for range 1 + r.IntN(4) {
		n := r.IntN(len(changes))
		if c := changes[n]; c.name == "" || !done[c.name] {
			c.make(t, r, &order, data)
			made, done[c.name] = append(made, n), true
		}
	}
	out, err := order.MarshalJSON()
	if err != nil || !json.Valid(out) {
		t.Fatalf("%s: changes %v: written as %s, %v", text, made, out, err)
	}
	if got := dataOf(t, out); !reflect.DeepEqual(got, any(data)) {
		t.Fatalf("%s: changes %v (-want +got)\n%s", text, made, cmp.Diff(any(data), got))
	}
	var again Order
	if err := json.Unmarshal(out, &again); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	// The same fields, encoded without raw bytes. cmp.Diff would take longer than all the rest.
	want, err1 := jsonread.MarshalPlain(order)
	got, err2 := jsonread.MarshalPlain(again)
	if err1 != nil || err2 != nil || !bytes.Equal(want, got) || (seed1%50 == 0 && !cmp.Equal(order, again)) {
		t.Fatalf("%s: changes %v: read again (-want +got)\n%s", text, made, cmp.Diff(order, again))
	}
}

func TestMerge(t *testing.T) {
	rounds := 500
	if os.Getenv("LABHEALTH_TEST_LONG") == "1" {
		rounds = 10_000
	}
	for n := range rounds {
		merge(t, uint64(n), 7)
	}
}

func FuzzMerge(f *testing.F) {
	for n := range uint64(10) {
		f.Add(n, n*n)
	}
	f.Add(uint64(0), uint64(63))
	f.Fuzz(func(t *testing.T, seed1, seed2 uint64) { merge(t, seed1, seed2) })
}

// Plain types decode to the same values with encoding/json.
func TestOrdersLikeEncodingJSON(t *testing.T) {
	for n := range 200 {
		r := rand.New(rand.NewPCG(uint64(n), 3))
		doc := treeOf(plain.OrderJSON(n))
		var shuffle func(*tree)
		shuffle = func(part *tree) {
			for i := range part.names {
				j := r.IntN(i + 1)
				part.names[i], part.names[j] = part.names[j], part.names[i]
				part.parts[i], part.parts[j] = part.parts[j], part.parts[i]
			}
			for _, p := range part.parts {
				shuffle(p)
			}
		}
		shuffle(doc)
		var b bytes.Buffer
		doc.write(&b, r)
		var kept Order
		var bare plain.Order
		mustDecode(t, b.Bytes(), &kept)
		mustDecode(t, b.Bytes(), &bare)
		if odd := kept.Malformed(); odd != nil {
			t.Fatal(odd)
		}
		samePlain(t, "order", reflect.ValueOf(bare), reflect.ValueOf(kept))
		if t.Failed() {
			t.Fatal(b.String())
		}
	}
}

// samePlain compares the fields of a plain type with those of the same name.
func samePlain(t *testing.T, path string, want, got reflect.Value) {
	t.Helper()
	for got.Kind() == reflect.Interface || got.Kind() == reflect.Pointer {
		if want.IsNil() || got.IsNil() {
			if want.IsNil() != got.IsNil() {
				t.Errorf("%s: nil in one of the two", path)
			}
			return
		}
		if got = got.Elem(); got.Kind() != reflect.Pointer {
			want = want.Elem()
		}
	}
	switch v := got.Interface().(type) {
	case Date:
		if want.Kind() != reflect.String || v.String() != want.String()[:10] {
			t.Errorf("%s: got %v, want %v", path, v, want)
		}
		return
	case time.Time:
		if !v.Equal(want.Interface().(time.Time)) {
			t.Errorf("%s: got %v, want %v", path, v, want)
		}
		return
	}
	switch got.Kind() {
	case reflect.Struct:
		for i := range want.NumField() {
			name := want.Type().Field(i).Name
			samePlain(t, path+"."+name, want.Field(i), fieldOrZero(got, name, want.Field(i).Type()))
		}
	case reflect.Slice:
		if want.Len() != got.Len() {
			t.Fatalf("%s: got %d elements, want %d", path, got.Len(), want.Len())
		}
		for i := range want.Len() {
			samePlain(t, path+"."+strconv.Itoa(i), want.Index(i), got.Index(i))
		}
	case reflect.String:
		if want.String() != got.String() {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	default:
		if !reflect.DeepEqual(want.Interface(), got.Interface()) {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

// fieldOrZero returns a field of a plain struct, zero if it has none, because one plain address
// serves three types.
func fieldOrZero(v reflect.Value, name string, t reflect.Type) reflect.Value {
	f := v.FieldByName(name)
	switch {
	case !f.IsValid():
		return reflect.Zero(t)
	case t.Kind() == reflect.Pointer && f.Kind() == reflect.String:
		p := reflect.New(f.Type())
		p.Elem().Set(f)
		return p
	}
	return f
}

// Values of this package decode and encode within the types of a program.
func TestWithinOtherTypes(t *testing.T) {
	const text = `{"orders":{"a":{"id":"3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01","new":[1],"priority":"x"}},"user":{"user_id":"bad","new":2},"none":null}`
	type mine struct {
		Orders map[string]*Order `json:"orders"`
		User   User              `json:"user"`
		None   *LabTest          `json:"none"`
	}
	var v mine
	mustDecode(t, []byte(text), &v)
	if got := string(mustEncode(t, v)); got != text {
		t.Errorf("got %s", got)
	}
	if diff := cmp.Diff([]Malformed{{"priority", "boolean"}}, v.Orders["a"].Malformed()); diff != "" {
		t.Error(diff)
	}
	v.Orders["a"].Priority = true
	v.User.ClientUserID = "u"
	const want = `{"orders":{"a":{"id":"3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01","new":[1],"priority":true}},"user":{"user_id":"bad","new":2,"client_user_id":"u"},"none":null}`
	if got := string(mustEncode(t, v)); got != want {
		t.Errorf("got %s", got)
	}
	if err := json.Unmarshal([]byte(`{"user":{"user_id":`), &v); err == nil {
		t.Error("cut text was read")
	}
	var order Order
	if err := order.UnmarshalJSON([]byte(`{"notes":"Ada Example"`)); err == nil || strings.Contains(err.Error(), "Ada") {
		t.Errorf("got %v", err)
	}
}

// New values have the zero RawObject.
func TestNewValuesKeepNothing(t *testing.T) {
	order := Order{Notes: new("n")}
	if order.RawJSON() != nil || order.Malformed() != nil {
		t.Error("a new value has raw JSON")
	}
	var again Order
	mustDecode(t, mustEncode(t, order), &again)
	if diff := cmp.Diff(Order{Notes: new("n"), Events: []OrderEvent{}, LabTest: LabTest{Price: "0"}}, again); diff != "" {
		t.Error(diff)
	}
}

// Null differs from 0 in lists of numbers.
func TestWorkoutStreamElements(t *testing.T) {
	const text = `{"time":[1700000000,1700000001],"heartrate":[60,null,0,"x",61.5],"lat":[null,1.5],"power":[],"cadence":null,"new":[null]}`
	var stream WorkoutStream
	mustDecode(t, []byte(text), &stream)
	want := WorkoutStream{
		Time:      []int64{1700000000, 1700000001},
		Heartrate: []*int64{new(int64(60)), nil, new(int64(0)), nil, nil},
		Lat:       []*float64{nil, new(1.5)},
		Power:     []*float64{},
	}
	if !reflect.DeepEqual(want.Heartrate, stream.Heartrate) || !reflect.DeepEqual(want.Lat, stream.Lat) || !reflect.DeepEqual(want.Time, stream.Time) ||
		!reflect.DeepEqual(want.Power, stream.Power) || stream.Cadence != nil {
		t.Errorf("got %+v", []any{stream.Time, stream.Heartrate, stream.Lat, stream.Power, stream.Cadence})
	}
	if diff := cmp.Diff([]Malformed{{"heartrate.3", "integer"}, {"heartrate.4", "integer"}}, stream.Malformed()); diff != "" {
		t.Error(diff)
	}
	if got := string(mustEncode(t, stream)); got != text {
		t.Errorf("got %s", got)
	}
	stream.Heartrate = stream.Heartrate[1:]
	if got, want := string(mustEncode(t, stream)), strings.Replace(text, "[60,", "[", 1); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestImagesAreBase64(t *testing.T) {
	if got := *NewJPEG([]byte("image")); got != (SignatureImage{Content: "aW1hZ2U=", ContentType: "image/jpeg"}) {
		t.Error(got.Content, got.ContentType)
	}
	if got := *NewPNG([]byte("image")); got != (SignatureImage{Content: "aW1hZ2U=", ContentType: "image/png"}) {
		t.Error(got.Content, got.ContentType)
	}
}

func mustDecode(t testing.TB, text []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
}

func mustEncode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
