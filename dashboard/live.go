package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// Times of live pages.
const (
	beat       = time.Second      // between two messages of a stream at least
	rest       = 15 * time.Second // after which a stream without news says that it is alive
	stall      = 5 * time.Second  // for which a client may read nothing
	idle       = 2 * time.Minute  // without a page, after which the watcher stops
	flowWindow = 5                // minutes
)

// watcher counts events of the queue. One goroutine reads them for all pages, while pages are read. A
// stream only asks it for a number, so no client, however slow, can make the queue wait.
type watcher struct {
	admin   admin.Admin
	now     func() time.Time
	closing context.Context

	mu      sync.Mutex
	running bool
	timer   *time.Timer
	since   time.Time // when it began to count
	version uint64    // grows with each event
	minutes [flowWindow]minute
	silent  bool // the queue emits no events
}

// minute counts the events of a minute.
type minute struct {
	N                                 int64 // minutes since 1970
	Enqueued, Succeeded, Failed, Dead int
}

// touch starts to count, or continues.
func (w *watcher) touch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.silent || w.closing.Err() != nil:
		return
	case w.running:
		w.timer.Reset(idle)
		return
	}
	ctx, cancel := context.WithCancel(w.closing)
	w.running, w.since, w.minutes = true, w.now(), [flowWindow]minute{}
	w.timer = time.AfterFunc(idle, cancel)
	go w.run(ctx, cancel)
}

func (w *watcher) run(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	var failed error
	for e, err := range w.admin.Events(ctx) {
		if failed = err; err == nil {
			w.count(&e.Event)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.running = false
	w.silent = errors.Is(failed, errors.ErrUnsupported) || errors.Is(failed, admin.ErrNotLive)
}

// count adds one event.
func (w *watcher) count(e *pawl.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version++
	m := w.minute(w.now().Unix() / 60)
	switch e.Type {
	case pawl.EventEnqueued:
		m.Enqueued++
	case pawl.EventSucceeded:
		m.Succeeded++
	case pawl.EventRetried:
		m.Failed++
	case pawl.EventDied:
		m.Dead++
	}
}

// minute returns the counts of a minute.
func (w *watcher) minute(n int64) *minute {
	m := &w.minutes[n%flowWindow]
	if m.N != n {
		*m = minute{N: n}
	}
	return m
}

// flow is what happened in the last minutes.
type flow struct {
	Since   time.Time // when the dashboard began to count
	Seconds float64   // that the totals cover
	minute
	Minutes []minuteRow
}

// minuteRow is a minute with its time.
type minuteRow struct {
	At time.Time
	minute
}

// PerSecond returns the rate of a total.
func (f *flow) PerSecond(n int) float64 { return float64(n) / f.Seconds }

// flow returns the counts of the last minutes, nil if nothing counts.
func (w *watcher) flow() *flow {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.running {
		return nil
	}
	now := w.now()
	f := &flow{Since: w.since}
	for n := now.Unix()/60 - flowWindow + 1; n <= now.Unix()/60; n++ {
		m := w.minutes[n%flowWindow]
		if m.N != n {
			m = minute{N: n}
		}
		if (n+1)*60 <= w.since.Unix() {
			continue // nothing counted then
		}
		f.Minutes = append(f.Minutes, minuteRow{time.Unix(n*60, 0).UTC(), m})
		f.Enqueued += m.Enqueued
		f.Succeeded += m.Succeeded
		f.Failed += m.Failed
		f.Dead += m.Dead
	}
	begin := now.Unix()/60*60 - (flowWindow-1)*60
	f.Seconds = max(1, now.Sub(time.Unix(max(begin, w.since.Unix()), 0)).Seconds())
	return f
}

// state returns the number of events so far.
func (w *watcher) state() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.version
}

// stream sends a message when the queue has changed since the page was read, at most one each second: only
// that it has, so the page reads itself again. A client that reads nothing is dropped.
func stream(q *request) error {
	select {
	case q.d.streams <- struct{}{}:
		defer func() { <-q.d.streams }()
	default:
		return &refusal{http.StatusServiceUnavailable, "Too many pages update themselves.", "Close some of them."}
	}
	q.began = true
	q.w.Header().Set("Content-Type", "text/event-stream")
	q.w.Header().Set("X-Accel-Buffering", "no") // a proxy must not collect them
	out := http.NewResponseController(q.w)
	send := func(text string) bool {
		_ = out.SetWriteDeadline(time.Now().Add(stall)) // a server without deadlines has none
		_, err := fmt.Fprint(q.w, text)
		return err == nil && out.Flush() == nil
	}
	if !send("retry: 5000\n\n") {
		return nil
	}
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	q.d.watch.touch()
	last, quiet := q.d.watch.state(), time.Duration(0)
	if since, err := strconv.ParseUint(q.Form.Get("since"), 10, 64); err == nil {
		last = since
	}
	for {
		select {
		case <-q.Context().Done():
			return nil
		case <-q.d.closing.Done():
			return nil
		case <-ticker.C:
		}
		q.d.watch.touch()
		now := q.d.watch.state()
		switch quiet += beat; {
		case now != last:
			last, quiet = now, 0
			if !send("data: changed\n\n") {
				return nil
			}
		case quiet >= rest:
			quiet = 0
			if !send(": alive\n\n") {
				return nil
			}
		}
	}
}
