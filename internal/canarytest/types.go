// Fills values of any type with canaries, and searches what they print.

package canarytest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// Text is part of every text that Fill writes.
const Text = "Kanarie vogel@7Q"

const (
	number = 987654321
	year   = 7391
)

// canaries are texts that no output may have: the values in the forms of fmt and encoders.
var canaries = func() []string {
	list := []string{
		Text, url.QueryEscape(Text), url.PathEscape(Text), hex.EncodeToString([]byte(Text)),
		strings.ToUpper(hex.EncodeToString([]byte(Text))), strings.Trim(fmt.Sprint([]byte(Text)), "[]"),
		strconv.Itoa(number), fmt.Sprintf("%x", number), fmt.Sprintf("%X", number),
		"Kanarie", "vogel",
	}
	for shift := range 3 { // base64 depends on where the text begins
		b := base64.StdEncoding.EncodeToString(append(make([]byte, shift), Text...))
		list = append(list, b[4:len(b)-4])
	}
	return list
}()

// years matches the year as a word, because it may occur within other digits by chance.
var years = regexp.MustCompile(`\b` + strconv.Itoa(year) + `\b`)

// Filler sets every exported field of a value to a canary, and numbers the texts.
type Filler struct {
	Texts   int
	Special func(f *Filler, pointer any) bool // fills what it points to, if it reports true; nil for none
}

// Fill fills v, which must be addressable.
func (f *Filler) Fill(v reflect.Value) {
	if !v.CanSet() || v.Type().Name() == "RawObject" || f.Special != nil && f.Special(f, v.Addr().Interface()) || f.fillWhole(v) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.Fill(v.Elem())
	case reflect.Struct:
		for _, field := range v.Fields() {
			f.Fill(field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.Fill(v.Index(0))
	case reflect.Map:
		e := reflect.New(v.Type().Elem()).Elem()
		f.Fill(e)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(f.text()).Convert(v.Type().Key()), e)
	case reflect.String:
		v.SetString(f.text())
	case reflect.Int64, reflect.Int:
		v.SetInt(number)
	case reflect.Float64:
		v.SetFloat(number)
	case reflect.Bool:
		v.SetBool(true)
	}
}

// text returns a text that no other field has.
func (f *Filler) text() string {
	f.Texts++
	return fmt.Sprintf("%s-%d", Text, f.Texts)
}

// fillWhole fills a value of a type whose fields have no values of their own, and reports whether
// it is one.
func (f *Filler) fillWhole(v reflect.Value) bool {
	switch p := v.Addr().Interface().(type) {
	case *uuid.UUID:
		*p = uuid.MustParse("3f1c6a52-8d0e-4b7a-9c11-5e2d7a904b01")
	case *time.Time:
		*p = time.Date(year, 6, 5, 4, 3, 2, 0, time.UTC)
	case *json.Number:
		*p = json.Number(strconv.Itoa(number))
	case *json.RawMessage:
		*p = json.RawMessage(strconv.Quote(f.text()))
	case *http.Header:
		*p = http.Header{"X-Echo": {Text}}
	case *[]byte:
		*p = []byte(Text)
	default:
		switch name, _, _ := strings.Cut(v.Type().Name(), "["); name {
		case "Date":
			v.FieldByName("Year").SetInt(year)
			v.FieldByName("Month").SetInt(6)
			v.FieldByName("Day").SetInt(5)
		case "Nullable":
			field, _ := v.Type().FieldByName("value")
			inner := reflect.New(field.Type)
			f.Fill(inner.Elem())
			encoded, _ := json.Marshal(inner.Interface())
			_ = p.(json.Unmarshaler).UnmarshalJSON(encoded)
		default:
			return false
		}
	}
	return true
}

