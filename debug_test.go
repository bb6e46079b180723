package labhealth

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labhealth/labhealth-go/internal/transport"
)

// formWords are the words that debug.go itself writes.
var formWords = map[string]bool{
	"attempt": true, "outcome": true, "unknown": true, "rejected": true, "applied": true, "sent": true, "not": true, "redacted": true,
	"string": true, "number": true, "boolean": true, "date": true, "uuid": true, "date-time": true, "null": true, "up": true, "to": true,
	"bytes": true, "KiB": true, "of": true, "JSON": true, "another": true, "media": true, "type": true, "streamed": true, "more": true,
	"fields": true, "and": true, "other": true, "headers": true, "header": true, "cut": true, "at": true,
	"application": true, "json": true, "pdf": true, "octet-stream": true, "html": true, "plain": true, "text": true, "problem+json": true,
}

var (
	debugWord = regexp.MustCompile(`[^\s"{}\[\]<>(),:?=&/]+`)
	debugUUID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// debugSizes are the numbers that are no data, such as counts and the number of the attempt.
	debugSizes = regexp.MustCompile(`up to [0-9]+|attempt [0-9]+|[0-9]+ (more|other)|cut at 64|^<-- [0-9]{3}( [A-Za-z '-]*)?|, [0-9.]+(µ|m|n)?s$|Retry-After: [0-9]{1,4}|(limit|offset|page|size)=[0-9]{1,4}`)
)

// strangeWords returns the words of a redacted text that are neither its own nor those of the
// reference.
func strangeWords(out string) (list []string) {
	w := words()
	for line := range strings.SplitSeq(out, "\n") {
		line = strings.Replace(line, "https://api.example.com/base", "", 1)
		line = debugUUID.ReplaceAllString(debugSizes.ReplaceAllString(line, ""), "")
		for _, word := range debugWord.FindAllString(line, -1) {
			_, isHeader := headerValue(word, nil, "")
			known := formWords[word] || w.fields[word] || w.values[word] || w.paths[word] || isHeader || strings.Trim(word, "-…") == "" ||
				slices.Contains(doMethods, word) || isReason(word)
			if !known {
				list = append(list, word)
			}
		}
	}
	return list
}

// isReason reports whether a word is part of the description of a failure.
func isReason(word string) bool {
	texts := []string{"the response could not be read: ", "(the context's deadline): give it more time", "raise it", checkRedirect}
	for _, kinds := range [][]failureKind{decided, timeouts, network} {
		for _, k := range kinds {
			texts = append(texts, k.text+" "+k.advice)
		}
	}
	for _, phase := range phases {
		texts = append(texts, phase.text+" "+phase.advice)
	}
	for _, text := range texts {
		if slices.Contains(debugWord.FindAllString(text, -1), word) {
			return true
		}
	}
	return false
}

// redactedAttempt returns the redacted text of an attempt.
func redactedAttempt(op string, ids []string, query url.Values, status int, sent, received []byte, header http.Header) string {
	c := &core{base: "https://api.example.com/base"}
	method, _, _ := strings.Cut(op, " ")
	r := request{op: op, ids: ids}
	if len(ids) == 0 {
		r = request{op: method + " (Do)", target: &target{method: method, path: strings.TrimPrefix(op, method+" ")}}
	}
	text := &debugText{
		core: c, request: r, streamed: -1,
		sent: &transport.Request{
			Method: method, URL: c.base + "/x?" + query.Encode(), Body: sent,
			Header: http.Header{"Content-Type": {"application/json"}, "X-Service-Api-Key": {"sk"}, "Authorization": {"Bearer x"}},
		},
		attempt: transport.Attempt{Number: 1, StatusCode: status, Header: header, Body: received, Duration: time.Millisecond},
	}
	return text.String()
}

