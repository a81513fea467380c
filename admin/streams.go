package admin

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl/driver"
)

// lines starts a stream of lines of JSON.
func (h *handler) lines(out *sink) {
	out.w.Header().Set("Content-Type", "application/jsonl")
	out.w.WriteHeader(http.StatusOK)
	out.began = true
}

// say writes one line.
func (out *sink) say(l streamLine) error {
	b, err := encode(l, PayloadBase64)
	if err == nil {
		_, err = out.Write(b)
	}
	return err
}

// streaming returns the context of a stream. It ends with the request, and when the server
// closes.
func (h *handler) streaming(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(h.closing, cancel)
	return ctx, func() { stop(); cancel() }
}

// streamLine is one line of a stream. Exactly one of its fields is set.
type streamLine struct {
	Progress  *progress `json:"progress,omitempty"`
	Event     *Event    `json:"event,omitempty"`
	Heartbeat time.Time `json:"heartbeat,omitzero"`
	Done      bool      `json:"done,omitempty"`
	Error     error     `json:"error,omitempty"`
}

type progress struct{ Done, Total int64 }

// heartbeat is how often a stream reports that it is alive.
const heartbeat = 15 * time.Second

func beat() streamLine { return streamLine{Heartbeat: time.Now()} }

// check runs one check, and reports its progress four times a second.
func (h *handler) check(out *sink, r *http.Request) {
	ctx, cancel := h.streaming(r)
	defer cancel()
	var latest atomic.Pointer[progress]
	ctx = driver.WithProgress(ctx, func(done, total int64) { latest.Store(&progress{done, total}) })
	ended := make(chan error, 1)
	go func() { ended <- h.shielded(func() error { return h.admin.Check(ctx) }) }()

	h.lines(out)
	err := out.say(beat())
	var sent *progress
	ticks := time.NewTicker(250 * time.Millisecond)
	defer ticks.Stop()
	spoke := time.Now()
	for {
		if err == nil {
			err = out.flush()
		}
		if err != nil {
			cancel()
			<-ended
			return
		}
		select {
		case found := <-ended:
			if p := latest.Load(); p != sent && found == nil {
				_ = out.say(streamLine{Progress: p})
			}
			last := streamLine{Done: true}
			if found != nil {
				last = streamLine{Error: h.explain(found)}
			}
			_ = out.say(last)
			_ = out.flush()
			return
		case now := <-ticks.C:
			switch p := latest.Load(); {
			case p != sent:
				sent, spoke = p, now
				err = out.say(streamLine{Progress: p})
			case now.Sub(spoke) >= heartbeat:
				spoke = now
				err = out.say(beat())
			}
		}
	}
}

// shielded runs fn, which has its own goroutine, where a panic would end the process.
func (h *handler) shielded(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("operator request panicked", "panic", p)
			err = errPanicked
		}
	}()
	return fn()
}

// sent returns the event without the parts of a job that events never have.
func (e Event) sent() *Event {
	if e.Job != nil {
		own := *e.Job
		own.Payload = nil
		e.Job = &own
	}
	return &e
}

// events sends each event, and a heartbeat when nothing happens.
func (h *handler) events(out *sink, r *http.Request) {
	ctx, cancel := h.streaming(r)
	defer cancel()
	happened := make(chan streamLine, 64)
	go func() {
		defer close(happened)
		err := h.shielded(func() error {
			for e, err := range h.admin.Events(ctx) {
				if err != nil {
					return err
				}
				select {
				case happened <- streamLine{Event: e.sent()}:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
		if ctx.Err() != nil {
			err = errStopping
		}
		if err != nil {
			select {
			case happened <- streamLine{Error: err}:
			case <-r.Context().Done():
			}
		}
	}()
	defer func() { // wait for the goroutine
		cancel()
		for range happened {
		}
	}()

	h.lines(out)
	err := out.say(beat())
	beats := time.NewTicker(heartbeat)
	defer beats.Stop()
	for err == nil {
		if len(happened) == 0 {
			if err = out.flush(); err != nil {
				return
			}
		}
		select {
		case l, ok := <-happened:
			if !ok {
				_ = out.flush()
				return
			}
			err = out.say(l)
		case <-beats.C:
			err = out.say(beat())
		}
	}
}

// Headers of a backup: the approximate size of the file at its beginning, for a progress bar,
// and the trailer with the number of bytes sent, which a truncated stream lacks.
const (
	sizeHeader     = "Pawl-Backup-Size"
	writtenTrailer = "Pawl-Backup-Bytes"
)

// backup streams the file. A trailer contains the number of bytes; a broken stream is cut in the
// middle of a chunk, so that no client takes it for the complete file.
func (h *handler) backup(out *sink, r *http.Request) {
	ctx, cancel := h.streaming(r)
	defer cancel()
	if s, err := h.admin.Stats(ctx); err == nil {
		out.w.Header().Set(sizeHeader, strconv.FormatInt(s.Size, 10))
	}
	out.w.Header().Set("Content-Type", "application/octet-stream")
	out.w.Header().Set("Trailer", writtenTrailer)
	steady := &steadily{out: out, began: time.Now()}
	err := h.admin.Backup(ctx, steady)
	if err != nil {
		err = h.explain(err)
		if !out.began {
			out.w.Header().Del("Trailer")
			h.refuse(out, err)
			return
		}
		h.log.Warn("operator backup broke off", "bytes", steady.n, "error", err)
		panic(http.ErrAbortHandler)
	}
	out.w.Header().Set(writtenTrailer, strconv.FormatInt(steady.n, 10))
	out.began = true
	_ = out.flush()
}

// steadily is a sink that requires a minimum rate from its reader: a backup keeps pages of the
// file from being reused while it lasts.
type steadily struct {
	out   *sink
	began time.Time
	n     int64
}

// Write implements io.Writer.
func (s *steadily) Write(b []byte) (int, error) {
	if time.Since(s.began) > timeFor(s.n) {
		return 0, fmt.Errorf("the client takes less than %d KiB a second", slowest>>10)
	}
	n, err := s.out.Write(b)
	s.n += int64(n)
	return n, err
}
