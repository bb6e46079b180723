package attack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// http1Plan is what an HTTP/1 server does with the bytes of one exchange.
type http1Plan struct {
	ReadOnly int    `json:",omitzero"` // it reads so many bytes of the request and then does End; 0 reads all
	Early    bool   `json:",omitzero"` // it responds before it has read the body
	Storm    int    `json:",omitzero"` // informational responses before the response
	StormOf  int    `json:",omitzero"` // their status; 0 is 100
	Preface  string `json:",omitzero"` // bytes before the status line
	Version  string `json:",omitzero"` // in place of HTTP/1.1
	Framing  string `json:",omitzero"` // of framings; empty for Content-Length
	Extra    int    `json:",omitzero"` // the Content-Length is so much larger than the body
	Header   int    `json:",omitzero"` // bytes of an extra header
	Trailer  bool   `json:",omitzero"` // after a chunked body
	Encoding string `json:",omitzero"` // of encodings; empty for none

	Written  int           `json:",omitzero"` // it writes Written-1 bytes of the response and then does End; 0 writes all
	Pause    int           `json:",omitzero"` // it pauses after so many bytes of the response
	PauseFor time.Duration `json:",omitzero"`
	ByteWise bool          `json:",omitzero"` // it writes one byte at a time
	Stray    string        `json:",omitzero"` // bytes after the response
	StrayOwn bool          `json:",omitzero"` // they are sent when the connection is idle, not with the response
	End      string        `json:",omitzero"` // of ends; empty keeps the connection
	EndDelay time.Duration `json:",omitzero"` // before End
}

// Ends of an exchange.
const (
	endClose = "close"
	endReset = "reset"
	endStall = "stall" // silence until the world ends
)

// Framings of a response.
const (
	framingChunked     = "chunked"
	framingUntilClose  = "until close"
	framingBoth        = "chunked and a length"
	framingTwoLengths  = "two lengths"
	framingNegative    = "negative length"
	framingBadLength   = "bad length"
	framingBadChunk    = "bad chunk size"
	framingHugeChunk   = "huge chunk size"
	framingEndlessBody = "endless"
)

// request is what an HTTP/1 server reads.
type request struct {
	method, path string
	fields       []field
}

func (r *request) header(name string) string {
	for _, f := range r.fields {
		if strings.EqualFold(f.name, name) {
			return f.value
		}
	}
	return ""
}

// http1Conn reads the bytes of requests, at most as many as it is told to.
type http1Conn struct {
	net.Conn
	data  []byte // read and not used
	limit int    // bytes left of this exchange; negative for no limit
}

var errReadOnly = errors.New("the server reads no more")

// fill reads more bytes.
func (c *http1Conn) fill() error {
	var chunk [4096]byte
	room := len(chunk)
	if c.limit == 0 {
		return errReadOnly
	}
	if c.limit > 0 {
		room = min(room, c.limit)
	}
	n, err := c.Read(chunk[:room])
	c.data = append(c.data, chunk[:n]...)
	if c.limit > 0 {
		c.limit -= n
	}
	if n > 0 {
		return nil
	}
	return err
}

func (c *http1Conn) line() (string, error) {
	for {
		if i := bytes.IndexByte(c.data, '\n'); i >= 0 {
			line := strings.TrimSuffix(string(c.data[:i]), "\r")
			c.data = c.data[i+1:]
			return line, nil
		}
		if err := c.fill(); err != nil {
			return "", err
		}
	}
}

func (c *http1Conn) skip(n int) error {
	for n > len(c.data) {
		n -= len(c.data)
		c.data = nil
		if err := c.fill(); err != nil {
			return err
		}
	}
	c.data = c.data[n:]
	return nil
}

func (c *http1Conn) readHeader() (*request, error) {
	first, err := c.line()
	if err != nil {
		return nil, err
	}
	var r request
	r.method, r.path, _ = strings.Cut(first, " ")
	for {
		line, err := c.line()
		if err != nil {
			return nil, err
		}
		if line == "" {
			return &r, nil
		}
		name, value, _ := strings.Cut(line, ":")
		r.fields = append(r.fields, field{name, strings.TrimSpace(value)})
	}
}

