package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Why a delivery is not believed. None of them says more about it.
var (
	// ErrHeaders: a signature header is missing or malformed, or an id or a timestamp came twice.
	ErrHeaders = errors.New("webhooks: the signature headers are missing or malformed")
	// ErrTimestamp: the delivery was signed more than five minutes before or after now.
	ErrTimestamp = errors.New("webhooks: the timestamp of the delivery is more than five minutes away")
	// ErrSignature: none of the secrets made any of the signatures.
	ErrSignature = errors.New("webhooks: no signature of the delivery fits")
)

const (
	tolerance     = 5 * time.Minute
	minSecret     = 24  // bytes, decoded
	maxID         = 256 // bytes
	maxSignatures = 16  // signatures read of a delivery
)

// Verifier tells whether the service sent a delivery. It follows the Standard Webhooks scheme: the sender
// signs the ID of the delivery, the time and the body, with a secret that it shares with the receiver.
// The headers are webhook-id, webhook-timestamp and webhook-signature, or the same names with svix-.
// Source: public API reference only.
//
// Make one with [NewVerifier]; the zero Verifier believes nothing. It is safe for concurrent use. Printing it shows no secret.
type Verifier struct {
	// sign makes a signature with each secret. It is a closure, because %#v prints every field.
	sign     func(id, timestamp string, body []byte) []string
	unsigned bool
}

// Unsigned believes every delivery. The interface specification does not show signing, so a deployment may have none; then anybody who
// knows the address of the receiver can send it what looks like an event. It is a value to be named, so that a secret that was
// forgotten is an error and never opens the door.
var Unsigned = &Verifier{unsigned: true}

// NewVerifier returns a verifier for the secrets of an endpoint: base64 in standard encoding, with "whsec_" in front or without, of
// at least 24 bytes. A delivery is believed if any of the secrets signed it, so that a secret can be exchanged without a loss: give
// the old one and the new one until the sender uses the new one.
//
// It fails without a secret, and for one that is empty, malformed or too short; the error never quotes it.
func NewVerifier(secrets ...string) (*Verifier, error) {
	if len(secrets) == 0 {
		return nil, errors.New("webhooks: NewVerifier needs a secret; see Unsigned for a sender that does not sign")
	}
	keys := make([][]byte, len(secrets))
	for i, secret := range secrets {
		encoded := strings.TrimPrefix(secret, "whsec_")
		key, err := base64.StdEncoding.Strict().DecodeString(encoded)
		switch {
		case encoded == "":
			return nil, fmt.Errorf("webhooks: secret %d of %d is empty", i+1, len(secrets))
		case err != nil || strings.ContainsAny(encoded, "\r\n"): // the decoder steps over line ends
			return nil, fmt.Errorf("webhooks: secret %d of %d is not base64", i+1, len(secrets))
		case len(key) < minSecret:
			return nil, fmt.Errorf("webhooks: secret %d of %d has fewer than %d bytes", i+1, len(secrets), minSecret)
		}
		keys[i] = key
	}
	return &Verifier{sign: func(id, timestamp string, body []byte) []string {
		signatures := make([]string, len(keys))
		for i, key := range keys {
			mac := hmac.New(sha256.New, key)
			mac.Write([]byte(id + "." + timestamp + "."))
			mac.Write(body)
			signatures[i] = base64.StdEncoding.EncodeToString(mac.Sum(nil))
		}
		return signatures
	}}, nil
}

// Verify returns nil if the service sent the body with these headers within the last five minutes, or up to five minutes ahead of
// this clock. Otherwise it returns [ErrHeaders], [ErrTimestamp] or [ErrSignature]. The body must be the bytes as they came. Verifying
// alone does not keep a delivery from being sent again within that time: remember its [DeliveryID], as [Handler] does.
func (v *Verifier) Verify(body []byte, header http.Header) error {
	return v.VerifyAt(body, header, time.Now())
}

