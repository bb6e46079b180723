package main

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

func vectors() []vector {
	return slices.Concat(published(), bodies(), changedBodies(), ids(), timestamps(), tolerances(), secrets(), rotations(),
		signatureHeaders(), encodings(), constructions(), schemes(), moved())
}

// published returns the test vector of the Standard Webhooks libraries, whose signature is not
// ours.
func published() (list []vector) {
	m := message{"msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", `{"test": 2432232314}`}
	const secret, signature = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	for _, prefix := range []string{"webhook", "svix", "Webhook", "SVIX", "wEbHoOk"} {
		list = append(list, vectorAt("published, headers "+prefix+"-*", m.timestamp, []string{secret}, m, m.prefixed(prefix, signature), valid))
	}
	bare := []string{strings.TrimPrefix(secret, "whsec_")}
	return append(list,
		vectorAt("published, secret without its prefix", m.timestamp, bare, m, m.headers(signature), valid),
		vectorAt("published, another secret", m.timestamp, []string{secretA}, m, m.headers(signature), badSignature),
		vectorAt("published, years later", now, []string{secret}, m, m.headers(signature), badTimestamp))
}

// allBytes has every byte once.
func allBytes() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

// bodies are signed as they are, whatever they contain.
func bodies() (list []vector) {
	for _, body := range []struct{ name, body string }{
		{"empty", ""},
		{"an empty object", "{}"},
		{"one space", " "},
		{"one NUL", "\x00"},
		{"one dot", "."},
		{"no JSON", "hello"},
		{"JSON with spaces", `{ "a" : 1 , "b" : [ ] }`},
		{"JSON in lines", "{\n  \"a\": 1\n}"},
		{"a line feed at the end", "{}\n"},
		{"CR LF at the end", "{}\r\n"},
		{"CR LF within", "{\"a\":\r\n1}"},
		{"a byte order mark", "\ufeff{}"},
		{"UTF-8, composed", "{\"city\":\"Z\u00fcrich\"}"},
		{"UTF-8, decomposed", "{\"city\":\"Zu\u0308rich\"}"},
		{"an emoji", "{\"note\":\"\U0001F9EA\"}"},
		{"escapes", `{"city":"Z\u00fcrich","note":"\ud83e\uddea","slash":"\/"}`},
		{"invalid UTF-8", "{\"a\":\"\xff\xfe\"}"},
		{"half a surrogate", "{\"a\":\"\xed\xa0\x80\"}"},
		{"every byte", allBytes()},
		{"63 bytes", strings.Repeat("b", 63)},
		{"64 bytes", strings.Repeat("b", 64)},
		{"65 bytes", strings.Repeat("b", 65)},
		{"4096 bytes", strings.Repeat("0123456789abcdef", 256)},
		{"an ID and a timestamp", usual.id + "." + usual.timestamp + "."},
		{"a signature", sign(secretA, usual)},
		{"percent signs", "%s%n%00%25"},
		{"plus and percent as in a form", "a=b+c&d=%7B%7D"},
		{"HTML", "<html>&amp;</html>"},
	} {
		m := message{usual.id, usual.timestamp, body.body}
		list = append(list, vectorOf("body: "+body.name, m, m.headers(sign(secretA, m)), valid))
	}
	return list
}

// changedBodies were changed after they were signed, most of them without a change of their JSON.
func changedBodies() (list []vector) {
	for _, change := range []struct{ name, signed, received string }{
		{"one letter", `{"name":"Ada"}`, `{"name":"Ida"}`},
		{"the case of one letter", `{"name":"Ada"}`, `{"name":"ada"}`},
		{"one bit of the last byte", "{}", "{|"},
		{"one bit of the first byte", "{}", "z}"},
		{"a byte more", "{}", "{}}"},
		{"a byte less", "{}", "{"},
		{"no bytes left", "{}", ""},
		{"bytes from nowhere", "", "{}"},
		{"a line feed more", "{}", "{}\n"},
		{"a line feed less", "{}\n", "{}"},
		{"CR LF for a line feed", "{\n}", "{\r\n}"},
		{"a line feed for CR LF", "{\r\n}", "{\n}"},
		{"a space more", `{"a":1}`, `{"a": 1}`},
		{"a space before", "{}", " {}"},
		{"a byte order mark more", "{}", "\ufeff{}"},
		{"a byte order mark less", "\ufeff{}", "{}"},
		{"composed for decomposed", "\"Zu\u0308rich\"", "\"Z\u00fcrich\""},
		{"decomposed for composed", "\"Z\u00fcrich\"", "\"Zu\u0308rich\""},
		{"an escape for a letter", "\"Z\u00fcrich\"", `"Z\u00fcrich"`},
		{"a letter for an escape", `"Z\u00fcrich"`, "\"Z\u00fcrich\""},
		{"U+FFFD for invalid UTF-8", "\"\xff\"", "\"\ufffd\""},
		{"keys in another order", `{"a":1,"b":2}`, `{"b":2,"a":1}`},
		{"a key repeated", `{"a":1}`, `{"a":1,"a":1}`},
		{"1.0 for 1", `{"a":1}`, `{"a":1.0}`},
		{"a NUL more", "{}", "{}\x00"},
		{"cut at a NUL", "{}\x00rest", "{}"},
		{"cut after 4095 of 4096 bytes", strings.Repeat("b", 4096), strings.Repeat("b", 4095)},
		{"HTML escapes", `{"a":"<"}`, `{"a":"\u003c"}`},
		{"another body", usual.body, `{"event_type":"labtest.order.created"}`},
		{"base64 of the body", "{}", "e30="},
	} {
		signed := message{usual.id, usual.timestamp, change.signed}
		received := message{usual.id, usual.timestamp, change.received}
		list = append(list, vectorOf("changed body: "+change.name, received, signed.headers(sign(secretA, signed)), badSignature))
	}
	return list
}

