package attack

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// http2Plan is what an HTTP/2 server does with the frames of one connection.
type http2Plan struct {
	Settings     []http2.Setting `json:",omitzero"`
	LateSettings bool            `json:",omitzero"` // they are sent when the first request has arrived
	Grant        string          `json:",omitzero"` // of grants: the windows that a DATA frame gives back
	Replies      []http2Reply    `json:",omitzero"` // to the requests in their order
	Steps        []http2Step     `json:",omitzero"`
}

// Grants of windows. The empty one gives back what a frame has used.
const (
	grantOne  = "one byte"
	grantNone = "nothing"
)

// http2Reply is the form of a response.
type http2Reply struct {
	Early    bool          `json:",omitzero"` // it is sent before the body of the request is read
	Silent   bool          `json:",omitzero"` // it is not sent
	Data     int           `json:",omitzero"` // bytes in each DATA frame; 0 for as many as a frame can have
	Fragment int           `json:",omitzero"` // bytes in HEADERS and in each CONTINUATION; 0 for all
	Pause    time.Duration `json:",omitzero"` // between two of these frames
	Length   bool          `json:",omitzero"` // there is a content-length
	Extra    int           `json:",omitzero"` // the content-length is so much larger than the body
	Trailer  bool          `json:",omitzero"`
	Written  int           `json:",omitzero"` // it has Written-1 bytes of the body, and does not end; 0 for all
}

// http2Step is what a server does besides.
type http2Step struct {
	At      string        `json:",omitzero"` // of http2Points
	Request int           `json:",omitzero"` // of the connection, from 0
	Always  bool          `json:",omitzero"` // at every request
	After   time.Duration `json:",omitzero"` // while the server goes on
	Do      string        `json:",omitzero"` // of http2Actions
	Stream  string        `json:",omitzero"` // of http2Streams
	Value   uint32        `json:",omitzero"` // see http2Actions
}

// Points of a connection.
const (
	atConnect = "connect" // before anything is read
	atPreface = "preface" // after the settings
	atHeaders = "HEADERS" // after each frame of a header
	atHeader  = "header"  // after the complete header
	atData    = "DATA"    // after the first DATA frame
	atRequest = "request" // after the complete request
	atCommit  = "commit"  // after it was processed, before the response
	atStatus  = "status"  // after the header of the response
	atBody    = "body"    // after half of the body
	atEnd     = "end"     // after the response
)

// http2Points are the points at which steps are taken.
var http2Points = []string{atConnect, atPreface, atHeaders, atHeader, atData, atRequest, atCommit, atStatus, atBody, atEnd}

// http2Streams are the streams that a step can name: of its request, which has the empty name, and
// those that are wrong for most frames.
var http2Streams = []struct {
	name string
	id   func(own uint32) uint32
}{
	{"connection", func(uint32) uint32 { return 0 }},
	{"previous", func(own uint32) uint32 { return max(own, 2) - 2 }},
	{"next", func(own uint32) uint32 { return own + 2 }},
	{"of the server", func(own uint32) uint32 { return own + 1 }},
	{"last", func(uint32) uint32 { return 1<<31 - 1 }},
}

func streamID(name string, own uint32) uint32 {
	for _, s := range http2Streams {
		if s.name == name {
			return s.id(own)
		}
	}
	return own
}

// Actions that write no frame.
const (
	doStall = "stall" // the server neither reads nor responds for Value ms
	doClose = "close"
	doReset = "reset"
)

// http2Request is a request as far as it has arrived.
type http2Request struct {
	*arrival
	n        int // of the connection, from 0
	id       uint32
	header   map[string]string
	response responsePlan
	reply    http2Reply
	length   int  // of the body so far
	data     bool // a DATA frame has arrived
	replied  bool
}

// http2Conn is a connection to an HTTP/2 server.
type http2Conn struct {
	net.Conn
	world *world
	plan  *connPlan

	// The fields below belong to the goroutine that reads.
	requests map[uint32]*http2Request
	arrived  int
	open     *http2Request // its header is incomplete
	ends     bool          // the header of open ends its stream
	decoder  *hpack.Decoder

	greeted atomic.Bool   // the settings were sent, maybe by a step that is taken later
	writing chan struct{} // has an element while frames are written, which may take time
	framer  *http2.Framer
	encoder *hpack.Encoder // belongs to the goroutine that reads, as does block
	block   bytes.Buffer
}