// hostile are bodies with data in every place.
var hostile = []string{
	`{"Grace":"Grace","status":"Grace","type":"Grace","billing_type":"Grace","id":"Grace","loc":["Grace","1990-01-31",42,{"Grace":1}]}`,
	`{"id":{"Grace":"Hopper"},"user_id":["Grace",["Hopper"]],"team_id":19900131,"order_id":"19900131-1990-0131-1990-013119900131x"}`,
	`{"status":"completed Grace","type":"\u0047race","region":"us\nGrace","status":["Grace"],"status":{"status":"Grace"}}`,
	`{"grace_hopper":1,"grace":2,"GRACE":3,"first_name ":4," first_name":5,"first_name\u0000Grace":6,"first_name\nGrace":7,"":8}`,
	`{"meal":[{"data":{"water":{"name":"Grace"},"Grace's cake":{"energy":{"value":400}}}}],"vitamins":{"water":1,"note":"x"}}`,
	`{"headers":{"message":"Grace","Authorization":"sk_us_1"},"metadata":{"patient":"Grace"},"lat":51.4778,"lng":-0.0014}`,
	`[["Grace"],[["Hopper"]],"Grace",42,true,false,null]`, `"Grace"`, `42`, `true`, `null`, `-1.5e300`,
	"{\"a\":\"Grace\xff\"}", "{\"Grace\xff\":1}", "{\"id\":1}\n{\"name\":\"Grace\"}\n", `{"first_name":"Grace"`, `Grace Hopper`, "<html>Grace</html>", "\x00\x01Grace",
	`{"error":"sk_live_1","message":"Grace Hopper (1906-12-09)","detail":{"error_message":"Grace","user_id":"Grace"}}`,
	`{"loc":"Grace","loc":{"loc":["Grace"]},"type":["missing","Grace"],"total":42,"page":7,"size":19900131}`,
	`{"requisition_form_url":"https://storage.example.com/Grace?signature=abc","email":"grace@example.com","dob":"1906-12-09","created_at":"1906-12-09T00:00:00Z"}`,
	`{"gender":"female","sex":"female","race":"asian","interpretation":"critical","result":"positive","state":"NY","value":"female","sensor_location":"wrist"}`,
	strings.Repeat(`{"data":`, 100) + `"Grace"` + strings.Repeat("}", 100), strings.Repeat(`[`, 100) + `"Grace"` + strings.Repeat("]", 100),
	`{` + strings.Repeat(`"Grace":"Hopper",`, 500) + `"a":1}`, `{"x":"` + strings.Repeat("Grace ", 500) + `"}`, `{"` + strings.Repeat("Grace", 1000) + `":1}`,
}

// A redacted text consists of words of this package and of the reference, whatever is sent and
// received.
func FuzzDebug(f *testing.F) {
	for i, text := range hostile {
		f.Add(uint16(i*17), text, text, "Grace", "Hopper")
	}
	f.Fuzz(func(t *testing.T, status uint16, sent, received, name, value string) {
		header := http.Header{
			"Content-Type": {value}, "X-" + name: {value}, name: {value}, "Retry-After": {value}, "Location": {"https://example.com/" + value},
			"Set-Cookie": {name + "=" + value}, "Content-Encoding": {value}, "X-Labhealthtest-Proof": {value}, "Www-Authenticate": {value},
		}
		for _, known := range []string{"Traceresponse", "X-Request-Id"} {
			delete(header, known) // which errors and logs show
		}
		query := url.Values{name: {value}, "patient_name": {value}, "page": {value}, "status": {value}}
		for _, out := range []string{
			redactedAttempt("POST /v2/user/resolve/{client_user_id}", []string{value}, query, 200+int(status)%400, []byte(sent), []byte(received), header),
			redactedAttempt("GET /v3/order/{order_id}", []string{value}, query, 200+int(status)%400, nil, []byte(received), header),
			redactedAttempt("PUT /v3/"+url.PathEscape(value)+"/"+url.PathEscape(name), nil, query, 200+int(status)%400, []byte(sent), nil, header),
		} {
			if strange := strangeWords(out); len(strange) > 0 {
				t.Errorf("%q in\n%.2000s", strange, out)
			}
		}
	})
}

// The search finds words that are not in the reference.
func TestStrangeWords(t *testing.T) {
	for _, text := range []string{"    Grace: 1", `      first_name: "Grace"`, "      ?: 1906-12-09", "42", "x@example.com", "<-- 200 OK\n Grace"} {
		if len(strangeWords(text)) == 0 {
			t.Errorf("nothing strange in %q", text)
		}
	}
}

// Nothing of the hostile bodies is in a redacted text.
func TestDebugHostile(t *testing.T) {
	searched := 0
	for _, body := range hostile {
		out := redactedAttempt("POST /v3/order/import", nil, nil, 400, []byte(body), []byte(body), http.Header{})
		for _, value := range []string{
			"Grace", "grace", "GRACE", "Hopper", "cake", "1990", "1906", "42", "51.47", "sk_", "signature", "female", "asian", "critical", "positive",
			"NY", "wrist", "1.5", "\xff", "\x00", "water", "Authorization:  ",
		} {
			searched++
			if strings.Contains(out, value) {
				t.Errorf("%q is in\n%.1000s", value, out)
			}
		}
	}
	t.Logf("%d searches", searched)
}

// The vocabulary has no field that holds a person's data as an ID or an enumeration.
func TestVocabulary(t *testing.T) {
	w := words()
	for _, name := range patientFields {
		if w.ids[name] || w.enums[name] {
			t.Errorf("the values of %s are shown", name)
		}
	}
	for _, v := range []string{"female", "other", "abnormal", "asian", "CA", "positive"} {
		if w.values[v] {
			t.Errorf("%s is shown", v)
		}
	}
	for _, name := range []string{"client_user_id", "sample_id", "name", "value", "slug"} {
		if w.ids[name] || w.enums[name] {
			t.Errorf("the values of %s are shown", name)
		}
	}
}