// ids are signed correctly, so that only their form decides.
func ids() (list []vector) {
	for _, id := range []struct{ name, id, reason string }{
		{"one letter", "a", valid},
		{"one digit", "7", valid},
		{"letters, digits, _ and -", "msg_AZaz09-_", valid},
		{"a UUID", "c1b7e0d4-58a2-4f9e-8d36-90f5b2a4e617", valid},
		{"another case than usual", strings.ToUpper(usual.id), valid},
		{"255 characters", strings.Repeat("i", 255), valid},
		{"256 characters", strings.Repeat("i", 256), valid},
		{"257 characters", strings.Repeat("i", 257), badHeaders},
		{"8000 characters", strings.Repeat("i", 8000), badHeaders},
		{"empty", "", badHeaders},
		{"a space", " ", badHeaders},
		{"a space before", " msg_1", badHeaders},
		{"a space after", "msg_1 ", badHeaders},
		{"a space within", "msg 1", badHeaders},
		{"a tab within", "msg\t1", badHeaders},
		{"a dot within", "msg.1", badHeaders},
		{"a dot alone", ".", badHeaders},
		{"a comma within", "msg,1", badHeaders},
		{"two IDs in one header", "msg_1, msg_1", badHeaders},
		{"a slash", "msg/1", badHeaders},
		{"a plus sign", "msg+1", badHeaders},
		{"an equals sign", "msg=", badHeaders},
		{"a colon", "msg:1", badHeaders},
		{"a percent sign", "msg%31", badHeaders},
		{"quotes", `"msg_1"`, badHeaders},
		{"a line feed", "msg_1\n", badHeaders},
		{"a NUL", "msg_1\x00", badHeaders},
		{"a letter beyond ASCII", "m\u00e9", badHeaders},
		{"fullwidth letters", "\uff4d\uff53\uff47", badHeaders},
		{"Arabic digits", "msg_\u0661", badHeaders},
		{"a Kelvin sign", "\u212a1", badHeaders},
		{"an emoji", "\U0001F9EA", badHeaders},
		{"a zero-width space", "msg\u200b1", badHeaders},
	} {
		m := message{id.id, usual.timestamp, usual.body}
		list = append(list, vectorOf("ID: "+id.name, m, m.headers(sign(secretA, m)), id.reason))
	}
	return list
}

// timestamps are signed correctly as they are, so that only their form and their time decide.
func timestamps() (list []vector) {
	for _, timestamp := range []struct{ name, timestamp, reason string }{
		{"a zero before", "0" + now, valid},
		{"empty", "", badHeaders},
		{"a space", " ", badHeaders},
		{"a space before", " " + now, badHeaders},
		{"a space after", now + " ", badHeaders},
		{"a line feed after", now + "\n", badHeaders},
		{"a plus sign", "+" + now, badHeaders},
		{"a minus sign", "-" + now, badHeaders},
		{"a fraction", now + ".5", badHeaders},
		{"a zero fraction", now + ".0", badHeaders},
		{"a dot", now + ".", badHeaders},
		{"underscores", "1_700_000_000", badHeaders},
		{"commas", "1,700,000,000", badHeaders},
		{"hexadecimal", "0x6553f100", badHeaders},
		{"hexadecimal without a prefix", "6553f100", badHeaders},
		{"an exponent", "17e8", badHeaders},
		{"a unit", now + "s", badHeaders},
		{"NaN", "NaN", badHeaders},
		{"infinity", "Infinity", badHeaders},
		{"null", "null", badHeaders},
		{"a date", "2023-11-14T22:13:20Z", badHeaders},
		{"an HTTP date", "Tue, 14 Nov 2023 22:13:20 GMT", badHeaders},
		{"Arabic digits", "\u0661\u0667\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0660", badHeaders},
		{"fullwidth digits", "\uff11\uff17\uff10\uff10\uff10\uff10\uff10\uff10\uff10\uff10", badHeaders},
		{"two timestamps in one header", now + ", " + now, badHeaders},
		{"milliseconds", now + "000", badHeaders},
		{"nanoseconds", now + "000000000", badHeaders},
		{"the year 36812", "1099511627775", badTimestamp},
		{"a second later", "1099511627776", badHeaders},
		{"2 to the 32", "4294967296", badTimestamp},
		{"now, modulo 2 to the 32", "5994967296", badTimestamp},
		{"now, modulo 2 to the 64", "18446744075409551616", badHeaders},
		{"400 digits", strings.Repeat("9", 400), badHeaders},
		{"zero", "0", badTimestamp},
		{"minus zero", "-0", badHeaders},
		{"one", "1", badTimestamp},
	} {
		m := message{usual.id, timestamp.timestamp, usual.body}
		list = append(list, vectorOf("timestamp: "+timestamp.name, m, m.headers(sign(secretA, m)), timestamp.reason))
	}
	return list
}