// serveHTTP2 serves one connection.
func serveHTTP2(conn net.Conn, w *world, p *connPlan) {
	if p.HTTP2 == nil {
		copied := *p
		copied.HTTP2, p = &http2Plan{}, &copied
	}
	c := &http2Conn{Conn: conn, world: w, plan: p, requests: map[uint32]*http2Request{}, writing: make(chan struct{}, 1)}
	defer c.over()
	// Some transports ignore deadlines, so that no stream may stay open forever.
	defer time.AfterFunc(longStall, func() { _ = conn.Close() }).Stop()
	c.framer = http2.NewFramer(conn, conn)
	c.framer.AllowIllegalWrites = true
	c.framer.SetMaxReadFrameSize(1 << 20)
	c.encoder = hpack.NewEncoder(&c.block)
	c.decoder = hpack.NewDecoder(4096, c.field)
	c.steps(atConnect, 0, 1)
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	if !p.HTTP2.LateSettings {
		c.greet()
	}
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil || !c.receive(frame) {
			return
		}
	}
}

// over ends the requests that have no response.
func (c *http2Conn) over() {
	for _, r := range c.requests {
		r.over(r.response)
	}
}

// greet sends the settings, which must be the first frame.
func (c *http2Conn) greet() {
	if c.greeted.CompareAndSwap(false, true) {
		open(c.Conn) // the settings need an acknowledgment
		c.write(func(f *http2.Framer) error {
			if err := f.WriteSettings(c.plan.HTTP2.Settings...); err != nil || !c.plan.HTTP2.LateSettings {
				return err
			}
			return f.WriteSettingsAck() // those of the client have arrived
		})
		c.steps(atPreface, 0, 1)
	}
}

// write writes frames. An error says that the connection is closed, which the reader finds too.
func (c *http2Conn) write(frames func(*http2.Framer) error) {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	_ = frames(c.framer)
}

