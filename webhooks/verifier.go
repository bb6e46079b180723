// Verifier: signatures of the Standard Webhooks scheme.

package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Errors returned by [Verifier.Verify]. They contain no part of the delivery.
var (
	// ErrHeaders is returned if a signature header is missing or malformed, or if there is more
	// than one ID or timestamp with the same prefix.
	ErrHeaders = errors.New("webhooks: the signature headers are missing or malformed: check whether the service sent it, and what a proxy removes")
	// ErrTimestamp is returned if the timestamp of the delivery differs from the current time by
	// more than five minutes.
	ErrTimestamp = errors.New("webhooks: the timestamp of the delivery is more than five minutes away: check the clock of this system")
	// ErrSignature is returned if none of the signatures was made with any of the secrets.
	ErrSignature = errors.New("webhooks: no signature of the delivery matches: check whether the secret is that of this endpoint, and what changes the body")
)

const (
	tolerance     = 5 * time.Minute
	minSecret     = 24  // bytes, decoded
	maxID         = 256 // bytes
	maxSignatures = 16  // signatures checked per set of headers
)

// Verifier checks that the service sent a delivery. It follows the Standard Webhooks scheme: the
// sender signs the ID of the delivery, the time and the body with a secret that it shares with the
// receiver. The headers are webhook-id, webhook-timestamp and webhook-signature, or svix-id,
// svix-timestamp and svix-signature, in upper or lower case. If both sets are present, as behind a
// relay that signs too, one complete set must be valid. Source: public API reference only.
//
// [NewVerifier] returns a Verifier; the zero Verifier rejects every delivery. A Verifier is safe
// for concurrent use. Printing it does not show the secrets.
type Verifier struct {
	// sign returns a signature with each secret. It is a closure, because %#v prints every field.
	sign     func(id, timestamp string, body []byte) []string
	unsigned bool
}

// Unsigned accepts every delivery. Use it only for a deployment that does not sign: the interface
// specification does not describe signatures. Anyone who knows the URL of such a receiver can send
// events to it. Unsigned must be passed explicitly, so that a missing secret is an error instead of
// an open receiver.
var Unsigned = &Verifier{unsigned: true}