// tolerances are signed correctly, and received at another time.
func tolerances() (list []vector) {
	for _, at := range []struct{ name, timestamp, now, reason string }{
		{"received half a second later", now, "1700000000.5", valid},
		{"received a second before", now, "1699999999", valid},
		{"299.999999999 s old", now, "1700000299.999999999", valid},
		{"300 s old", now, "1700000300", valid},
		{"300.000000001 s old", now, "1700000300.000000001", badTimestamp},
		{"300.5 s old", now, "1700000300.5", badTimestamp},
		{"301 s old", now, "1700000301", badTimestamp},
		{"299.999999999 s in the future", now, "1699999700.000000001", valid},
		{"300 s in the future", now, "1699999700", valid},
		{"300.000000001 s in the future", now, "1699999699.999999999", badTimestamp},
		{"300.5 s in the future", now, "1699999699.5", badTimestamp},
		{"301 s in the future", now, "1699999699", badTimestamp},
		{"ten minutes old", now, "1700000600", badTimestamp},
		{"an hour old", now, "1700003600", badTimestamp},
		{"an hour in the future", now, "1699996400", badTimestamp},
		{"a day old", now, "1700086400", badTimestamp},
		{"a day in the future", now, "1699913600", badTimestamp},
		{"ten years old", now, "2015532800", badTimestamp},
		{"ten years in the future", now, "1384467200", badTimestamp},
		{"300 s old, in 1970", "0", "300", valid},
		{"300 s in the future, in 1970", "300", "0", valid},
		{"301 s old, in 1970", "0", "301", badTimestamp},
		{"across 2 to the 31", "2147483648", "2147483647", valid},
		{"across 2 to the 32", "4294967296", "4294967295", valid},
		{"the largest timestamp", "1099511627775", "1099511627775", valid},
	} {
		m := message{usual.id, at.timestamp, usual.body}
		list = append(list, vectorAt("time: "+at.name, at.now, []string{secretA}, m, m.headers(sign(secretA, m)), at.reason))
	}
	m := usual
	return append(list, vectorAt("time: old, and forged", "1700000301", []string{secretA}, m, m.headers(sign(secretB, m)), badTimestamp))
}

// secretOf encodes n bytes, from first to first+n-1.
func secretOf(first, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(first + i)
	}
	return base64.StdEncoding.EncodeToString(b)
}

// secrets are those of a receiver. The delivery is signed with the key that a lenient decoder would
// make of the secret, so that a verifier that accepts the secret accepts the delivery.
func secrets() (list []vector) {
	for _, secret := range []struct {
		name, secret string
		key          []byte
		reason       string
	}{
		{"24 bytes", "whsec_" + secretOf(1, 24), key(secretOf(1, 24)), valid},
		{"25 bytes, two characters of padding", "whsec_" + secretOf(1, 25), key(secretOf(1, 25)), valid},
		{"26 bytes, one character of padding", "whsec_" + secretOf(1, 26), key(secretOf(1, 26)), valid},
		{"32 bytes without the prefix", secretOf(1, 32), key(secretOf(1, 32)), valid},
		{"63 bytes", "whsec_" + secretOf(1, 63), key(secretOf(1, 63)), valid},
		{"64 bytes", "whsec_" + secretOf(1, 64), key(secretOf(1, 64)), valid},
		{"65 bytes, more than a block", "whsec_" + secretOf(1, 65), key(secretOf(1, 65)), valid},
		{"200 bytes", "whsec_" + secretOf(1, 200), key(secretOf(1, 200)), valid},
		{"bytes above 0x7f", "whsec_" + secretOf(0xe0, 32), key(secretOf(0xe0, 32)), valid},
		{"a NUL at its start", "whsec_" + secretOf(0, 32), key(secretOf(0, 32)), valid},
		{"+ and / in base64", "whsec_" + strings.Repeat("+/", 16), key(strings.Repeat("+/", 16)), valid},
		{"23 bytes", "whsec_" + secretOf(1, 23), key(secretOf(1, 23)), badSecret},
		{"16 bytes", "whsec_" + secretOf(1, 16), key(secretOf(1, 16)), badSecret},
		{"one byte", "whsec_" + secretOf(1, 1), key(secretOf(1, 1)), badSecret},
		{"empty", "", nil, badSecret},
		{"a prefix without a secret", "whsec_", nil, badSecret},
		{"padding alone", "whsec_====", nil, badSecret},
		{"the prefix twice", "whsec_" + secretA, key(secretA), badSecret},
		{"the prefix in capitals", "WHSEC_" + secretOf(1, 24), key(secretOf(1, 24)), badSecret},
		{"another prefix", "whpk_" + secretOf(1, 32), key(secretOf(1, 32)), badSecret},
		{"a space before", " " + secretA, key(secretA), badSecret},
		{"a space after", secretA + " ", key(secretA), badSecret},
		{"a space after the prefix", "whsec_ " + secretOf(1, 24), key(secretOf(1, 24)), badSecret},
		{"a line feed after", secretA + "\n", key(secretA), badSecret},
		{"CR LF within", secretA[:20] + "\r\n" + secretA[20:], key(secretA), badSecret},
		{"a tab within", secretA[:20] + "\t" + secretA[20:], key(secretA), badSecret},
		{"quotes", `"` + secretA + `"`, key(secretA), badSecret},
		{"no padding", strings.TrimRight(secretB, "="), key(secretB), badSecret},
		{"too much padding", secretA + "====", key(secretA), badSecret},
		{"bits after the last byte", "whsec_" + strings.Repeat("k", 31) + "A" + "kl==", key(strings.Repeat("k", 31) + "A" + "kg=="), badSecret},
		{"the alphabet of URLs", "whsec_" + strings.Repeat("-_", 16), key(strings.Repeat("+/", 16)), badSecret},
		{"hexadecimal", "whsec_" + hex.EncodeToString(key(secretOf(1, 31))), key(secretOf(1, 31)), badSecret},
		{"an API key", "sk_us_0123456789abcdef0123456789abcdef", []byte("sk_us_0123456789abcdef0123456789abcdef"), badSecret},
		{"a password", "correct horse battery staple, again and again", []byte("correct horse battery staple, again and again"), badSecret},
		{"beyond ASCII", "whsec_\u00fc" + secretOf(1, 24), key(secretOf(1, 24)), badSecret},
		{"fullwidth letters", "whsec_" + strings.Repeat("\uff41", 32), []byte(strings.Repeat("a", 32)), badSecret},
	} {
		signature := encoded("v1", sum(secret.key, usual.content()))
		list = append(list, vectorAt("secret: "+secret.name, now, []string{secret.secret}, usual, usual.headers(signature), secret.reason))
	}
	return list
}