// Redacted checks that no output of a value that fill has filled shows it, and that its JSON does,
// if it is meant to be encoded. raw is the received JSON of a type that has nothing else, nil if
// fill makes it. It returns the number of outputs.
func Redacted(t *testing.T, typ reflect.Type, fill Filler, raw []byte) (outputs int) {
	t.Helper()
	made := reflect.New(typ)
	fill.Fill(made.Elem())
	values := map[string]reflect.Value{"made": made}
	encoded, err := json.Marshal(made.Interface())
	if err != nil {
		t.Fatal(err)
	}
	if reader, ok := reflect.New(typ).Interface().(json.Unmarshaler); ok { // with the bytes it came as
		text := encoded
		if raw != nil {
			text = raw
		}
		if err := reader.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		values["read"] = reflect.ValueOf(reader)
	}
	for how, p := range values {
		t.Run(typ.Name()+"/"+how, func(t *testing.T) { outputs += checkPrinted(t, p) })
	}
	if typ.Kind() == reflect.Struct && encodes(typ) && raw == nil {
		for n := 1; n <= fill.Texts; n++ {
			if !strings.Contains(string(encoded), fmt.Sprintf(`%s-%d"`, Text, n)) {
				t.Errorf("%s: encoding to JSON leaves out text %d of %d", typ.Name(), n, fill.Texts)
			}
		}
	}
	return outputs
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
		if years.MatchString(out) {
			t.Errorf("%s of %s shows a date: %.300s", how, p.Type().Elem(), out)
		}
	}
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
		slog.New(slog.NewTextHandler(&b, NoTime)).Info("m", "value", x, slog.Group("g", "value", x))
		check(fmt.Sprintf("slog's text handler with %T", x), b.String())
	}
	for _, x := range []any{v.Interface(), p.Interface(), reflect.Zero(p.Type()).Interface()} {
		var b bytes.Buffer
		logger := slog.New(slog.NewJSONHandler(&b, NoTime))
		logger.Info("m", "value", x, slog.Group("g", "value", x))
		logger.With("with", x).WithGroup("g").Info("m")
		check(fmt.Sprintf("slog's JSON handler with %T", x), b.String())
	}
	return outputs
}

// Printed checks that types that are decoded from JSON print neither pointers, nor the received
// JSON, nor a secret, under any verb. It returns the number of outputs.
func Printed(t *testing.T, types []reflect.Type, special func(f *Filler, pointer any) bool) (printed int) {
	t.Helper()
	for _, typ := range types {
		if f, ok := typ.FieldByName("RawObject"); !ok || !f.Anonymous {
			continue
		}
		v := reflect.New(typ)
		(&Filler{Special: special}).Fill(v.Elem())
		hideSecrets(v.Elem())
		encoded, err := json.Marshal(v.Interface())
		if err != nil {
			t.Fatal(err)
		}
		received := []byte(`{"unheard_of":"` + unheardOf + `",` + strings.TrimPrefix(string(encoded), "{"))
		if err := json.Unmarshal(received, v.Interface()); err != nil {
			continue // a type that stands for any JSON
		}
		printed += checkShown(t, v)
		if out := fmt.Sprint(v.Interface()); out != "{redacted}" && !strings.HasPrefix(out, typ.String()+"{") {
			t.Errorf("%s prints %s", typ.Name(), out)
		}
	}
	return printed
}

// checkShown checks the outputs of the value of p for Printed.
func checkShown(t *testing.T, p reflect.Value) (outputs int) {
	t.Helper()
	check := func(how, out string) {
		outputs++
		for _, text := range []string{unheardOf, secretCanary, "PANIC"} {
			if strings.Contains(out, text) {
				t.Errorf("%s: %s", how, out)
			}
		}
		if how != "%x" && address.MatchString(out) {
			t.Errorf("%s of %s: %s", how, p.Type(), out)
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, x := range []any{p.Interface(), p.Elem().Interface(), []any{p.Elem().Interface()}} {
			check(verb, fmt.Sprintf(verb, x))
		}
	}
	var text, object bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&text, NoTime), slog.NewJSONHandler(&object, NoTime)} {
		slog.New(handler).Info("m", "v", p.Interface(), slog.Group("g", "v", p.Elem().Interface()))
	}
	check("slog's text handler", text.String())
	check("slog's JSON handler", object.String())
	return outputs
}

var address = regexp.MustCompile(`0x[0-9a-f]{4,}`)

const (
	unheardOf    = "not a field of the type"
	secretCanary = "sk_us_canary"
)

// hideSecrets sets every Secret of v, which a Filler filled.
func hideSecrets(v reflect.Value) {
	switch {
	case v.Type().Name() == "Secret":
		v.SetString(secretCanary)
	case v.Kind() == reflect.Pointer && !v.IsNil():
		hideSecrets(v.Elem())
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				hideSecrets(v.Field(i))
			}
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			hideSecrets(v.Index(i))
		}
	}
}
