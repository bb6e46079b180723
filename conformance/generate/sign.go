package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"log"
	"strings"
)

// The reasons for which a delivery is not valid.
const (
	valid        = ""
	badSecret    = "secret"    // a secret of the receiver cannot be used
	badHeaders   = "headers"   // a header is missing, malformed or repeated
	badTimestamp = "timestamp" // more than five minutes from now
	badSignature = "signature" // no signature is that of a secret
)

// Invented secrets, of 24, 32 and 48 bytes.
const (
	secretA = "whsec_bGFiaGVhbHRoLXRlc3Qtc2VjcmV0LWE9"
	secretB = "whsec_bGFiaGVhbHRoLXRlc3Qtc2VjcmV0LWItMzItYnl0ZXM="
	secretC = "whsec_bGFiaGVhbHRoLXRlc3Qtc2VjcmV0LWMgd2l0aCBmb3J0eS1laWdodCBieXRlcyAt"
)

// message is what is signed.
type message struct{ id, timestamp, body string }

// now is the time of most vectors, and usual is the message of most of them.
const now = "1700000000"

// Its signature with secretA has each character that differs between the alphabets of base64.
var usual = message{"msg_2KWPBgLlAfxdpx2AI54pPJ80012", now, `{"event_type":"labtest.order.updated","data":{"id":"3f0c9a52-7d1e-4b6a-9c58-2e41d7a6b803"}}`}

// content returns the signed bytes of a message.
func (m message) content() string { return m.id + "." + m.timestamp + "." + m.body }

// headers returns the headers of a message with the prefix "webhook", one line per signature.
func (m message) headers(signatures ...string) [][2]string {
	return m.prefixed("webhook", signatures...)
}

func (m message) prefixed(prefix string, signatures ...string) [][2]string {
	lines := [][2]string{{prefix + "-id", m.id}, {prefix + "-timestamp", m.timestamp}}
	for _, s := range signatures {
		lines = append(lines, [2]string{prefix + "-signature", s})
	}
	return lines
}

// key decodes a secret.
func key(secret string) []byte {
	k, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		log.Fatalf("secret %q: %v", secret, err)
	}
	return k
}

// sum returns the HMAC-SHA256 of content.
func sum(key []byte, content string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(content))
	return mac.Sum(nil)
}

// encoded returns a signature in the form of the header: the version, a comma, and base64.
func encoded(version string, signature []byte) string {
	return version + "," + base64.StdEncoding.EncodeToString(signature)
}

// sign returns the signature of a message with a secret.
func sign(secret string, m message) string { return encoded("v1", sum(key(secret), m.content())) }

// vectorOf returns a vector for a receiver with one secret, secretA.
func vectorOf(name string, m message, headers [][2]string, reason string) vector {
	return vectorAt(name, now, []string{secretA}, m, headers, reason)
}

// vectorAt returns a vector. The body is that of the message, and so is the ID of a valid delivery.
func vectorAt(name, now string, secrets []string, m message, headers [][2]string, reason string) vector {
	v := vector{Name: name, Secrets: secrets, Now: now, Headers: headers, Body: []byte(m.body), Reason: reason}
	if reason == valid {
		v.Valid, v.ID = true, m.id
	}
	return v
}