// rotations have receivers with several secrets, and senders that use some of them.
func rotations() (list []vector) {
	byA, byB, byC := sign(secretA, usual), sign(secretB, usual), sign(secretC, usual)
	for _, rotation := range []struct {
		name       string
		secrets    []string
		signatures []string
		reason     string
	}{
		{"the old secret, signed with the old one", []string{secretA}, []string{byA}, valid},
		{"the old secret, signed with the new one", []string{secretA}, []string{byB}, badSignature},
		{"the new secret, signed with the old one", []string{secretB}, []string{byA}, badSignature},
		{"both secrets, signed with the old one", []string{secretA, secretB}, []string{byA}, valid},
		{"both secrets, signed with the new one", []string{secretA, secretB}, []string{byB}, valid},
		{"both secrets in the other order, signed with the old one", []string{secretB, secretA}, []string{byA}, valid},
		{"both secrets, signed with both", []string{secretA, secretB}, []string{byA + " " + byB}, valid},
		{"the old secret, signed with both", []string{secretA}, []string{byA + " " + byB}, valid},
		{"the new secret, signed with both", []string{secretB}, []string{byA + " " + byB}, valid},
		{"the new secret, signed with both, in two lines", []string{secretB}, []string{byA, byB}, valid},
		{"the old secret, signed with both, in two lines", []string{secretA}, []string{byA, byB}, valid},
		{"both secrets, signed with a third", []string{secretA, secretB}, []string{byC}, badSignature},
		{"three secrets, signed with the last", []string{secretA, secretB, secretC}, []string{byC}, valid},
		{"three secrets, signed with the second", []string{secretA, secretB, secretC}, []string{byB}, valid},
		{"a third secret, signed with both others", []string{secretC}, []string{byA + " " + byB}, badSignature},
		{"one secret twice", []string{secretA, secretA}, []string{byA}, valid},
		{"with and without the prefix", []string{secretB, strings.TrimPrefix(secretA, "whsec_")}, []string{byA}, valid},
		{"no secret", []string{}, []string{byA}, badSecret},
		{"an empty secret after a usable one", []string{secretA, ""}, []string{byA}, badSecret},
		{"an empty secret before a usable one", []string{"", secretA}, []string{byA}, badSecret},
		{"a short secret after a usable one", []string{secretA, secretOf(1, 23)}, []string{byA}, badSecret},
		{"two secrets in one string", []string{secretA + " " + secretB}, []string{byA}, badSecret},
		{"two secrets with a comma", []string{secretA + "," + secretB}, []string{byA}, badSecret},
	} {
		list = append(list, vectorAt("rotation: "+rotation.name, now, rotation.secrets, usual, usual.headers(rotation.signatures...), rotation.reason))
	}
	return list
}