// receive processes a frame. It reports false if the connection is of no more use.
func (c *http2Conn) receive(frame http2.Frame) bool {
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() && c.greeted.Load() {
			c.write((*http2.Framer).WriteSettingsAck)
		}
	case *http2.PingFrame:
		if !f.IsAck() && c.greeted.Load() {
			c.write(func(w *http2.Framer) error { return w.WritePing(true, f.Data) })
		}
	case *http2.RSTStreamFrame:
		if r := c.requests[f.StreamID]; r != nil {
			delete(c.requests, f.StreamID)
			r.over(r.response)
		}
	case *http2.HeadersFrame:
		c.open = &http2Request{n: c.arrived, id: f.StreamID, header: map[string]string{}}
		c.arrived++
		c.ends = f.StreamEnded()
		return c.headerBlock(f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.ContinuationFrame:
		return c.headerBlock(f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.DataFrame:
		c.data(f)
	}
	return true
}

func (c *http2Conn) field(f hpack.HeaderField) { c.open.header[f.Name] = f.Value }

// headerBlock decodes a part of the header of the open request.
func (c *http2Conn) headerBlock(block []byte, complete bool) bool {
	r := c.open
	if _, err := c.decoder.Write(block); err != nil {
		return false
	}
	c.steps(atHeaders, r.n, r.id)
	if !complete {
		return true
	}
	if c.decoder.Close() != nil {
		return false
	}
	if r.n < len(c.plan.Exchanges) {
		r.response = c.plan.Exchanges[r.n].Response
	}
	if r.n < len(c.plan.HTTP2.Replies) {
		r.reply = c.plan.HTTP2.Replies[r.n]
	}
	r.arrival = c.world.arrive(r.header[":method"], r.header[":path"], func(name string) string { return r.header[strings.ToLower(name)] })
	r.response = r.honest(r.response)
	c.requests[r.id] = r
	r.received(r.response, false)
	c.steps(atHeader, r.n, r.id)
	if r.reply.Early {
		c.respond(r)
	}
	if c.ends {
		c.complete(r)
	}
	return true
}

func (c *http2Conn) data(f *http2.DataFrame) {
	r := c.requests[f.StreamID]
	if r == nil {
		return
	}
	r.length += len(f.Data())
	c.grant(f.StreamID, len(f.Data()))
	if !r.data {
		r.data = true
		c.steps(atData, r.n, r.id)
	}
	if f.StreamEnded() {
		c.complete(r)
	}
}

// grant gives back n bytes of the windows of a stream and the connection.
func (c *http2Conn) grant(id uint32, n int) {
	switch c.plan.HTTP2.Grant {
	case grantOne:
		n = min(n, 1)
	case grantNone:
		return
	}
	if n == 0 || !c.greeted.Load() {
		return
	}
	c.write(func(w *http2.Framer) error {
		if err := w.WriteWindowUpdate(0, uint32(n)); err != nil {
			return err
		}
		return w.WriteWindowUpdate(id, uint32(n))
	})
}

// complete processes a request that has arrived completely.
func (c *http2Conn) complete(r *http2Request) {
	if length, ok := r.header["content-length"]; ok && length != strconv.Itoa(r.length) {
		return
	}
	delete(c.requests, r.id)
	c.steps(atRequest, r.n, r.id)
	r.received(r.response, true)
	c.steps(atCommit, r.n, r.id)
	if !r.replied {
		c.respond(r)
	}
	r.over(r.response)
}

// respond sends the response to a request.
func (c *http2Conn) respond(r *http2Request) {
	r.replied = true
	c.greet()
	if r.reply.Silent {
		return
	}
	if r.response.Delay > 0 {
		c.world.stall(r.response.Delay)
	}
	if status := r.response.status(); status >= 200 && status <= 299 && c.emptiesBodies() {
		r.commit() // whatever the body says: an empty one is a success
	}
	status, header, content := r.respond(r.response)
	fields := []field{{":status", strconv.Itoa(status)}}
	for _, f := range header {
		fields = append(fields, field{strings.ToLower(f.name), f.value})
	}
	if r.reply.Length {
		fields = append(fields, field{"content-length", strconv.Itoa(max(0, len(content)+r.reply.Extra))})
	}
	ends := !r.reply.Trailer && r.reply.Written == 0
	if r.reply.Written > 0 {
		content = content[:min(r.reply.Written-1, len(content))]
	}
	c.writeHeader(r, ends && len(content) == 0, fields)
	c.steps(atStatus, r.n, r.id)
	half := len(content) / 2
	c.writeData(r, content[:half], false)
	c.steps(atBody, r.n, r.id)
	c.writeData(r, content[half:], ends)
	if r.reply.Trailer && r.reply.Written == 0 {
		c.writeHeader(r, true, []field{{"x-trailer", "end"}})
	}
	c.steps(atEnd, r.n, r.id)
}

// emptiesBodies reports whether the body of a response may end before its first byte.
func (c *http2Conn) emptiesBodies() bool {
	return slices.ContainsFunc(c.plan.HTTP2.Steps, func(s http2Step) bool { return s.Do == "DATA end" || s.Do == "HEADERS" }) ||
		slices.ContainsFunc(c.plan.HTTP2.Replies, func(r http2Reply) bool { return r.Written > 0 })
}

// writeHeader writes a header in fragments.
func (c *http2Conn) writeHeader(r *http2Request, ends bool, fields []field) {
	c.block.Reset()
	for _, f := range fields {
		_ = c.encoder.WriteField(hpack.HeaderField{Name: f.name, Value: f.value}) // to memory
	}
	block := bytes.Clone(c.block.Bytes())
	size := len(block)
	if r.reply.Fragment > 0 {
		size = r.reply.Fragment
	}
	first := true
	for part := range slices.Chunk(block, max(size, 1)) {
		block = block[len(part):]
		c.write(func(w *http2.Framer) error {
			if !first {
				return w.WriteContinuation(r.id, len(block) == 0, part)
			}
			return w.WriteHeaders(http2.HeadersFrameParam{
				StreamID: r.id, BlockFragment: part, EndHeaders: len(block) == 0, EndStream: ends,
			})
		})
		first = false
		c.pause(r, len(block))
	}
}

// writeData writes a part of a body in frames.
func (c *http2Conn) writeData(r *http2Request, content []byte, ends bool) {
	size := 16 << 10
	if r.reply.Data > 0 {
		size = r.reply.Data
	}
	for part := range slices.Chunk(content, size) {
		content = content[len(part):]
		c.write(func(w *http2.Framer) error { return w.WriteData(r.id, ends && len(content) == 0, part) })
		c.pause(r, len(content))
	}
}

// pause waits between two frames of a response.
func (c *http2Conn) pause(r *http2Request, left int) {
	if left > 0 && r.reply.Pause > 0 {
		c.world.stall(r.reply.Pause)
	}
}

// steps takes the steps of a point of the connection, or of the request n of stream own.
func (c *http2Conn) steps(at string, n int, own uint32) {
	for _, s := range c.plan.HTTP2.Steps {
		switch {
		case s.At != at, s.Request != n && !s.Always:
		case s.After > 0:
			time.AfterFunc(s.After, func() { c.take(s, own) })
		default:
			c.take(s, own)
		}
	}
}

func (c *http2Conn) take(s http2Step, own uint32) {
	c.world.count("HTTP/2 " + s.Do + " at " + s.At)
	switch s.Do {
	case doStall:
		c.world.stall(time.Duration(s.Value) * time.Millisecond)
	case doClose:
		_ = c.Close()
	case doReset:
		resetConn(c.Conn)
	default:
		if s.At != atConnect && s.At != atPreface {
			c.greet()
		}
		for _, action := range http2Actions {
			if action.name == s.Do {
				c.write(func(w *http2.Framer) error { return action.write(c, w, streamID(s.Stream, own), s.Value) })
			}
		}
	}
}

// http2Action is what a step writes.
type http2Action struct {
	name   string
	values []uint32 // the value of the step is one of these
	write  func(c *http2Conn, w *http2.Framer, id, value uint32) error
}

// codes are the error codes, and one that is unknown.
var codes = []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 1 << 31}

