package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl/bolt"
)

// lines starts a stream of lines of JSON.
func (h *handler) lines(out *sink) {
	out.w.Header().Set("Content-Type", "application/jsonl")
	out.w.WriteHeader(http.StatusOK)
	out.began = true
}

// say writes one line.
func (out *sink) say(l streamLine) error {
	b, err := marshal(l)
	if err == nil {
		_, err = out.Write(b)
	}
	return err
}

// streaming is the context of a stream: it ends with the request, and when the server closes.
func (h *handler) streaming(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(h.closing, cancel)
	return ctx, func() { stop(); cancel() }
}

func beat() *Stamp { return &Stamp{time.Now()} }

// check runs one check, and tells four times a second how far it is.
func (h *handler) check(out *sink, r *http.Request) {
	ctx, cancel := h.streaming(r)
	defer cancel()
	var latest atomic.Pointer[progressBody]
	ctx = bolt.WithProgress(ctx, func(done, total int64) { latest.Store(&progressBody{done, total}) })
	ended := make(chan error, 1)
	go func() { ended <- h.shielded(func() error { return h.admin.Check(ctx) }) }()

	h.lines(out)
	err := out.say(streamLine{Heartbeat: beat()})
	var told *progressBody
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
			if p := latest.Load(); p != told && found == nil {
				_ = out.say(streamLine{Progress: p})
			}
			last := streamLine{Done: true}
			if found != nil {
				p, _ := problemOf(h.explain(found))
				last = streamLine{Error: p}
			}
			_ = out.say(last)
			_ = out.flush()
			return
		case now := <-ticks.C:
			switch p := latest.Load(); {
			case p != told:
				told, spoke = p, now
				err = out.say(streamLine{Progress: p})
			case now.Sub(spoke) >= heartbeat:
				spoke = now
				err = out.say(streamLine{Heartbeat: beat()})
			}
		}
	}
}

// shielded runs fn in a goroutine of its own, where a panic would end the process.
func (h *handler) shielded(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("a request of an operator panicked", "panic", p)
			err = errors.New("the app panicked over this request; its log says more")
		}
	}()
	return fn()
}

// events tells what happens, and a heartbeat when nothing does.
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
				case happened <- streamLine{Event: eventBodyOf(e)}:
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
			p, _ := problemOf(err)
			select {
			case happened <- streamLine{Error: p}:
			case <-r.Context().Done():
			}
		}
	}()
	defer func() { // nobody is left behind
		cancel()
		for range happened {
		}
	}()

	h.lines(out)
	err := out.say(streamLine{Heartbeat: beat()})
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
			err = out.say(streamLine{Heartbeat: beat()})
		}
	}
}

// backup streams the file. What came through is counted in a trailer; a stream that breaks is
// cut in the middle of a chunk, so that no client takes it for the whole.
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
		h.log.Warn("a backup for an operator broke off", "bytes", steady.n, "error", err)
		panic(http.ErrAbortHandler)
	}
	out.w.Header().Set(writtenTrailer, strconv.FormatInt(steady.n, 10))
	out.began = true
	_ = out.flush()
}

// steadily is a sink whose reader has to get on: a backup keeps pages of the file from being
// used again for as long as it lasts.
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
