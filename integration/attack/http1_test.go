package attack

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
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

// randomHTTP1 returns a few faults.
func randomHTTP1(r *rand.Rand) *http1Plan {
	p := &http1Plan{}
	for range 1 + r.IntN(3) {
		switch r.IntN(12) {
		case 0:
			p.ReadOnly = 1 + pickLow(r, 3000)
			p.End = pick(r, endClose, endReset, endStall)
		case 1:
			p.Early = true
		case 2:
			p.Storm, p.StormOf = 1+pickLow(r, 40), pick(r, 100, 102, 103, 199)
		case 3:
			p.Preface = pick(r, "\r\n", "\x00", "garbage "+patientCanary+"\r\n", "HTTP/1.1 \r\n", "\x15\x03\x01\x00\x02\x02\x70", "220 "+patientCanary+" ESMTP\r\n")
		case 4:
			p.Version = pick(r, "HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "HTTP/1.1 ", "ICY", "http/1.1", "")
		case 5:
			p.Framing = pick(r, framingChunked, framingUntilClose, framingBoth, framingTwoLengths, framingNegative, framingBadLength,
				framingBadChunk, framingHugeChunk, framingEndless)
			p.Trailer = oneIn(r, 2)
		case 6:
			p.Extra = pick(r, 1, 10, 1<<40, -1, -10)
		case 7:
			p.Header = pick(r, 100, 10_000, 300_000)
		case 8:
			p.Encoding = pick(r, "gzip", "cut gzip", "not gzip", "gzip and more", "bomb")
		case 9:
			p.Pause, p.PauseFor = 1+pickLow(r, 300), randomTime(r, 7)
			p.ByteWise = oneIn(r, 4)
		case 10:
			p.Stray, p.StrayOwn = pick(r, strays...), oneIn(r, 2)
		case 11:
			p.Written = 1 + r.IntN(400)
			p.End = pick(r, endClose, endReset, endStall)
		}
	}
	if oneIn(r, 3) {
		p.End = pick(r, endClose, endReset, endStall)
		if oneIn(r, 2) {
			p.EndDelay = randomTime(r, 6)
		}
	}
	return p
}

// strays are bytes that no request has asked for.
var strays = []string{
	"x", "\r\n", patientCanary,
	"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n{\"order\":{\"id\":\"stray\"}}\r\n\r\n",
	"HTTP/1.1 422 " + patientCanary + "\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n",
	"HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n",
}

// Ends of an exchange.
const (
	endClose = "close"
	endReset = "reset"
	endStall = "stall" // silence until the world ends
)

// Framings of a response.
const (
	framingChunked    = "chunked"
	framingUntilClose = "until close"
	framingBoth       = "chunked and a length"
	framingTwoLengths = "two lengths"
	framingNegative   = "negative length"
	framingBadLength  = "bad length"
	framingBadChunk   = "bad chunk size"
	framingHugeChunk  = "huge chunk size"
	framingEndless    = "endless"
)

// hidesCuts reports whether the client cannot see that the body is not complete.
func (p *http1Plan) hidesCuts() bool {
	return p.Framing == framingUntilClose || p.Version != "" || p.Extra < 0 || p.Encoding != "" || p.Preface != ""
}

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
	r.path, _, _ = strings.Cut(r.path, " ")
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
			return nil //nolint:nilerr // it has no body
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
		_ = c.SetReadDeadline(time.Now().Add(longStall)) // some transports keep a connection for ever
		if !conn.exchange(w, x.Response, x.HTTP1) {
			return
		}
	}
}

// exchange serves one request. It reports whether the connection can serve another one.
func (c *http1Conn) exchange(w *world, plan responsePlan, p *http1Plan) bool {
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
		_ = c.end(w, p)
		return false
	}
	if p.Early {
		if c.readBody(r) != nil {
			return false
		}
		a.received(plan, true)
	}
	if p.Stray != "" && p.StrayOwn && p.End == "" {
		c.strayBytes(w, p.Stray)
	}
	return c.end(w, p)
}