// signatureHeaders have a signature among other fields. At most 16 signatures are compared.
func signatureHeaders() (list []vector) {
	right, bare, other := sign(secretA, usual), strings.TrimPrefix(sign(secretA, usual), "v1,"), sign(secretB, usual)
	for _, header := range []struct {
		name   string
		lines  []string
		reason string
	}{
		{"another one first", []string{other + " " + right}, valid},
		{"another one last", []string{right + " " + other}, valid},
		{"the same one twice", []string{right + " " + right}, valid},
		{"two lines, the second matches", []string{other, right}, valid},
		{"two lines, the first is empty", []string{"", right}, valid},
		{"two lines, the first is garbage", []string{"garbage", right}, valid},
		{"joined with a comma", []string{other + "," + right}, valid},
		{"joined with a comma and a space", []string{other + ", " + right}, valid},
		{"joined with a tab", []string{other + "\t" + right}, valid},
		{"joined with spaces", []string{other + "   " + right}, valid},
		{"spaces around", []string{"  " + right + "  "}, valid},
		{"a comma at the end", []string{right + ","}, valid},
		{"an unknown version first", []string{"v2," + bare[:20] + " " + right}, valid},
		{"v1a first", []string{"v1a,c2lnbmF0dXJl " + right}, valid},
		{"a version without a signature first", []string{"v2, " + right}, valid},
		{"the right one under v2", []string{"v2," + bare}, badSignature},
		{"the right one under v1a", []string{"v1a," + bare}, badSignature},
		{"the right one under v10", []string{"v10," + bare}, badSignature},
		{"the right one under v0", []string{"v0," + bare}, badSignature},
		{"the right one under V1", []string{"V1," + bare}, badSignature},
		{"the right one under 1", []string{"1," + bare}, badSignature},
		{"the right one under v", []string{"v," + bare}, badSignature},
		{"the right one under a fullwidth v1", []string{"\uff561," + bare}, badSignature},
		{"no version", []string{bare}, badSignature},
		{"a comma before the signature", []string{"," + bare}, badSignature},
		{"v1= for v1,", []string{"v1=" + bare}, badSignature},
		{"v1: for v1,", []string{"v1:" + bare}, badSignature},
		{"v1; for v1,", []string{"v1;" + bare}, badSignature},
		{"v1 without a separator", []string{"v1" + bare}, badSignature},
		{"joined with a semicolon", []string{other + ";" + right}, badSignature},
		{"joined with a line feed", []string{other + "\n" + right}, badSignature},
		{"joined with a no-break space", []string{other + "\u00a0" + right}, badSignature},
		{"joined without a separator", []string{other + right}, badSignature},
		{"quotes", []string{`v1,"` + bare + `"`}, badSignature},
		{"empty", []string{""}, badSignature},
		{"a space", []string{" "}, badSignature},
		{"a comma", []string{","}, badSignature},
		{"v1", []string{"v1"}, badSignature},
		{"v1 and a comma", []string{"v1,"}, badSignature},
		{"v1 without signatures, many times", []string{strings.Repeat("v1, ", 50)}, badSignature},
		{"only others", []string{other + " " + sign(secretC, usual)}, badSignature},
		{"the 16th matches", []string{strings.Repeat(other+" ", 15) + right}, valid},
		{"the 17th matches", []string{strings.Repeat(other+" ", 16) + right}, badSignature},
		{"the 16th matches, one per line", append(slices.Repeat([]string{other}, 15), right), valid},
		{"the 17th matches, one per line", append(slices.Repeat([]string{other}, 16), right), badSignature},
		{"after 40 of an unknown version", []string{strings.Repeat("v2,"+bare+" ", 40) + right}, valid},
		{"the first of 1000", []string{right + strings.Repeat(" "+other, 999)}, valid},
		// A gateway splits a value at its commas: the lines of a header are one list.
		{"split at the comma", []string{"v1", bare}, valid},
		{"split at the comma, with spaces", []string{"v1 ", " " + bare}, valid},
		{"split at the comma, with an empty line between", []string{"v1", "", bare}, valid},
		{"two signatures split at the commas", []string{"v1", strings.TrimPrefix(other, "v1,") + " v1", bare}, valid},
		{"split at the comma, the next is in its own line", []string{"v1", strings.TrimPrefix(other, "v1,"), right}, valid},
		{"split at every separator", []string{"v1", strings.TrimPrefix(other, "v1,"), "v1", bare}, valid},
		{"split at the comma, under v2", []string{"v2", bare}, badSignature},
		{"v1 and v2 in lines before it", []string{"v1", "v2", bare}, badSignature},
		{"split at the comma, in the wrong order", []string{bare, "v1"}, badSignature},
		{"a signature after another", []string{other, bare}, badSignature},
		{"split within the base64", []string{"v1," + bare[:20], bare[20:]}, badSignature},
		{"the 16th matches, split at the commas", append(slices.Repeat([]string{"v1", "c2lnbmF0dXJl"}, 15), "v1", bare), valid},
		{"the 17th matches, split at the commas", append(slices.Repeat([]string{"v1", "c2lnbmF0dXJl"}, 16), "v1", bare), badSignature},
	} {
		list = append(list, vectorOf("signatures: "+header.name, usual, usual.headers(header.lines...), header.reason))
	}
	return list
}