// settingOf returns an action that sends a setting.
func settingOf(name string, id http2.SettingID, values ...uint32) http2Action {
	return http2Action{name, values, func(_ *http2Conn, w *http2.Framer, _, value uint32) error {
		return w.WriteSettings(http2.Setting{ID: id, Val: value})
	}}
}

// largeWindow is an increment of which one is permitted, and two are too much. In Go 1.26 net/http
// waits for its own lock when the window of a stream overflows: no call on the connection returns
// any more, whatever its deadline.
var largeWindow = func() uint32 {
	if strings.HasPrefix(runtime.Version(), "go1.26") {
		return 1 << 20
	}
	return 1<<31 - 1
}()

// status500 is a header block, an entry of the static table. A 500 claims nothing.
var status500 = []byte{0x8e}

// http2Actions are the actions that write frames. A frame may be false: the invariants also hold
// for GOAWAY and REFUSED_STREAM after a commit.
var http2Actions = []http2Action{
	{"GOAWAY", codes, func(_ *http2Conn, w *http2.Framer, id, value uint32) error {
		return w.WriteGoAway(id, http2.ErrCode(value), []byte(patientCanary))
	}},
	{"RST_STREAM", codes, func(_ *http2Conn, w *http2.Framer, id, value uint32) error {
		return w.WriteRSTStream(id, http2.ErrCode(value))
	}},
	{"PING", []uint32{1, 10, 1000}, func(_ *http2Conn, w *http2.Framer, _, value uint32) (err error) {
		for i := uint32(0); i < value && err == nil; i++ {
			err = w.WritePing(false, [8]byte{byte(i)})
		}
		return err
	}},
	{"PING ack", nil, func(_ *http2Conn, w *http2.Framer, _, _ uint32) error { return w.WritePing(true, [8]byte{1}) }},
	{"WINDOW_UPDATE", []uint32{0, 1, 100, largeWindow}, func(_ *http2Conn, w *http2.Framer, id, value uint32) error {
		return w.WriteWindowUpdate(id, value)
	}},
	settingOf("SETTINGS streams", http2.SettingMaxConcurrentStreams, 0, 1, 100),
	settingOf("SETTINGS window", http2.SettingInitialWindowSize, 0, 1, 65535, largeWindow, 1<<31),
	settingOf("SETTINGS frame size", http2.SettingMaxFrameSize, 0, 16383, 16384, 1<<24-1, 1<<24),
	settingOf("SETTINGS table", http2.SettingHeaderTableSize, 0, 1, 4096, 1<<31),
	settingOf("SETTINGS header list", http2.SettingMaxHeaderListSize, 0, 1, 200, 1<<20),
	settingOf("SETTINGS push", http2.SettingEnablePush, 0, 1, 2),
	settingOf("SETTINGS unknown", http2.SettingID(0x99), 1),
	{"SETTINGS ack", nil, func(_ *http2Conn, w *http2.Framer, _, _ uint32) error { return w.WriteSettingsAck() }},
	{"PUSH_PROMISE", []uint32{0, 2, 3}, func(_ *http2Conn, w *http2.Framer, id, value uint32) error {
		return w.WritePushPromise(http2.PushPromiseParam{StreamID: id, PromiseID: value, BlockFragment: status500, EndHeaders: true})
	}},
	{"DATA", []uint32{0, 1, 100, 16384}, func(_ *http2Conn, w *http2.Framer, id, value uint32) error {
		return w.WriteData(id, false, make([]byte, value))
	}},
	{"DATA end", []uint32{0, 100}, func(_ *http2Conn, w *http2.Framer, id, value uint32) error {
		return w.WriteData(id, true, make([]byte, value))
	}},
	{"DATA oversized", []uint32{16385, 1<<20 + 1}, func(_ *http2Conn, w *http2.Framer, id, value uint32) error {
		return w.WriteData(id, false, make([]byte, value))
	}},
	{"HEADERS", []uint32{0, 1}, func(_ *http2Conn, w *http2.Framer, id, value uint32) error {
		return w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: status500, EndHeaders: true, EndStream: value == 1})
	}},
	{"HEADERS without end", nil, func(_ *http2Conn, w *http2.Framer, id, _ uint32) error {
		return w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: status500})
	}},
	{"HEADERS undecodable", indexes(badBlocks), func(_ *http2Conn, w *http2.Framer, id, value uint32) error {
		return w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte(badBlocks[value]), EndHeaders: true})
	}},
	{"HEADERS invalid", indexes(badHeaders), func(_ *http2Conn, w *http2.Framer, id, value uint32) error {
		return w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte(badHeaders[value]), EndHeaders: true, EndStream: true})
	}},
	{"HEADERS bomb", nil, func(_ *http2Conn, w *http2.Framer, id, _ uint32) error {
		// One field of 4 KB in the dynamic table, and references to it of one byte each.
		block := append([]byte("\x8e\x40\x01a\x7f\xa1\x1e"), bytes.Repeat([]byte("x"), 4000)...)
		block = append(block, bytes.Repeat([]byte{0xbe}, 10_000)...)
		return w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true})
	}},
	{"CONTINUATION", nil, func(_ *http2Conn, w *http2.Framer, id, _ uint32) error {
		return w.WriteContinuation(id, true, status500)
	}},
	{"CONTINUATION flood", nil, func(_ *http2Conn, w *http2.Framer, id, _ uint32) error {
		err := w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: status500})
		for i := 0; i < 1000 && err == nil; i++ {
			err = w.WriteContinuation(id, false, []byte("\x00\x01a\x01b"))
		}
		return err
	}},
	{"1xx", []uint32{1, 5, 1000}, func(_ *http2Conn, w *http2.Framer, id, value uint32) (err error) {
		for i := uint32(0); i < value && err == nil; i++ {
			block := "\x08\x03" + []string{"100", "102", "103"}[i%3]
			err = w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte(block), EndHeaders: true})
		}
		return err
	}},
	{"unknown frame", []uint32{0x20, 0xff}, func(_ *http2Conn, w *http2.Framer, id, value uint32) error {
		return w.WriteRawFrame(http2.FrameType(value), 0xff, id, []byte(patientCanary))
	}},
	{"short frame", []uint32{0, 2, 3, 4, 6, 7, 8}, func(_ *http2Conn, w *http2.Framer, id, value uint32) error {
		return w.WriteRawFrame(http2.FrameType(value), 0, id, []byte{0})
	}},
	{"padding", nil, func(_ *http2Conn, w *http2.Framer, id, _ uint32) error {
		return w.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, id, []byte{200, 0}) // more padding than data
	}},
	{"PRIORITY", []uint32{0, 1}, func(_ *http2Conn, w *http2.Framer, id, value uint32) error {
		return w.WritePriority(id, http2.PriorityParam{StreamDep: id * value, Weight: 1}) // 1: of itself
	}},
	{"cut frame", []uint32{1, 3, 8, 9}, func(c *http2Conn, _ *http2.Framer, id, value uint32) error {
		frame := []byte{0, 0, 1, byte(http2.FrameHeaders), 0x5, byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id), status500[0]}
		_, _ = c.Write(frame[:value])
		return c.Close()
	}},
	{"garbage", nil, func(c *http2Conn, _ *http2.Framer, _, _ uint32) error {
		_, err := io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n"+patientCanary+" and more that is no frame\r\n")
		return err
	}},
	{"HTTP/1", nil, func(c *http2Conn, _ *http2.Framer, _, _ uint32) error {
		_, err := io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		return err
	}},
}

