package admin

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// sink is the destination of an answer. Each write must finish in time, so a client that reads
// nothing is dropped.
type sink struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	began bool      // something was written
	by    time.Time // the deadline for the whole answer; zero for a stream
}

func newSink(w http.ResponseWriter) *sink {
	return &sink{w: w, rc: http.NewResponseController(w)}
}

// chunk is how much is written under one deadline.
const chunk = 64 << 10

// Write implements io.Writer. There is no time limit between two writes.
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

// within sets the deadline for the next write. A writer that supports no deadline, for example
// in a test or in middleware, writes without one.
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

// readWithin sets the time limit for a body of at most that many bytes.
func (s *sink) readWithin(most int64) {
	_ = s.rc.SetReadDeadline(time.Now().Add(timeFor(most)))
}

// readDone removes the time limit after the body has arrived: from now on, the server reads only
// to notice that the client has gone.
func (s *sink) readDone() { _ = s.rc.SetReadDeadline(time.Time{}) }

// timeFor returns how long that many bytes may take.
func timeFor(size int64) time.Duration {
	return stall + time.Duration(size)*time.Second/slowest
}

// firstBody is the memory that a body gets before any of it arrives.
const firstBody = 4 << 10

// readAll reads a body of the announced length, or -1. Memory grows with what arrives, not with
// what was announced.
func readAll(r io.Reader, length int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(max(length, 0), firstBody)) + bytes.MinRead)
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}

// refusal is an error of the protocol, with its status and code.
type refusal struct {
	status     int
	code, text string
}

func (r *refusal) Error() string { return r.text }

// failure is the answer to a request that failed.
type failure struct {
	Error *problem `json:"error"`
}

// refuse answers with an error.
func (h *handler) refuse(out *sink, err error) {
	p, status := problemOf(err)
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		p.Code, status = refused.code, refused.status
	case errors.Is(err, errToken):
		status = http.StatusUnauthorized
	}
	out.w.Header().Set("Connection", "close") // the rest of the body is not read
	b, _ := marshal(failure{p})               // strings alone always have a JSON form
	h.send(out, status, b)                    // it is small, and waits for nothing
}

// reply sends an answer. A large answer waits for its turn, so that slow readers cannot keep
// many of them in memory.
func (h *handler) reply(out *sink, answer []byte) {
	if len(answer) > smallBody {
		leave, err := h.large.enter(h.closing)
		if err != nil {
			h.log.Error("answer to operator dropped", "error", err)
			h.refuse(out, err)
			return
		}
		defer leave()
	}
	h.send(out, http.StatusOK, answer)
}

// send sends an answer at once.
func (h *handler) send(out *sink, status int, answer []byte) {
	header := out.w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(answer)))
	out.by = time.Now().Add(timeFor(int64(len(answer))))
	out.w.WriteHeader(status)
	if _, err := out.Write(answer); err == nil {
		_ = out.flush()
	}
}
