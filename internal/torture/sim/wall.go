package sim

import (
	"sync"
	"time"
)

// wall is the wall clock of the queue. A case sets it ahead, sets it back, or stops it.
// Otherwise it runs normally. Instants are times of the simulation.
type wall struct {
	mu     sync.Mutex
	pieces []piece
}

// piece is the state of the clock at an instant and after it.
type piece struct {
	from  int64
	ahead int64
	stuck bool // the clock stands still at its first time
}

func newWall() *wall { return &wall{pieces: []piece{{from: now()}}} }

// Now is the queue's clock.
func (w *wall) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Unix(0, w.pieces[len(w.pieces)-1].shows(now())).UTC()
}

// set makes the clock show a time ahead of, or behind, the simulation from now on.
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

// at returns its time at an instant, after any set in the same instant.
func (w *wall) at(at int64) int64 {
	for i := len(w.pieces) - 1; i > 0; i-- {
		if w.pieces[i].from <= at {
			return w.pieces[i].shows(at)
		}
	}
	return w.pieces[0].shows(at)
}

// latest returns its latest time between two instants.
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

// since returns since when, up to the instant to, its time has not been before due. Ok is
// false if its time is before due at to.
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