// VerifyAt is [Verifier.Verify] with another time for now: the time at which a stored delivery came in, or that of a test.
func (v *Verifier) VerifyAt(body []byte, header http.Header, now time.Time) error {
	s, err := v.admit(header, now)
	if err != nil {
		return err
	}
	return v.match(s, body)
}

// Sign returns the value of the signature header for a delivery: a signature with each secret, separated by spaces. It is for senders
// and tests. The timestamp counts in whole seconds. It fails for an id that Verify refuses (not 1 to 256 of A-Z a-z 0-9 _ -), for a
// time before 1970, and if there is no secret.
func (v *Verifier) Sign(id string, timestamp time.Time, body []byte) (string, error) {
	switch {
	case v == nil || v.sign == nil:
		return "", errors.New("webhooks: there is no secret to sign with")
	case !validID(id):
		return "", fmt.Errorf("webhooks: a delivery id has 1 to %d of A-Z a-z 0-9 _ -", maxID)
	case timestamp.Unix() < 0:
		return "", errors.New("webhooks: a delivery cannot be signed with a time before 1970")
	}
	return "v1," + strings.Join(v.sign(id, strconv.FormatInt(timestamp.Unix(), 10), body), " v1,"), nil
}

// DeliveryID returns the id of a delivery, which stays the same when the service sends the delivery again. It is the id that
// [Verifier.Verify] includes in what it checks, also where the headers hold more than one; empty if there is none or it is malformed.
func DeliveryID(header http.Header) string {
	if s := signedOf(header); len(s.ids) == 1 && validID(s.ids[0]) {
		return s.ids[0]
	}
	return ""
}

// signed is one family of signature headers.
type signed struct{ ids, timestamps, signatures []string }

// signedOf chooses between the families of headers: the first that is complete, else the first that has an id. A delivery is never
// judged by headers of both: its id must be the one that was signed.
func signedOf(h http.Header) (s signed) {
	for _, family := range [...]signed{
		{h["Webhook-Id"], h["Webhook-Timestamp"], h["Webhook-Signature"]},
		{h["Svix-Id"], h["Svix-Timestamp"], h["Svix-Signature"]},
	} {
		if len(family.ids) > 0 && len(family.timestamps) > 0 && len(family.signatures) > 0 {
			return family
		}
		if len(s.ids) == 0 {
			s = family
		}
	}
	return s
}

// admit checks what can be checked without the body.
func (v *Verifier) admit(h http.Header, now time.Time) (signed, error) {
	s := signedOf(h)
	switch {
	case v == nil || v.sign == nil && !v.unsigned:
		return s, ErrSignature
	case v.unsigned:
		return s, nil
	case len(s.ids) != 1 || len(s.timestamps) != 1 || len(s.signatures) == 0 || !validID(s.ids[0]):
		return s, ErrHeaders
	}
	seconds, err := strconv.ParseUint(s.timestamps[0], 10, 40) // until the year 36812, so that nothing overflows
	if err != nil {
		return s, ErrHeaders
	}
	if age := now.Sub(time.Unix(int64(seconds), 0)); age > tolerance || age < -tolerance {
		return s, ErrTimestamp
	}
	return s, nil
}

// match compares each signature that came with each that would be right, all of them, whichever fits.
func (v *Verifier) match(s signed, body []byte) error {
	if v.unsigned {
		return nil
	}
	right := v.sign(s.ids[0], s.timestamps[0], body)
	found, read := 0, 0
	for _, line := range s.signatures {
		// "v1,signature v1,signature". A proxy may have folded lines into one, with commas between them, so every part that
		// follows a v1 is taken as a signature; other versions are stepped over.
		version := ""
		for part := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' }) {
			if version == "v1" && read < maxSignatures {
				read++
				for i := range right {
					found |= subtle.ConstantTimeCompare([]byte(part), []byte(right[i]))
				}
			}
			version = part
		}
	}
	if found == 0 {
		return ErrSignature
	}
	return nil
}

func validID(id string) bool {
	return 0 < len(id) && len(id) <= maxID && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}
