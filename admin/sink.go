package admin

import (
	"bytes"
	"errors"
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
	b, _ := marshal(failure{p})               // texts alone always have a JSON form
	h.send(out, status, b)                    // it is bounded, and waits for nothing
}

// reply sends an answer. A large one waits for its turn, so that slow readers cannot keep any
// number of them in memory.
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
