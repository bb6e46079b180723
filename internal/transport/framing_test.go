package transport

import (
	"bufio"
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// FuzzFraming compares the header and the length of a body with those that net/http reads. An error
// is always right, because it closes the connection.
func FuzzFraming(f *testing.F) {
	for _, r := range responses {
		f.Add([]byte(r.text))
	}
	for _, header := range []string{
		"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 200 OK\nContent-Length: 2\nContent-Length: 2\n\n{}",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nContent-Length:\r\n 2\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n \r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nX:\r\nContent-Length:2\r\nTransfer-Encoding:\tChunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nContent-Length: " + strings.Repeat("0", 300) + "2\r\n\r\n{}",
	} {
		f.Add([]byte(header))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		length, end, err := frame(document)
		if err != nil {
			return
		}
		resp, wantEnd, err := readHeader(document)
		if err != nil {
			return
		}
		want := max(resp.ContentLength, 0)
		if slices.Contains(resp.TransferEncoding, "chunked") {
			want = 0
		}
		if resp.StatusCode == 204 || resp.StatusCode == 304 || resp.StatusCode == 101 {
			want = length // there is no body to read
		}
		if length != want || end != wantEnd {
			t.Errorf("%q: %d bytes after %d, want %d after %d", document, length, end, want, wantEnd)
		}
	})
}

// frame returns the length of the body and the end of the header, as a conn finds them.
func frame(document []byte) (length int64, end int, err error) {
	var f framing
	for line := range bytes.Lines(document) {
		length, err = f.next(line[:min(len(line), maxLine)], len(line) > maxLine)
		end += len(line)
		if err != nil || f.part == bodyLine {
			return length, end, err
		}
	}
	return 0, end, nil
}

// readHeader returns the final response, as net/http reads it, and the end of its header.
func readHeader(document []byte) (*http.Response, int, error) {
	in := bytes.NewReader(document)
	buffered := bufio.NewReader(in)
	for {
		resp, err := http.ReadResponse(buffered, &http.Request{Method: http.MethodGet})
		if err != nil || resp.StatusCode < 100 || resp.StatusCode > 199 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, len(document) - in.Len() - buffered.Buffered(), err
		}
	}
}