// readBody reads the body of r to its end.
func (c *http1Conn) readBody(r *request) error {
	if !strings.EqualFold(r.header("Transfer-Encoding"), "chunked") {
		n, err := strconv.Atoi(r.header("Content-Length"))
		if err != nil {
			return nil
		}
		return c.skip(n)
	}
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		size, err := strconv.ParseInt(line, 16, 32)
		if err != nil {
			return err
		}
		if err := c.skip(int(size)); err != nil {
			return err
		}
		if end, err := c.line(); err != nil || end != "" {
			return fmt.Errorf("no line end after a chunk: %w", err)
		}
		if size == 0 {
			return nil
		}
	}
}

// serveHTTP1 serves one connection.
func serveHTTP1(c net.Conn, w *world, p *connPlan) {
	conn := &http1Conn{Conn: c}
	for n := 0; ; n++ {
		x := exchange{}
		if n < len(p.Exchanges) {
			x = p.Exchanges[n]
		}
		if x.HTTP1 == nil {
			x.HTTP1 = &http1Plan{}
		}
		if !conn.exchange(w, x.Answer, x.HTTP1) {
			return
		}
	}
}

// exchange serves one request. It reports whether the connection can serve another one.
func (c *http1Conn) exchange(w *world, plan answer, p *http1Plan) bool {
	c.limit = -1
	if p.ReadOnly > 0 {
		c.limit = p.ReadOnly
	}
	r, err := c.readHeader()
	if err != nil {
		return errors.Is(err, errReadOnly) && c.end(w, p)
	}
	a := w.arrive(r.method, r.path, r.header)
	defer a.over(plan)
	a.received(plan, false)
	if !p.Early {
		if err := c.readBody(r); err != nil {
			return errors.Is(err, errReadOnly) && c.end(w, p)
		}
		a.received(plan, true)
	}
	c.limit = -1
	if plan.Delay > 0 {
		w.stall(plan.Delay)
	}
	if !c.respond(w, a, plan, p) {
		return false
	}
	if p.Early {
		if c.readBody(r) != nil {
			return false
		}
		a.received(plan, true)
	}
	return c.end(w, p)
}

// end does what a plan says after an exchange, or in place of the rest of it.
func (c *http1Conn) end(w *world, p *http1Plan) bool {
	if p.EndDelay > 0 {
		w.stall(p.EndDelay)
	}
	switch p.End {
	case endReset:
		resetConn(c.Conn)
	case endStall:
		w.stall(0)
	case "":
		return c.limit < 0 // otherwise it is within a request
	}
	return false
}

// respond writes the response. It reports whether the whole of it was written.
func (c *http1Conn) respond(w *world, a *arrival, plan answer, p *http1Plan) bool {
	text := p.response(a, plan)
	_ = w
	_, err := io.WriteString(c.Conn, string(text))
	return err == nil
}

// response returns the bytes of a response.
func (p *http1Plan) response(a *arrival, plan answer) []byte {
	status, header, content := a.respond(plan)
	out := fmt.Appendf(nil, "HTTP/1.1 %d Status\r\n", status)
	for _, f := range header {
		out = fmt.Appendf(out, "%s: %s\r\n", f.name, f.value)
	}
	out = fmt.Appendf(out, "Content-Length: %d\r\n\r\n", len(content))
	return append(out, content...)
}

// serveForeign is what listens at every other host. It records all bytes, and accepts everything.
func (w *world) serveForeign(c net.Conn) {
	buffer := make([]byte, 4096)
	for {
		n, err := c.Read(buffer)
		w.mu.Lock()
		w.foreign = append(w.foreign, buffer[:n]...)
		w.mu.Unlock()
		if err != nil {
			return
		}
		if bytes.Contains(buffer[:n], []byte("\r\n\r\n")) {
			body := `{"id":"3f0c9a52-7d1e-4b6a-9c58-2e41d7a6b803"}`
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
	}
}