// badBlocks are header blocks that HPACK cannot decode.
var badBlocks = []string{
	"\xff\xff\xff\xff\xff\xff",  // an index that is too large
	"\x80",                      // the index 0
	"\x3f\xff\xff\x7f",          // a table that is too large
	"\x00\x05ab",                // a string that is longer than the block
	"\x00\x83\xff\xff\xff\x01a", // a string that Huffman coding does not have
}

// badHeaders are header blocks that are no response. None enters the dynamic table.
var badHeaders = []string{
	"",                                // no status
	"\x08\x03xyz",                     // no number
	"\x08\x0220",                      // too short
	"\x08\x03000",                     // too small
	"\x08\x042000",                    // too long
	"\x08\x03101",                     // another protocol
	"\x8e\x8e",                        // two
	"\x8e\x84",                        // a path
	"\x8e\x00\x01A\x01b",              // a name in upper case
	"\x00\x01a\x01b\x8e",              // a field before the status
	"\x8e\x00\x01a\x01\n",             // a line feed
	"\x8e\x00\x0aconnection\x05close", // a field of HTTP/1
	"\x8e\x0f\x0d\x02-1",              // a negative length
	"\x8e\x0f\x0d\x0299",              // a length without a body
}

// indexes returns the indexes of a list.
func indexes(list []string) (all []uint32) {
	for i := range list {
		all = append(all, uint32(i))
	}
	return all
}

