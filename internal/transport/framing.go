// The framing of HTTP/1 responses, as net/http reads it.

package transport

import (
	"bytes"
	"errors"
	"strconv"
)

// framing reads the lines of HTTP/1 responses as net/http does, to find the length of their bodies.
// The zero framing expects a status line.
type framing struct {
	part          part
	informational bool  // the response is a 1xx, which another one follows
	http10        bool  // Transfer-Encoding has no meaning
	chunked       bool  // there is a Transfer-Encoding, so that Content-Length has no meaning
	length        int64 // the Content-Length; -1 if there is none
	invalid       bool  // net/http may read another length
}

// part is the part of a response that the next line belongs to.
type part uint8

const (
	statusLine part = iota
	headerLine
	bodyLine // of a body without a length, which may contain anything
)

var errLength = errors.New("invalid Content-Length")

// next reads a line with its end and returns the length of the body that follows, or 0 if there is
// none or its length is unknown. truncated reports whether the line was longer.
func (f *framing) next(line []byte, truncated bool) (int64, error) {
	switch f.part {
	case statusLine:
		version, status, _ := bytes.Cut(line, []byte(" "))
		*f = framing{
			part: headerLine, length: -1, http10: string(version) == "HTTP/1.0",
			informational: bytes.HasPrefix(status, []byte("1")) && !bytes.HasPrefix(status, []byte("101")),
		}
	case headerLine:
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return f.endHeader()
		}
		f.header(line, truncated)
	case bodyLine:
	}
	return 0, nil
}

func (f *framing) header(line []byte, truncated bool) {
	// A line that starts with a space continues the previous one: it has another name, and makes a
	// length longer, which net/http rejects.
	name, value, _ := bytes.Cut(line, []byte(":"))
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 63)
		f.invalid = f.invalid || truncated || err != nil || f.length >= 0 && f.length != int64(n)
		f.length = int64(n)
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		f.chunked = !f.http10
	}
}

func (f *framing) endHeader() (int64, error) {
	if f.informational {
		f.part = statusLine
		return 0, nil
	}
	f.part = bodyLine
	switch {
	case f.chunked:
		return 0, nil
	case f.invalid:
		return 0, errLength
	}
	return max(f.length, 0), nil
}
