package webhooks_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labhealth/labhealth-go/webhooks"
)

// The test vector of the Standard Webhooks libraries.
const (
	vectorSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorTimestamp = "1614265330"
	vectorBody      = `{"test": 2432232314}`
	vectorSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

var vectorTime = time.Unix(1614265330, 0)

// Invented secrets, of 24 and 32 bytes.
const (
	secretA = "whsec_bGFiaGVhbHRoLXRlc3Qtc2VjcmV0LWE9"
	secretB = "bGFiaGVhbHRoLXRlc3Qtc2VjcmV0LWItMzItYnl0ZXM="
)

// signedHeader returns signature headers with the prefix "webhook" or "svix".
func signedHeader(prefix, id, timestamp string, signatures ...string) http.Header {
	h := http.Header{}
	h.Set(prefix+"-id", id)
	h.Set(prefix+"-timestamp", timestamp)
	for _, s := range signatures {
		h.Add(prefix+"-signature", s)
	}
	return h
}

func newVerifier(t testing.TB, secrets ...string) *webhooks.Verifier {
	t.Helper()
	v, err := webhooks.NewVerifier(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sign(t testing.TB, v *webhooks.Verifier, id string, at time.Time, body string) string {
	t.Helper()
	s, err := v.Sign(id, at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// flips returns s with each of its bits flipped, one at a time.
func flips(s string) (flipped []string) {
	for i := range 8 * len(s) {
		b := []byte(s)
		b[i/8] ^= 1 << (i % 8)
		flipped = append(flipped, string(b))
	}
	return flipped
}

func TestOneBit(t *testing.T) {
	v := newVerifier(t, vectorSecret)
	rejected := 0
	reject := func(body, id, timestamp, signature string) {
		t.Helper()
		h := signedHeader("webhook", id, timestamp, signature)
		// At the time of the timestamp too, so that only the signature can fail.
		for _, now := range []time.Time{vectorTime, unix(timestamp)} {
			if err := v.VerifyAt([]byte(body), h, now); err == nil {
				t.Errorf("accepted: body %q, id %q, timestamp %q, signature %q", body, id, timestamp, signature)
			}
		}
		rejected++
	}
	for _, body := range flips(vectorBody) {
		reject(body, vectorID, vectorTimestamp, vectorSignature)
	}
	for _, id := range flips(vectorID) {
		reject(vectorBody, id, vectorTimestamp, vectorSignature)
	}
	for _, timestamp := range flips(vectorTimestamp) {
		reject(vectorBody, vectorID, timestamp, vectorSignature)
	}
	for _, signature := range flips(vectorSignature) {
		reject(vectorBody, vectorID, vectorTimestamp, signature)
	}
	for i := range vectorBody {
		reject(vectorBody[:i], vectorID, vectorTimestamp, vectorSignature)
	}
	// Bytes cannot move between ID, timestamp and body.
	reject("1"+vectorBody, vectorID, strings.TrimSuffix(vectorTimestamp, "0"), vectorSignature)
	reject(vectorBody, vectorID+"."+vectorTimestamp, vectorTimestamp, vectorSignature)
	if want := 8*(20+28+10+47) + 20 + 2; rejected != want {
		t.Errorf("%d tries, want %d", rejected, want)
	}
}

func unix(timestamp string) time.Time {
	var seconds int64
	fmt.Sscanf(timestamp, "%d", &seconds)
	return time.Unix(seconds, 0)
}

// Verify uses the clock of a synctest bubble.
func TestVerifyNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVerifier(t, secretA)
		h := signedHeader("svix", "msg_1", "946684800", sign(t, v, "msg_1", time.Now(), "{}"))
		if err := v.Verify([]byte("{}"), h); err != nil {
			t.Error(err)
		}
		time.Sleep(5*time.Minute + 1)
		if err := v.Verify([]byte("{}"), h); err != webhooks.ErrTimestamp {
			t.Error(err)
		}
	})
}

func TestSecrets(t *testing.T) {
	bytes := func(n int) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", n))) }
	for _, test := range []struct {
		name    string
		secrets []string
		want    string // of the error; empty for none
	}{
		{"none", nil, "webhooks: NewVerifier needs a secret; see Unsigned for a sender that does not sign"},
		{"empty", []string{""}, "webhooks: secret 1 of 1 is empty: is its environment variable set?"},
		{"prefix only", []string{"whsec_"}, "webhooks: secret 1 of 1 is empty: is its environment variable set?"},
		{"second empty", []string{secretA, ""}, "webhooks: secret 2 of 2 is empty: is its environment variable set?"},
		{"not base64", []string{"whsec_not base64 at all, not at all!!"}, "webhooks: secret 1 of 1 is not base64: pass the signing secret of the webhook, such as whsec_…, and no API key"},
		{"line end", []string{secretA + "\n"}, "webhooks: secret 1 of 1 has a line break: remove it, for example with strings.TrimSpace"},
		{"line end within", []string{secretA[:20] + "\r\n" + secretA[20:]}, "webhooks: secret 1 of 1 has a line break: remove it, for example with strings.TrimSpace"},
		{"space", []string{" " + secretA}, "webhooks: secret 1 of 1 is not base64: pass the signing secret of the webhook, such as whsec_…, and no API key"},
		{"url alphabet", []string{strings.Repeat("-_", 16)}, "webhooks: secret 1 of 1 is not base64: pass the signing secret of the webhook, such as whsec_…, and no API key"},
		{"no padding", []string{strings.TrimRight(secretB, "=")}, "webhooks: secret 1 of 1 is not base64: pass the signing secret of the webhook, such as whsec_…, and no API key"},
		{"stray bits", []string{strings.Repeat("k", 31) + "A" + "kl=="}, "webhooks: secret 1 of 1 is not base64: pass the signing secret of the webhook, such as whsec_…, and no API key"},
		{"public key", []string{"whpk_" + bytes(32)}, "webhooks: secret 1 of 1 is not base64: pass the signing secret of the webhook, such as whsec_…, and no API key"},
		{"prefix twice", []string{"whsec_" + secretA}, "webhooks: secret 1 of 1 is not base64: pass the signing secret of the webhook, such as whsec_…, and no API key"},
		{"23 bytes", []string{bytes(23)}, "webhooks: secret 1 of 1 has fewer than 24 bytes"},
		{"24 bytes", []string{bytes(24)}, ""},
		{"64 bytes", []string{"whsec_" + bytes(64)}, ""},
		{"several", []string{secretA, secretB, secretA}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			v, err := webhooks.NewVerifier(test.secrets...)
			if test.want == "" {
				if err != nil || v == nil {
					t.Errorf("%v", err)
				}
				return
			}
			if v != nil || err == nil || err.Error() != test.want {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

func TestRotation(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	old, fresh, both := newVerifier(t, secretA), newVerifier(t, secretB), newVerifier(t, secretA, secretB)
	other := sign(t, newVerifier(t, vectorSecret), "msg_1", now, "{}")
	byOld, byNew := sign(t, old, "msg_1", now, "{}"), sign(t, fresh, "msg_1", now, "{}")
	byBoth := sign(t, both, "msg_1", now, "{}")
	if byBoth != byOld+" "+byNew {
		t.Errorf("Sign with two secrets: %s", byBoth)
	}
	many := func(n int) string { return strings.Repeat(other+" ", n) }
	for _, test := range []struct {
		name                 string
		lines                []string
		byOld, byNew, byBoth bool // which verifier accepts it
	}{
		{"the old secret", []string{byOld}, true, false, true},
		{"the new secret", []string{byNew}, false, true, true},
		{"both", []string{byBoth}, true, true, true},
		{"both in two lines", []string{byOld, byNew}, true, true, true},
		{"both joined with a comma and a space", []string{byOld + ", " + byNew}, true, true, true},
		{"both joined with a comma", []string{byOld + "," + byNew}, true, true, true},
		{"tabs and spaces", []string{" \t " + byOld + "  \t" + byNew + " "}, true, true, true},
		{"another first", []string{other + " " + byNew}, false, true, true},
		{"unknown versions", []string{"v1a,c2lnbmF0dXJl v2," + byOld[3:] + " " + byNew}, false, true, true},
		{"another version only", []string{"v2," + byOld[3:] + " v1a," + byNew[3:]}, false, false, false},
		{"no version", []string{byOld[3:]}, false, false, false},
		{"the sixteenth", []string{many(15) + byNew}, false, true, true},
		{"the sixteenth, by lines", append(slices.Repeat([]string{other}, 15), byNew), false, true, true},
		{"the seventeenth", []string{many(16) + byOld}, false, false, false},
		{"the seventeenth, by lines", append(slices.Repeat([]string{other}, 16), byOld), false, false, false},
		{"no padding", []string{strings.TrimRight(byOld, "=")}, false, false, false},
		{"v1 only", []string{"v1", "v1,", ","}, false, false, false},
		{"empty", []string{""}, false, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := signedHeader("webhook", "msg_1", "1700000000", test.lines...)
			for _, v := range []struct {
				name string
				*webhooks.Verifier
				want bool
			}{{"old", old, test.byOld}, {"new", fresh, test.byNew}, {"both", both, test.byBoth}} {
				err := v.VerifyAt([]byte("{}"), h, now)
				if v.want && err != nil || !v.want && err != webhooks.ErrSignature {
					t.Errorf("%s: %v", v.name, err)
				}
			}
		})
	}
}

func TestIDs(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	v := newVerifier(t, secretA)
	for id, want := range map[string]bool{
		"a":                      true,
		"msg_2abcXYZ-09":         true,
		strings.Repeat("a", 256): true,
		strings.Repeat("a", 257): false,
		"":                       false,
		"msg.1":                  false,
		"msg 1":                  false,
		"msg,1":                  false,
		"msg\n1":                 false,
		"msg\x00":                false,
		"m\xc3\xa9":              false,
		"m\xff":                  false,
		"msg/1":                  false,
	} {
		signature, err := v.Sign(id, now, nil)
		if (err == nil) != want {
			t.Errorf("Sign with id %q: %v", id, err)
		}
		if !want {
			signature = "v1,AAAA"
		}
		h := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {"1700000000"}, "Webhook-Signature": {signature}}
		switch err := v.VerifyAt(nil, h, now); {
		case want && err != nil, !want && err != webhooks.ErrHeaders:
			t.Errorf("id %q: %v", id, err)
		}
		if got := webhooks.DeliveryID(h); want && got != id || !want && got != "" {
			t.Errorf("id %q: DeliveryID is %q", id, got)
		}
	}
}

// A delivery is verified by the headers with one prefix, and DeliveryID is never that of others.
func TestHeaderSchemes(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	v := newVerifier(t, secretA)
	right, wrong := sign(t, v, "msg_right", now, "{}"), sign(t, v, "msg_wrong", now, "no")
	for _, test := range []struct {
		name            string
		webhook, svix   []string // id, timestamp, signature; empty: absent
		want            error
		id              string
		webhook2, svix2 string // a second id
	}{
		{"svix alone", nil, []string{"msg_right", "1700000000", right}, nil, "msg_right", "", ""},
		{"webhook alone", []string{"msg_right", "1700000000", right}, nil, nil, "msg_right", "", ""},
		{"both the same", []string{"msg_right", "1700000000", right}, []string{"msg_right", "1700000000", right}, nil, "msg_right", "", ""},
		{"svix wrong", []string{"msg_right", "1700000000", right}, []string{"msg_wrong", "1700000000", wrong}, nil, "", "", ""},
		{"webhook wrong", []string{"msg_wrong", "1700000000", wrong}, []string{"msg_right", "1700000000", right}, nil, "", "", ""},
		{"webhook stale", []string{"msg_right", "1600000000", right}, []string{"msg_right", "1700000000", right}, nil, "msg_right", "", ""},
		{"webhook malformed", []string{"msg.wrong", "1700000000", wrong}, []string{"msg_right", "1700000000", right}, nil, "msg_right", "", ""},
		{"webhook without a time", []string{"msg_wrong", "now", wrong}, []string{"msg_right", "1700000000", right}, nil, "msg_right", "", ""},
		{"two webhook IDs", []string{"msg_wrong", "1700000000", wrong}, []string{"msg_right", "1700000000", right}, nil, "msg_right", "msg_wrong", ""},
		{"both wrong", []string{"msg_wrong", "1700000000", wrong}, []string{"msg_wrong", "1700000000", wrong}, webhooks.ErrSignature, "msg_wrong", "", ""},
		{"swapped signatures", []string{"msg_wrong", "1700000000", right}, []string{"msg_right", "1700000000", wrong}, webhooks.ErrSignature, "", "", ""},
		{"a stray webhook-id", []string{"msg_wrong", "", ""}, []string{"msg_right", "1700000000", right}, nil, "msg_right", "", ""},
		{"a stray webhook-signature", []string{"", "", right}, []string{"msg_right", "1700000000", wrong}, webhooks.ErrSignature, "msg_right", "", ""},
		{"split", []string{"msg_right", "1700000000", ""}, []string{"", "", right}, webhooks.ErrHeaders, "msg_right", "", ""},
		{"split the other way", []string{"", "", right}, []string{"msg_right", "1700000000", ""}, webhooks.ErrHeaders, "msg_right", "", ""},
		{"two ids", []string{"msg_right", "1700000000", right}, nil, webhooks.ErrHeaders, "", "msg_right", ""},
		{"two svix ids", nil, []string{"msg_right", "1700000000", right}, webhooks.ErrHeaders, "", "", "msg_wrong"},
		{"nothing", nil, nil, webhooks.ErrHeaders, "", "", ""},
		{"no signature", []string{"msg_right", "1700000000", ""}, nil, webhooks.ErrHeaders, "msg_right", "", ""},
		{"no timestamp", []string{"msg_right", "", right}, nil, webhooks.ErrHeaders, "msg_right", "", ""},
		{"no id", []string{"", "1700000000", right}, nil, webhooks.ErrHeaders, "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := http.Header{}
			for prefix, values := range map[string][]string{"webhook": test.webhook, "svix": test.svix} {
				for i, value := range values {
					if value != "" {
						h.Set(prefix+[]string{"-id", "-timestamp", "-signature"}[i], value)
					}
				}
			}
			if test.webhook2 != "" {
				h.Add("webhook-id", test.webhook2)
			}
			if test.svix2 != "" {
				h.Add("svix-id", test.svix2)
			}
			if err := v.VerifyAt([]byte("{}"), h, now); err != test.want {
				t.Errorf("%v, want %v", err, test.want)
			}
			if id := webhooks.DeliveryID(h); id != test.id {
				t.Errorf("id %q, want %q", id, test.id)
			}
		})
	}
}

func TestUnsignedAndZero(t *testing.T) {
	if err := webhooks.Unsigned.Verify([]byte("{}"), nil); err != nil {
		t.Errorf("Unsigned: %v", err)
	}
	right := signedHeader("webhook", vectorID, vectorTimestamp, vectorSignature)
	for name, v := range map[string]*webhooks.Verifier{"zero": {}, "nil": nil} {
		if err := v.VerifyAt([]byte(vectorBody), right, vectorTime); err != webhooks.ErrSignature {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, v := range map[string]*webhooks.Verifier{"zero": {}, "nil": nil, "Unsigned": webhooks.Unsigned} {
		if _, err := v.Sign("msg_1", vectorTime, nil); err == nil {
			t.Errorf("%s signs", name)
		}
	}
	if _, err := newVerifier(t, secretA).Sign("msg_1", time.Unix(-1, 0), nil); err == nil {
		t.Error("a time before 1970 was signed")
	}
}

// Printed verifiers and errors do not show the secret, encoded or decoded.
func TestSecretIsNotPrinted(t *testing.T) {
	secret := "whsec_bGFiaGVhbHRoLXRlc3Qtc2VjcmV0LWE9"
	key, err := base64.StdEncoding.DecodeString(secret[6:])
	if err != nil {
		t.Fatal(err)
	}
	v := newVerifier(t, secret)
	_, bad := webhooks.NewVerifier(secret + "?")
	_, short := webhooks.NewVerifier(secret[:26])
	var printed strings.Builder
	for _, value := range []any{v, *v, []*webhooks.Verifier{v}, bad, short, errors.Unwrap(bad)} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&printed, verb+"\n", value)
		}
	}
	for _, canary := range []string{secret[6:20], string(key[:8]), fmt.Sprintf("%x", key[:8]),
		strings.Trim(fmt.Sprint(key[:8]), "[]"), strings.Trim(fmt.Sprintf("%#v", key[:4]), "[]byte{}")} {
		if strings.Contains(printed.String(), canary) {
			t.Errorf("%q is printed", canary)
		}
	}
}

func FuzzVerifier(f *testing.F) {
	f.Add(vectorID, vectorTimestamp, vectorSignature, "", "", "", vectorBody)
	f.Add("", "", "", vectorID, vectorTimestamp, vectorSignature+" v2,x v1,"+vectorSignature, vectorBody)
	f.Add(vectorID, "", "v1,,v1 v1", vectorID, vectorTimestamp, "v1 "+vectorSignature, "")
	f.Add("a.b", "-1", "v1a,=", "\xff", "99999999999999999999", ", ,\t,", "{}")
	v, err := webhooks.NewVerifier(secretA, vectorSecret)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, id, timestamp, signature, svixID, svixTimestamp, svixSignature, body string) {
		h := http.Header{}
		for name, value := range map[string]string{
			"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature,
			"svix-id": svixID, "svix-timestamp": svixTimestamp, "svix-signature": svixSignature,
		} {
			if value != "" {
				h.Set(name, value)
			}
		}
		err := v.VerifyAt([]byte(body), h, vectorTime)
		got := webhooks.DeliveryID(h)
		switch {
		case err == webhooks.ErrHeaders, err == webhooks.ErrTimestamp, err == webhooks.ErrSignature:
		case err != nil:
			t.Fatalf("error %v", err)
		// The fuzzer has no secret: only the vector is accepted, beside other headers or not.
		case got != vectorID && got != "" || id != vectorID && svixID != vectorID || body != vectorBody:
			t.Fatalf("accepted: %q %q", h, body)
		}
		// A valid signature is accepted, whatever else is in the headers.
		if got == "" {
			return
		}
		right, err := v.Sign(got, vectorTime, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		h.Set("webhook-id", got)
		h.Set("webhook-timestamp", vectorTimestamp)
		h.Set("webhook-signature", right+","+signature)
		if err := v.VerifyAt([]byte(body), h, vectorTime); err != nil || webhooks.DeliveryID(h) != got && webhooks.DeliveryID(h) != "" {
			t.Fatalf("rejected: %v", err)
		}
	})
}
