package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// sink is where an answer goes. Each write has to come through in time, so a client that
// reads nothing is dropped.
type sink struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	began bool      // something was written
	by    time.Time // when all has to be written; zero for a stream
}

func newSink(w http.ResponseWriter) *sink {
	return &sink{w: w, rc: http.NewResponseController(w)}
}

// chunk is how much is written under one deadline.
const chunk = 64 << 10

// Write implements io.Writer. Between two writes any time may pass.
func (s *sink) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		s.within(time.Now().Add(stall))
		s.began = true
		m, err := s.w.Write(b[:min(chunk, len(b))])
		n += m
		if err != nil {
			return n, err
		}
		b = b[m:]
	}
	return n, nil
}

// within sets the deadline for what is written next. A writer that has none, as that of a
// test or of some middleware, writes without.
func (s *sink) within(t time.Time) {
	if !s.by.IsZero() && t.After(s.by) {
		t = s.by
	}
	_ = s.rc.SetWriteDeadline(t)
}

// flush sends what was written.
func (s *sink) flush() error {
	s.within(time.Now().Add(stall))
	if err := s.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// readWithin sets the time in which a body of at most so many bytes has to be there.
func (s *sink) readWithin(most int64) {
	_ = s.rc.SetReadDeadline(time.Now().Add(timeFor(most)))
}

// readDone says that the body is there: from now on reading is only how the server hears
// that the client has gone.
func (s *sink) readDone() { _ = s.rc.SetReadDeadline(time.Time{}) }

// timeFor is how long so many bytes may take.
func timeFor(size int64) time.Duration {
	return stall + time.Duration(size)*time.Second/slowest
}

// firstBody is how much memory a body gets before any of it is there.
const firstBody = 4 << 10

// readAll reads a body of a length that was promised, or -1. Memory grows with what comes,
// not with what was promised.
func readAll(r io.Reader, length int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(max(length, 0), firstBody)) + bytes.MinRead)
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}

// marshal is JSON with a newline at its end.
func marshal(v any) (made, error) {
	if b, ok := v.(made); ok {
		return b, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // which makes six bytes of one
	err := enc.Encode(v)
	return b.Bytes(), err
}

// made is an answer that is JSON already.
type made []byte

// wrongType is a body of another type than JSON.
type wrongType struct{ kind string }

func (e *wrongType) Error() string {
	return fmt.Sprintf("a body of type %q; send it as application/json", clip(e.kind))
}

// refuse answers with an error.
func (h *handler) refuse(out *sink, err error) {
	p, status := problemOf(err)
	switch {
	case errors.As(err, new(*wrongType)):
		p.Code, status = codeType, http.StatusUnsupportedMediaType
	case errors.Is(err, errToken):
		status = http.StatusUnauthorized
	}
	out.w.Header().Set("Connection", "close") // a body that was not read stays where it is
	h.send(out, status, failure{p})           // which is bounded, and says what became of a change
}

// reply answers with JSON. A large answer waits for a place, so that slow readers cannot keep
// any number of them in memory.
func (h *handler) reply(out *sink, status int, v any) {
	b, err := marshal(v)
	if err == nil && len(b) > smallBody {
		var leave func()
		if leave, err = h.large.enter(h.closing); err == nil {
			defer leave()
		}
	}
	if err != nil {
		h.log.Error("an operator cannot be answered", "error", err)
		out.w.Header().Set("Connection", "close")
		p, code := problemOf(err)
		status, v = code, failure{p}
	}
	h.send(out, status, v)
}

// send answers with JSON at once.
func (h *handler) send(out *sink, status int, v any) {
	b, err := marshal(v)
	if err != nil {
		h.log.Error("an answer to an operator is no JSON", "error", err)
		status, b = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"the answer is no JSON; the app's log says more"}}`+"\n")
	}
	header := out.w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(b)))
	out.by = time.Now().Add(timeFor(int64(len(b))))
	out.w.WriteHeader(status)
	if _, err := out.Write(b); err == nil {
		_ = out.flush()
	}
}