// encodings have the right signature in another encoding, or a part of it.
func encodings() (list []vector) {
	right := sum(key(secretA), usual.content())
	standard := base64.StdEncoding.EncodeToString(right)
	withByte := base64.StdEncoding.EncodeToString(append(slices.Clone(right), 0))
	flipped := slices.Clone(right)
	flipped[len(flipped)-1] ^= 1
	flippedFirst := slices.Clone(right)
	flippedFirst[0] ^= 0x80
	for _, encoding := range []struct{ name, signature string }{
		{"no padding", strings.TrimRight(standard, "=")},
		{"two characters of padding", standard + "="},
		{"without the last character", standard[:42]},
		{"without the first character", standard[1:]},
		{"half of it", standard[:22]},
		{"16 bytes of it", base64.StdEncoding.EncodeToString(right[:16])},
		{"31 bytes of it", base64.StdEncoding.EncodeToString(right[:31])},
		{"one character", standard[:1]},
		{"a character more", standard + "A"},
		{"a byte more", withByte},
		{"twice", standard + standard},
		{"bits after the last byte", nonCanonical(standard)},
		{"the last bit is another", base64.StdEncoding.EncodeToString(flipped)},
		{"the first bit is another", base64.StdEncoding.EncodeToString(flippedFirst)},
		{"the alphabet of URLs", strings.NewReplacer("+", "-", "/", "_").Replace(standard)},
		{"lower case", strings.ToLower(standard)},
		{"upper case", strings.ToUpper(standard)},
		{"hexadecimal", hex.EncodeToString(right)},
		{"base64 of hexadecimal", base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString(right)))},
		{"base64 twice", base64.StdEncoding.EncodeToString([]byte(standard))},
		{"32 zero bytes", base64.StdEncoding.EncodeToString(make([]byte, 32))},
		{"a line feed within", standard[:20] + "\n" + standard[20:]},
		{"a fullwidth plus sign at its start", "\uff0b" + standard[1:]},
		{"reversed", reversed(standard)},
		{"text", "signature"},
	} {
		list = append(list, vectorOf("encoding: "+encoding.name, usual, usual.headers("v1,"+encoding.signature), badSignature))
	}
	return list
}

