package labhealth

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/labhealth/labhealth-go/internal/plain"
)

// Each value of a received order, changed alone, is written, and with it all others as they were.
func TestEveryChangeIsWritten(t *testing.T) {
	for n := range 4 {
		document := []byte(plain.OrderJSON(n))
		changes := 0
		for ; ; changes++ {
			var order, again Order
			mustDecode(t, document, &order)
			path := changeLeaf(reflect.ValueOf(&order).Elem(), "", new(changes))
			if path == "" {
				break
			}
			encoded := mustEncode(t, order)
			mustDecode(t, encoded, &again)
			if diff := cmp.Diff(order, again); diff != "" || string(encoded) == string(document) {
				t.Errorf("order %d, %s: %s", n, path, diff)
			}
		}
		if changes < 100 {
			t.Errorf("order %d has %d values", n, changes)
		}
	}
}

// changeLeaf changes one value within v, the one before which there are as many others as skip
// says, and returns its path. It returns "" if there are fewer.
func changeLeaf(v reflect.Value, path string, skip *int) string {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return ""
		}
		return changeLeaf(v.Elem(), path, skip)
	case reflect.Slice:
		for i := range v.Len() {
			if changed := changeLeaf(v.Index(i), path+"[]", skip); changed != "" {
				return changed
			}
		}
		return ""
	case reflect.Struct:
		if t := v.Type(); t != reflect.TypeFor[time.Time]() && t != reflect.TypeFor[Date]() {
			return changeField(v, path, skip)
		}
	}
	if *skip--; *skip >= 0 {
		return ""
	}
	switch to := v.Addr().Interface().(type) {
	case *time.Time:
		*to = to.Add(time.Hour)
	case *Date:
		*to = Date{2001, time.February, 3}
	case *json.Number:
		*to += "1"
	case *bool:
		*to = !*to
	case *int64:
		*to++
	case *float64:
		*to++
	default:
		if v.Kind() == reflect.String {
			v.SetString(v.String() + "1")
		} else { // a UUID
			v.Index(0).SetUint(v.Index(0).Uint() ^ 1)
		}
	}
	return path
}

func changeField(v reflect.Value, path string, skip *int) string {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Type == reflect.TypeFor[RawObject]() || v.Type() == reflect.TypeFor[OrderDetails]() && f.Name == "Type" {
			continue // the type of the details says how they are decoded
		}
		if changed := changeLeaf(v.Field(i), path+"."+f.Name, skip); changed != "" {
			return changed
		}
	}
	return ""
}
