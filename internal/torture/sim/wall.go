package sim

import (
	"sync"
	"time"
)

// wall is the clock on the wall as the queue sees it. A case sets it ahead, back, or stops
// it; between two of these it goes as time does. Instants are those of the simulation.
type wall struct {
	mu     sync.Mutex
	pieces []piece
}

// piece is what the clock showed from an instant on.
type piece struct {
	from  int64
	ahead int64
	stuck bool // at what it showed first
}

func newWall() *wall { return &wall{pieces: []piece{{from: now()}}} }

// Now is the queue's clock.
func (w *wall) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Unix(0, w.pieces[len(w.pieces)-1].shows(now())).UTC()
}

// set sets the clock ahead of the time, or back, from now on.
func (w *wall) set(ahead time.Duration, stuck bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pieces = append(w.pieces, piece{now(), int64(ahead), stuck})
}

func (p piece) shows(at int64) int64 {
	if p.stuck {
		at = p.from
	}
	return at + p.ahead
}

// at is what it showed at an instant; at one in which it was set, afterwards.
func (w *wall) at(at int64) int64 {
	for i := len(w.pieces) - 1; i > 0; i-- {
		if w.pieces[i].from <= at {
			return w.pieces[i].shows(at)
		}
	}
	return w.pieces[0].shows(at)
}

// latest is the latest time that it showed between two instants.
func (w *wall) latest(from, to int64) (latest int64) {
	for i, p := range w.pieces {
		end := to
		if i+1 < len(w.pieces) {
			end = min(end, w.pieces[i+1].from)
		}
		if begin := max(from, p.from); begin <= end {
			if shown := p.shows(end); latest == 0 || shown > latest {
				latest = shown
			}
		}
	}
	return latest
}

// since is the instant since which it has not shown a time before due, until the instant
// given. Ok is false when it shows one then.
func (w *wall) since(due, to int64) (since int64, ok bool) {
	for i := len(w.pieces) - 1; i >= 0; i-- {
		p := w.pieces[i]
		if p.from > to {
			continue
		}
		end := to
		if i+1 < len(w.pieces) {
			end = min(end, w.pieces[i+1].from)
		}
		if p.shows(end) < due {
			return since, ok
		}
		since, ok = p.from, true
		if first := due - p.ahead; !p.stuck && first > p.from {
			return first, true
		}
	}
	return since, ok
}