// nonCanonical returns another base64 of the same 32 bytes: the last character has two bits that
// decoders ignore.
func nonCanonical(encoded string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	return encoded[:42] + string(alphabet[strings.IndexByte(alphabet, encoded[42])|1]) + "="
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// constructions are signatures of a sender that signs other bytes, or in another way.
func constructions() (list []vector) {
	m, k := usual, key(secretA)
	unkeyed := sha256.Sum256([]byte(m.content()))
	keyFirst := sha256.Sum256([]byte(string(k) + m.content()))
	sha1MAC, sha512MAC, md5MAC := hmac.New(sha1.New, k), hmac.New(sha512.New, k), hmac.New(md5.New, k)
	sha384MAC, sha512t := hmac.New(sha512.New384, k), hmac.New(sha512.New512_256, k)
	for _, mac := range []interface{ Write([]byte) (int, error) }{sha1MAC, sha512MAC, md5MAC, sha384MAC, sha512t} {
		_, _ = mac.Write([]byte(m.content())) // never fails
	}
	for _, construction := range []struct {
		name      string
		signature []byte
	}{
		{"the body alone", sum(k, m.body)},
		{"no timestamp", sum(k, m.id+"."+m.body)},
		{"no ID", sum(k, m.timestamp+"."+m.body)},
		{"no body", sum(k, m.id+"."+m.timestamp+".")},
		{"no body and no last dot", sum(k, m.id+"."+m.timestamp)},
		{"the timestamp first", sum(k, m.timestamp+"."+m.id+"."+m.body)},
		{"the body first", sum(k, m.body+"."+m.id+"."+m.timestamp)},
		{"no dots", sum(k, m.id+m.timestamp+m.body)},
		{"commas for dots", sum(k, m.id+","+m.timestamp+","+m.body)},
		{"line feeds for dots", sum(k, m.id+"\n"+m.timestamp+"\n"+m.body)},
		{"a line feed at the end", sum(k, m.content()+"\n")},
		{"v1 before", sum(k, "v1."+m.content())},
		{"another ID", sum(k, message{"msg_other", m.timestamp, m.body}.content())},
		{"another case of the ID", sum(k, message{strings.ToLower(m.id), m.timestamp, m.body}.content())},
		{"a timestamp a second later", sum(k, message{m.id, "1700000001", m.body}.content())},
		{"a timestamp a second before", sum(k, message{m.id, "1699999999", m.body}.content())},
		{"milliseconds", sum(k, message{m.id, m.timestamp + "000", m.body}.content())},
		{"a zero before the timestamp", sum(k, message{m.id, "0" + m.timestamp, m.body}.content())},
		{"another body", sum(k, message{m.id, m.timestamp, "{}"}.content())},
		{"base64 of the body", sum(k, m.id+"."+m.timestamp+"."+base64.StdEncoding.EncodeToString([]byte(m.body)))},
		{"the secret as text", sum([]byte(secretA), m.content())},
		{"the secret as text, without the prefix", sum([]byte(strings.TrimPrefix(secretA, "whsec_")), m.content())},
		{"the secret in hexadecimal", sum([]byte(hex.EncodeToString(k)), m.content())},
		{"an empty key", sum(nil, m.content())},
		{"a key of zeros", sum(make([]byte, 24), m.content())},
		{"half the key", sum(k[:12], m.content())},
		{"a key with one bit changed", sum(append([]byte{k[0] ^ 1}, k[1:]...), m.content())},
		{"SHA-256 without a key", unkeyed[:]},
		{"SHA-256 of the key and the content", keyFirst[:]},
		{"HMAC-SHA256 twice", sum(k, string(sum(k, m.content())))},
		{"HMAC-SHA1", sha1MAC.Sum(nil)},
		{"HMAC-MD5", md5MAC.Sum(nil)},
		{"HMAC-SHA384", sha384MAC.Sum(nil)},
		{"HMAC-SHA512", sha512MAC.Sum(nil)},
		{"HMAC-SHA512/256", sha512t.Sum(nil)},
	} {
		list = append(list, vectorOf("construction: "+construction.name, m, m.headers(encoded("v1", construction.signature)), badSignature))
	}
	return list
}

// schemes mix the two names of each header. Each name with all three headers is tried on its own,
// and an ID or timestamp must not occur twice in it. If none is valid, the one that gets furthest
// has the reason.
func schemes() []vector {
	right, wrong := usual, message{"msg_other", now, `{"other":true}`}
	other, old := message{"msg_other", now, right.body}, message{"msg_old", "1600000000", right.body}
	ofRight, ofWrong, ofOther := sign(secretA, right), sign(secretA, wrong), sign(secretA, other)
	line := func(name, value string) [2]string { return [2]string{name, value} }
	webhookID, svixID := line("webhook-id", right.id), line("svix-id", right.id)
	webhookTime, svixTime := line("webhook-timestamp", now), line("svix-timestamp", now)
	webhookSignature, svixSignature := line("webhook-signature", ofRight), line("svix-signature", ofRight)
	var list []vector
	for _, scheme := range []struct {
		name    string
		headers [][2]string
		reason  string
	}{
		{"svix", right.prefixed("svix", ofRight), valid},
		{"webhook and svix, the same", append(right.headers(ofRight), right.prefixed("svix", ofRight)...), valid},
		{"svix and webhook, the same", append(right.prefixed("svix", ofRight), right.headers(ofRight)...), valid},
		{"svix is of another body", append(right.headers(ofRight), wrong.prefixed("svix", ofWrong)...), valid},
		{"webhook is of another body", append(wrong.headers(ofWrong), right.prefixed("svix", ofRight)...), valid},
		{"webhook is old", append(message{right.id, "1600000000", ""}.headers(ofRight), right.prefixed("svix", ofRight)...), valid},
		{"webhook is old, and correctly signed", append(old.headers(sign(secretA, old)), right.prefixed("svix", ofRight)...), valid},
		{"webhook has a malformed ID", append(message{"msg.1", now, ""}.headers(ofRight), right.prefixed("svix", ofRight)...), valid},
		{"webhook has an empty ID", append(message{"", now, ""}.headers(ofRight), right.prefixed("svix", ofRight)...), valid},
		{"webhook has an empty signature", append(wrong.headers(""), right.prefixed("svix", ofRight)...), valid},
		{"webhook has two IDs", append(append(wrong.headers(ofWrong), webhookID), right.prefixed("svix", ofRight)...), valid},
		{"webhook is of another secret", append(wrong.headers(sign(secretB, message{wrong.id, now, right.body})), right.prefixed("svix", ofRight)...), valid},
		{"webhook has 1000 signatures", append(wrong.headers(strings.Repeat(ofWrong+" ", 1000)), right.prefixed("svix", ofRight)...), valid},
		{"svix is old", append(right.headers(ofRight), old.prefixed("svix", sign(secretA, old))...), valid},
		{"both are of another body", append(wrong.headers(ofWrong), wrong.prefixed("svix", ofWrong)...), badSignature},
		{"both are old", append(old.headers(sign(secretA, old)), old.prefixed("svix", sign(secretA, old))...), badTimestamp},
		{"webhook is old, svix is of another body", append(old.headers(sign(secretA, old)), wrong.prefixed("svix", ofWrong)...), badSignature},
		{"webhook is of another body, svix is old", append(wrong.headers(ofWrong), old.prefixed("svix", sign(secretA, old))...), badSignature},
		{"webhook is old, svix has a malformed ID", append(old.headers(sign(secretA, old)), message{"msg.1", now, ""}.prefixed("svix", ofRight)...), badTimestamp},
		{"the signatures are swapped", append(right.headers(ofOther), other.prefixed("svix", ofRight)...), badSignature},
		{"the IDs are swapped", append(message{other.id, now, ""}.headers(ofRight), message{right.id, now, ""}.prefixed("svix", ofOther)...), badSignature},
		{"the timestamps are swapped", append(message{right.id, "1700000001", ""}.headers(ofRight), message{other.id, now, ""}.prefixed("svix", sign(secretA, message{other.id, "1700000001", right.body}))...), badSignature},
		{"the signature continues in the other name", append(right.headers("v1"), right.prefixed("svix", strings.TrimPrefix(ofRight, "v1,"))...), badSignature},
		{"webhook has only an ID", append([][2]string{line("webhook-id", "msg_other")}, right.prefixed("svix", ofRight)...), valid},
		{"webhook has only a signature", append([][2]string{line("webhook-signature", ofWrong)}, right.prefixed("svix", ofRight)...), valid},
		{"webhook has no signature", append([][2]string{line("webhook-id", "msg_other"), webhookTime}, right.prefixed("svix", ofRight)...), valid},
		{"the signature is split off", [][2]string{webhookID, webhookTime, svixSignature}, badHeaders},
		{"the ID is split off", [][2]string{svixID, webhookTime, webhookSignature}, badHeaders},
		{"the timestamp is split off", [][2]string{webhookID, svixTime, webhookSignature}, badHeaders},
		{"the svix signature is split off", [][2]string{svixID, svixTime, webhookSignature}, badHeaders},
		{"no headers", [][2]string{}, badHeaders},
		{"no ID", [][2]string{webhookTime, webhookSignature}, badHeaders},
		{"no timestamp", [][2]string{webhookID, webhookSignature}, badHeaders},
		{"no signature", [][2]string{webhookID, webhookTime}, badHeaders},
		{"no ID, svix", [][2]string{svixTime, svixSignature}, badHeaders},
		{"no timestamp, svix", [][2]string{svixID, svixSignature}, badHeaders},
		{"no signature, svix", [][2]string{svixID, svixTime}, badHeaders},
		{"the same ID twice", append(right.headers(ofRight), webhookID), badHeaders},
		{"another ID as well", append(right.headers(ofRight), line("webhook-id", "msg_other")), badHeaders},
		{"another ID as well, first", append([][2]string{line("webhook-id", "msg_other")}, right.headers(ofRight)...), badHeaders},
		{"another ID as well, in another case", append(right.headers(ofRight), line("Webhook-ID", "msg_other")), badHeaders},
		{"an empty ID as well", append(right.headers(ofRight), line("webhook-id", "")), badHeaders},
		{"the same timestamp twice", append(right.headers(ofRight), webhookTime), badHeaders},
		{"another timestamp as well", append(right.headers(ofRight), line("webhook-timestamp", "1700000001")), badHeaders},
		{"an old timestamp first", append([][2]string{line("webhook-timestamp", "1600000000")}, right.headers(ofRight)...), badHeaders},
		{"another svix ID as well", append(right.prefixed("svix", ofRight), line("svix-id", "msg_other")), badHeaders},
		{"another svix timestamp as well", append(right.prefixed("svix", ofRight), line("svix-timestamp", "1700000001")), badHeaders},
		{"webhook, and two svix IDs", append(right.headers(ofRight), svixID, line("svix-id", "msg_other")), valid},
		{"underscores in the names", [][2]string{line("webhook_id", right.id), line("webhook_timestamp", now), line("webhook_signature", ofRight)}, badHeaders},
		{"x- before the names", [][2]string{line("x-webhook-id", right.id), line("x-webhook-timestamp", now), line("x-webhook-signature", ofRight)}, badHeaders},
		{"names of another service", [][2]string{line("hook-id", right.id), line("hook-timestamp", now), line("hook-signature", ofRight)}, badHeaders},
		{"no prefix", [][2]string{line("id", right.id), line("timestamp", now), line("signature", ofRight)}, badHeaders},
		{"signature first, ID last", [][2]string{webhookSignature, webhookTime, webhookID}, valid},
		{"names in capitals", right.prefixed("WEBHOOK", ofRight), valid},
		{"names in different cases", [][2]string{line("wEBHOOK-iD", right.id), line("Webhook-TIMESTAMP", now), line("WEBHOOK-Signature", ofRight)}, valid},
		{"the signature is split, in different cases", [][2]string{webhookID, webhookTime, line("webhook-signature", ofWrong), line("WEBHOOK-SIGNATURE", ofRight)}, valid},
		{"a long s in the name", [][2]string{line("\u017fvix-id", right.id), svixTime, svixSignature}, badHeaders},
		{"a Kelvin sign in the names", right.prefixed("webhoo\u212a", ofRight), badHeaders},
		{"other headers between", [][2]string{webhookID, line("content-type", "application/json"), webhookTime, line("x-signature", ofWrong), webhookSignature}, valid},
	} {
		list = append(list, vectorOf("headers: "+scheme.name, right, scheme.headers, scheme.reason))
	}
	return list
}

// moved have bytes that moved between the ID, the timestamp and the body: the signed content is the
// same.
func moved() (list []vector) {
	signed := message{"msg_1", now, `1.{"a":1}`}
	signature := sign(secretA, signed)
	for _, m := range []struct {
		name   string
		moved  message
		reason string
	}{
		{"nothing moved", signed, valid},
		{"a byte of the body to the timestamp", message{"msg_1", now + "1", `{"a":1}`}, badTimestamp},
		{"a part of the body to the timestamp", message{"msg_1", now + ".1", `{"a":1}`}, badHeaders},
		{"the timestamp to the ID", message{"msg_1." + now, "1", `{"a":1}`}, badHeaders},
		{"a byte of the timestamp to the body", message{"msg_1", "170000000", `01.{"a":1}`}, badTimestamp},
		{"the timestamp to the body", message{"msg_1", now, now + `.1.{"a":1}`}, badSignature},
		{"a byte of the ID to the timestamp", message{"msg_", "1" + now, `1.{"a":1}`}, badTimestamp},
	} {
		list = append(list, vectorOf("moved: "+m.name, m.moved, m.moved.headers(signature), m.reason))
	}
	for _, n := range []int{1, 2, 3} {
		m := message{signed.id, signed.timestamp, signed.body[n:]}
		list = append(list, vectorOf(fmt.Sprintf("moved: %d bytes of the body lost", n), m, m.headers(signature), badSignature))
	}
	return list
}