// NewVerifier returns a verifier for the secrets of an endpoint. A secret is at least 24 bytes,
// encoded as standard base64, with or without the prefix "whsec_". A delivery is accepted if any of
// the secrets signed it. To rotate a secret without losing deliveries, pass the old and the new one
// until the sender uses the new one.
//
// It returns an error if there is no secret, or if one is empty, malformed or too short. The error
// does not quote the secret.
func NewVerifier(secrets ...string) (*Verifier, error) {
	if len(secrets) == 0 {
		return nil, errors.New("webhooks: NewVerifier needs a secret; see Unsigned for a sender that does not sign")
	}
	keys := make([][]byte, len(secrets))
	for i, secret := range secrets {
		key, err := decodeSecret(secret)
		if err != nil {
			return nil, fmt.Errorf("webhooks: secret %d of %d %w", i+1, len(secrets), err)
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

// decodeSecret returns the key of a secret. Its errors do not quote the secret.
func decodeSecret(secret string) ([]byte, error) {
	encoded := strings.TrimPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	switch {
	case encoded == "":
		return nil, errors.New("is empty: is its environment variable set?")
	case strings.ContainsAny(encoded, "\r\n"): // the decoder ignores them
		return nil, errors.New("has a line break: remove it, for example with strings.TrimSpace")
	case err != nil:
		return nil, errors.New("is not base64: pass the signing secret of the webhook, such as whsec_…, and no API key")
	case len(key) < minSecret:
		return nil, fmt.Errorf("has fewer than %d bytes", minSecret)
	}
	return key, nil
}

// Verify returns nil if the headers and the body have a valid signature and the timestamp differs
// from the current time by at most five minutes. Otherwise it returns [ErrHeaders], [ErrTimestamp]
// or [ErrSignature]. The body must be the received bytes. Verify does not detect a delivery that is
// repeated within that time: store its [DeliveryID], as [Handler] does.
func (v *Verifier) Verify(body []byte, header http.Header) error {
	return v.VerifyAt(body, header, time.Now())
}

// VerifyAt is like [Verifier.Verify], but uses now as the current time. Use it for a stored
// delivery, with the time of its receipt, and in tests.
func (v *Verifier) VerifyAt(body []byte, header http.Header, now time.Time) error {
	_, err := v.verify(body, header, now)
	return err
}

// Sign returns the value of the signature header for a delivery: one signature per secret,
// separated by spaces. It is for senders and tests. The timestamp is truncated to seconds. Sign
// returns an error if the ID is not 1 to 256 characters of A-Z a-z 0-9 _ -, if the time is before
// 1970, or if there is no secret.
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

// DeliveryID returns the ID of a delivery, which is the same in every attempt to deliver it. It is
// empty if the ID is missing or malformed, or if the headers have two complete sets with different
// IDs: which of them was signed depends on the body. A [Handler] uses the one that was signed.
func DeliveryID(header http.Header) string {
	sets := setsOf(header)
	return sets.id()
}

// verify returns the ID of the delivery that was signed.
func (v *Verifier) verify(body []byte, h http.Header, now time.Time) (id string, err error) {
	return v.find(h, now, func(s signatureSet) bool {
		return s.matches(v.sign(s.ids[0], s.timestamps[0], body))
	})
}

// checkHeaders checks everything except the signatures, without the body.
func (v *Verifier) checkHeaders(h http.Header, now time.Time) error {
	_, err := v.find(h, now, func(signatureSet) bool { return true })
	return err
}

// find returns the ID of a complete and current set that isSigned.
func (v *Verifier) find(h http.Header, now time.Time, isSigned func(signatureSet) bool) (id string, err error) {
	switch {
	case v == nil || v.sign == nil && !v.unsigned:
		return "", ErrSignature
	case v.unsigned:
		return DeliveryID(h), nil
	}
	sets := setsOf(h)
	return sets.find(now, isSigned)
}

// signatureSet has the signature headers with one prefix.
type signatureSet struct{ ids, timestamps, signatures []string }

// signatureSets are those with the prefix webhook and with the prefix svix. They are never mixed:
// the ID must be the one that was signed.
type signatureSets [2]signatureSet

// setsOf finds the sets. Names that are not canonical, as in the map of a gateway, count too.
func setsOf(h http.Header) (sets signatureSets) {
	for name, lines := range h {
		to := sets.linesOf(name)
		if to == nil {
			switch len(name) {
			case len("svix-id"), len("webhook-id"), len("svix-signature"), len("webhook-signature"):
				to = sets.linesOf(http.CanonicalHeaderKey(name))
			}
		}
		switch {
		case to == nil:
		case *to == nil:
			*to = lines
		default:
			*to = slices.Concat(*to, lines)
		}
	}
	return sets
}

// linesOf returns the lines of a header by its canonical name, nil if it is of no set.
func (sets *signatureSets) linesOf(name string) *[]string {
	switch name {
	case "Webhook-Id":
		return &sets[0].ids
	case "Webhook-Timestamp":
		return &sets[0].timestamps
	case "Webhook-Signature":
		return &sets[0].signatures
	case "Svix-Id":
		return &sets[1].ids
	case "Svix-Timestamp":
		return &sets[1].timestamps
	case "Svix-Signature":
		return &sets[1].signatures
	}
	return nil
}

// find returns the ID of a set that isSigned, unless it is not complete or not current. The error
// is that of the set that passes more of these checks.
func (sets *signatureSets) find(now time.Time, isSigned func(signatureSet) bool) (id string, err error) {
	err = ErrHeaders
	for i := range sets {
		s := &sets[i]
		at, isComplete := s.time()
		age := now.Sub(at)
		isCurrent := age <= tolerance && age >= -tolerance
		switch {
		case isComplete && isCurrent && isSigned(*s):
			return s.ids[0], nil
		case isComplete && isCurrent:
			err = ErrSignature
		case isComplete && errors.Is(err, ErrHeaders):
			err = ErrTimestamp
		}
	}
	return "", err
}

// id returns the ID of the complete sets or, if there are none, of those with an ID. It is empty if
// there are two IDs.
func (sets *signatureSets) id() (id string) {
	complete := false
	for i := range sets {
		own := sets[i].id()
		_, isComplete := sets[i].time()
		switch {
		case own == "":
		case id == "" || isComplete && !complete:
			id, complete = own, isComplete
		case own != id && isComplete == complete:
			return ""
		}
	}
	return id
}

// id returns the ID of a set, "" if it has none or more than one.
func (s *signatureSet) id() string {
	if len(s.ids) == 1 && validID(s.ids[0]) {
		return s.ids[0]
	}
	return ""
}

// time returns the timestamp of a set. It reports false for a set that is not complete.
func (s *signatureSet) time() (time.Time, bool) {
	if s.id() == "" || len(s.timestamps) != 1 || len(s.signatures) == 0 {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseUint(s.timestamps[0], 10, 40) // to the year 36812
	return time.Unix(int64(seconds), 0), err == nil
}

// matches compares each received signature with each expected one. It compares all of them,
// whichever matches.
func (s *signatureSet) matches(expected []string) bool {
	// "v1,signature v1,signature". The lines of a header are one list, which proxies join with
	// commas and gateways split at them: each field after a v1 is a signature. Other versions are
	// ignored.
	match, checked, version := 0, 0, ""
	for _, line := range s.signatures {
		for field := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' }) {
			if version == "v1" {
				if checked++; checked > maxSignatures {
					return match == 1
				}
				for i := range expected {
					match |= subtle.ConstantTimeCompare([]byte(field), []byte(expected[i]))
				}
			}
			version = field
		}
	}
	return match == 1
}

func validID(id string) bool {
	return 0 < len(id) && len(id) <= maxID && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}
