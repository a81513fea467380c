package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// Times of live pages.
const (
	beat  = time.Second      // shortest time between two messages of a stream, and between two looks at the queue
	rest  = 15 * time.Second // time after which a stream without news sends a sign of life
	stall = 5 * time.Second  // how long a client may stop reading
	share = 20               // looks take at most this part of the time
)

// watcher looks at the queue for all pages, at most once a second and only while a stream asks. A stream only
// asks it for a number, so the cost for the queue does not depend on the number of pages.
type watcher struct {
	admin   admin.Admin
	version atomic.Uint64 // grows when a look finds a change

	looking sync.Mutex // held during a look; guards the fields below
	next    time.Time  // when to look again
	seen    *admin.Stats
}

// look returns the number of changes that were seen, and the state of the queue if it has just read that. While
// another caller looks, it does not wait.
func (w *watcher) look(ctx context.Context) (version uint64, stats *admin.Stats) {
	if !w.looking.TryLock() {
		return w.version.Load(), nil
	}
	defer w.looking.Unlock()
	began := time.Now()
	if began.Before(w.next) {
		return w.version.Load(), nil
	}
	read, err := w.admin.Stats(ctx)
	w.next = began.Add(max(beat, share*time.Since(began)))
	if err != nil {
		return w.version.Load(), nil // a page says what is wrong
	}
	if w.seen == nil || changed(w.seen, &read) {
		w.version.Add(1)
	}
	w.seen = &read
	return w.version.Load(), &read
}

// changed compares two states of a queue as an operator sees them.
func changed(old, new *admin.Stats) bool {
	return !slices.EqualFunc(old.Queues, new.Queues, sameQueue) || (old.Process == nil) != (new.Process == nil) ||
		old.Totals != nil && new.Totals != nil && *old.Totals != *new.Totals
}

// sameQueue compares two states of one queue. Each read has declared limits of its own, which may be equal.
func sameQueue(old, new pawl.QueueStats) bool {
	if old.Declared != nil && new.Declared != nil && *old.Declared == *new.Declared {
		old.Declared = new.Declared
	}
	return old == new
}

// stream sends a message when the queue has changed since the page was read, at most one each second. The
// message only says that it has changed: the page then reads itself again. A client that stops reading is
// dropped.
func stream(q *request) error {
	select {
	case q.d.streams <- struct{}{}:
		defer func() { <-q.d.streams }()
	default:
		return &refusal{http.StatusServiceUnavailable, "Too many pages update themselves.", "Close some of them."}
	}
	q.began = true
	q.w.Header().Set("Content-Type", "text/event-stream")
	q.w.Header().Set("X-Accel-Buffering", "no") // a proxy must not buffer the messages
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
	last, _ := q.d.watch.look(q.Context())
	quiet := time.Duration(0)
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
		now, _ := q.d.watch.look(q.Context())
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