// http2Protocol speaks HTTP/2 without TLS.
func http2Protocol(_ *world, t *http.Transport) {
	t.Protocols = &http.Protocols{}
	t.Protocols.SetUnencryptedHTTP2(true)
	keepIdle(t)
}

// keepIdle limits how long an HTTP/2 connection is idle. Otherwise net/http keeps one with a GOAWAY
// until the server closes it.
func keepIdle(t *http.Transport) { t.IdleConnTimeout = 90 * time.Second }

// canBlock reports whether the client's writes to a connection may wait for the server. In a bubble
// no time passes while net/http waits for the lock of an HTTP/2 connection, so that nothing else
// may need the lock of a write that waits: neither another request, nor the response to a frame.
func (w *world) canBlock(p *connPlan) bool {
	if w.real {
		return true
	}
	if !w.protocol.http2 { // net/http waits for a lock to close the body of what says that it is HTTP/2
		return !slices.ContainsFunc(p.Exchanges, func(x exchange) bool { return x.HTTP1 != nil && x.HTTP1.Version == "HTTP/2.0" })
	}
	if len(w.plan.Calls) != 1 || p.HTTP2 == nil || !p.HTTP2.LateSettings {
		return false
	}
	c := w.plan.Calls[0]
	if w.wrapper() != nil && (!slices.Contains([]string{ownDeadline, deadlineOnly}, w.plan.Transport) || w.plan.Client.Attempts != 1 || c.Attempts > 0) {
		return false
	}
	if c.Idempotency || c.Method == "Users.GetOrCreate" || !callNamed(c.Method).isWrite() {
		return false // there may be another request
	}
	harmless := func(s http2Step) bool {
		late := slices.Contains([]string{atCommit, atStatus, atBody, atEnd}, s.At)
		return s.After == 0 && (late || s.Do == doStall || s.Do == doClose || s.Do == doReset)
	}
	return !slices.ContainsFunc(p.HTTP2.Steps, func(s http2Step) bool { return !harmless(s) }) &&
		!slices.ContainsFunc(p.HTTP2.Replies, func(r http2Reply) bool { return r.Early })
}