// end does what a plan says after an exchange, or in place of the rest of it.
func (c *http1Conn) end(w *world, p *http1Plan) bool {
	if p.End != "" {
		w.count("http1 " + p.End)
	}
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

// respond writes the response. It reports whether the connection can serve another request.
func (c *http1Conn) respond(w *world, a *arrival, plan responsePlan, p *http1Plan) bool {
	whole := p.response(w, a, plan)
	text := whole
	if p.Written > 0 {
		w.count("http1 cut")
		text = whole[:min(p.Written-1, len(whole))]
	}
	if err := c.write(w, text, p); err != nil {
		return false
	}
	switch p.Framing {
	case framingUntilClose:
		return false
	case framingEndless:
		for c.write(w, bytes.Repeat([]byte("x"), 4096), p) == nil {
		}
		return false
	}
	return len(text) == len(whole)
}

// write writes a part of the response.
func (c *http1Conn) write(w *world, text []byte, p *http1Plan) error {
	if p.Pause > 0 && p.Pause < len(text) {
		w.count("http1 pause")
		if _, err := c.Write(text[:p.Pause]); err != nil {
			return err
		}
		w.stall(p.PauseFor)
		text = text[p.Pause:]
	}
	for p.ByteWise && len(text) > 1 {
		if _, err := c.Write(text[:1]); err != nil {
			return err
		}
		text = text[1:]
	}
	_, err := c.Write(text)
	return err
}

// response returns the bytes of a response.
func (p *http1Plan) response(w *world, a *arrival, plan responsePlan) []byte {
	if p.Framing == framingUntilClose && plan.status() < 300 {
		a.commit() // what is left of the page of a proxy may look like an empty response
	}
	status, header, content := a.respond(plan)
	var out []byte
	if p.Storm > 0 {
		w.count("http1 informational responses")
	}
	for range p.Storm {
		out = fmt.Appendf(out, "HTTP/1.1 %d Wait\r\nLink: </%s>\r\n\r\n", max(p.StormOf, 100), patientCanary)
	}
	out = append(out, p.Preface...)
	out = fmt.Appendf(out, "%s %d Status %s\r\n", cmp.Or(p.Version, "HTTP/1.1"), status, patientCanary)
	for _, f := range header {
		out = fmt.Appendf(out, "%s: %s\r\n", f.name, f.value)
	}
	if p.Header > 0 {
		w.count("http1 huge header")
		out = fmt.Appendf(out, "X-Huge: %s\r\n", strings.Repeat(patientCanary, p.Header/len(patientCanary)))
	}
	if e := encodings[p.Encoding]; e != nil {
		w.count("http1 encoding " + p.Encoding)
		out = append(out, "Content-Encoding: gzip\r\n"...)
		content = e(content)
	}
	if a.method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified || status < 200 {
		return append(out, "\r\n"...)
	}
	if p.Extra < 0 && !p.inOnePiece(len(out)+len(content)) {
		content = content[:len(content)+max(p.Extra, -len(content))]
	}
	out = p.frame(w, out, content)
	if p.Stray != "" && !p.StrayOwn && p.inOnePiece(len(out)+len(p.Stray)) {
		w.count("http1 stray bytes")
		out = append(out, p.Stray...)
	}
	return out
}

// inOnePiece reports whether a client reads size bytes at once. Unsolicited bytes that arrive later
// than the end of the response may arrive after the next request: see strayBytes.
func (p *http1Plan) inOnePiece(size int) bool {
	return !p.ByteWise && p.Pause == 0 && size <= 2048
}

// frame appends the body and the headers that frame it.
func (p *http1Plan) frame(w *world, out, content []byte) []byte {
	if p.Framing != "" {
		w.count("http1 framing " + p.Framing)
	}
	length := max(0, len(content)+p.Extra)
	switch p.Framing {
	case framingChunked, framingBadChunk, framingHugeChunk:
		out = append(out, "Transfer-Encoding: chunked\r\n\r\n"...)
		return p.chunks(out, content)
	case framingBoth:
		out = fmt.Appendf(out, "Transfer-Encoding: chunked\r\nContent-Length: %d\r\n\r\n", length)
		return p.chunks(out, content)
	case framingUntilClose, framingEndless:
		return append(append(out, "Connection: close\r\n\r\n"...), content...)
	case framingTwoLengths:
		out = fmt.Appendf(out, "Content-Length: %d\r\nContent-Length: %d\r\n\r\n", length, length/2)
	case framingNegative:
		out = fmt.Appendf(out, "Content-Length: -%d\r\n\r\n", length)
	case framingBadLength:
		out = fmt.Appendf(out, "Content-Length: %dx\r\n\r\n", length)
	default:
		out = fmt.Appendf(out, "Content-Length: %d\r\n\r\n", length)
	}
	return append(out, content...)
}

// chunks appends a chunked body, in two chunks.
func (p *http1Plan) chunks(out, content []byte) []byte {
	half := len(content) / 2
	for _, part := range [][]byte{content[:half], content[half:]} {
		switch {
		case len(part) == 0:
			continue
		case p.Framing == framingBadChunk:
			out = fmt.Appendf(out, "%xg\r\n", len(part))
		case p.Framing == framingHugeChunk:
			out = append(out, "7fffffffffffffff\r\n"...)
		default:
			out = fmt.Appendf(out, "%x\r\n", len(part))
		}
		out = append(append(out, part...), "\r\n"...)
	}
	out = append(out, "0\r\n"...)
	if p.Trailer {
		out = append(out, "X-Trailer: "+patientCanary+"\r\n"...)
	}
	return append(out, "\r\n"...)
}

// encodings change a body that is said to be compressed.
var encodings = map[string]func([]byte) []byte{
	"gzip":          compress,
	"cut gzip":      func(b []byte) []byte { b = compress(b); return b[:len(b)*2/3] },
	"not gzip":      func(b []byte) []byte { return b },
	"bomb":          func([]byte) []byte { return bomb() },
	"gzip and more": func(b []byte) []byte { return append(compress(b), patientCanary...) },
}

func compress(content []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	_, _ = z.Write(content)
	_ = z.Close()
	return out.Bytes()
}

// bomb is larger than every limit when it is decompressed.
var bomb = sync.OnceValue(func() []byte { return compress(bytes.Repeat([]byte(" "), 9<<20)) })

// pipeBelow returns the connection in memory below c. It is nil if there is none, or if a write to
// c may end it.
func pipeBelow(c net.Conn) *pipeConn {
	for {
		switch upper := c.(type) {
		case *pipeConn:
			return upper
		case *faultyConn:
			if len(upper.faults) > 0 {
				return nil
			}
			c = upper.Conn
		case interface{ NetConn() net.Conn }: // such as *tls.Conn
			c = upper.NetConn()
		default:
			return nil
		}
	}
}

// strayBytes sends unsolicited bytes on an idle connection. A server that does so while a request
// is on its way is out of step: its bytes are indistinguishable from a response to that request.
func (c *http1Conn) strayBytes(w *world, text string) {
	w.stall(time.Millisecond + 1) // calls start and end at whole microseconds
	pipe := pipeBelow(c.Conn)
	if pipe == nil || len(c.data) > 0 {
		return
	}
	pipe.in.mu.Lock()
	defer pipe.in.mu.Unlock()
	if len(pipe.in.data) == 0 && pipe.in.ended == nil {
		w.count("http1 stray bytes on an idle connection")
		_, _ = c.Write([]byte(text))
	}
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