// randomHTTP2 adds faults of HTTP/2 to a connection.
func randomHTTP2(r *rand.Rand, p *connPlan) {
	plan := &http2Plan{LateSettings: oneIn(r, 8) || p.Window > 0 || p.Linger > 0}
	p.HTTP2 = plan
	if oneIn(r, 16) { // it responds to the second request without taking it
		plan.Settings = []http2.Setting{{ID: http2.SettingInitialWindowSize}}
		plan.Replies = []http2Reply{{}, {Early: true, Written: pick(r, 1, 2, 20)}}
	} else if oneIn(r, 4) {
		plan.Settings = randomSettings(r)
		plan.Grant = pick(r, "", "", grantOne, grantNone)
	}
	for range r.IntN(4) {
		plan.Replies = append(plan.Replies, randomReply(r))
	}
	for range r.IntN(4) {
		step := randomStep(r)
		if p.Window > 0 || p.Linger > 0 { // see canBlock
			step.After, step.Do = 0, pick(r, doStall, doStall, doClose, doReset)
		}
		plan.Steps = append(plan.Steps, step)
	}
	if slices.ContainsFunc(plan.Settings, func(s http2.Setting) bool { return s.Val == 0 }) && oneIn(r, 2) {
		// What was forbidden is permitted later.
		plan.Steps = append(plan.Steps,
			http2Step{At: atPreface, After: randomTime(r, 8), Do: "SETTINGS streams", Value: 100},
			http2Step{At: atPreface, After: randomTime(r, 8), Do: "SETTINGS window", Value: 65535})
	}
}

func randomSettings(r *rand.Rand) []http2.Setting {
	all := []http2.Setting{
		{ID: http2.SettingMaxConcurrentStreams, Val: pick[uint32](r, 0, 0, 1, 2)},
		{ID: http2.SettingInitialWindowSize, Val: pick(r, 0, 1, 1, 100, largeWindow)},
		{ID: http2.SettingMaxFrameSize, Val: pick[uint32](r, 16384, 1<<24-1)},
		{ID: http2.SettingHeaderTableSize, Val: pick[uint32](r, 0, 100, 1<<20)},
		{ID: http2.SettingMaxHeaderListSize, Val: pick[uint32](r, 0, 100, 2000)},
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+r.IntN(2)]
}

func randomReply(r *rand.Rand) (p http2Reply) {
	if oneIn(r, 2) {
		return p
	}
	p.Early, p.Trailer, p.Silent = oneIn(r, 8), oneIn(r, 8), oneIn(r, 12)
	p.Data, p.Fragment = pick(r, 0, 0, 1, 7, 100), pick(r, 0, 0, 1, 5)
	if oneIn(r, 4) {
		p.Pause = randomTime(r, 6)
	}
	if oneIn(r, 4) {
		p.Length, p.Extra = true, pick(r, 0, 1, -1, 1000, -1000)
	}
	if oneIn(r, 8) {
		p.Written = pick(r, 1, 2, 20)
	}
	return p
}

func randomStep(r *rand.Rand) http2Step {
	s := http2Step{At: pick(r, http2Points...), Request: pickLow(r, 3), Always: oneIn(r, 8)}
	if oneIn(r, 6) {
		s.After = randomTime(r, 8)
	}
	if oneIn(r, 3) {
		s.Stream = pick(r, http2Streams...).name
	}
	switch r.IntN(10) {
	case 0:
		s.Do, s.Value = doStall, uint32(randomTime(r, 8)/time.Millisecond)
	case 1:
		s.Do = pick(r, doClose, doReset)
	case 2, 3, 4: // what matters most is more frequent
		s.Do, s.Value = pick(r, "GOAWAY", "RST_STREAM"), pick(r, codes...)
		s.Stream = pick(r, "", "", "connection", "previous", "next", "last")
		if s.Do == "RST_STREAM" {
			s.Stream = pick(r, "", "", "", s.Stream)
		}
	default:
		action := pick(r, http2Actions...)
		s.Do = action.name
		if len(action.values) > 0 {
			s.Value = pick(r, action.values...)
		}
	}
	return s
}
