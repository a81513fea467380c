package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bench/report"
	"github.com/gopawl/pawl/bench/system"
)

// idling watches two processes from outside: one with a queue, and one without, whose
// wake-ups are the runtime's own.
func idling(t *trial) error {
	err := t.onPawl(t.dir, func(q *system.PawlQueue) error {
		return t.store(t.million/10, func(ctx context.Context, batch [][]byte) error {
			return q.EnqueueWith(ctx, batch, pawl.Delay(24*time.Hour))
		})
	})
	if err != nil {
		return err
	}
	queue, err := t.start(roleIdle, t.dir)
	if err != nil {
		return err
	}
	defer queue.kill()
	empty, err := t.start(roleEmpty)
	if err != nil {
		return err
	}
	defer empty.kill()

	file := filepath.Join(t.dir, system.PawlFile)
	if err := t.wait(min(settling, t.idle)); err != nil {
		return err
	}
	from, err := lastCommit(file)
	if err != nil {
		return err
	}
	w, none := watch{pid: queue.pid()}, watch{pid: empty.pid()}
	ticker := time.NewTicker(glance)
	defer ticker.Stop()
	for ; w.last.at.Sub(w.first.at) < t.idle; <-ticker.C {
		if err := errors.Join(w.look(), none.look(), t.ctx.Err()); err != nil {
			return err
		}
	}
	to, err := lastCommit(file)
	t.report("commits", float64(to-from)/w.minutes(), perMinute)
	for _, p := range []struct {
		suffix string
		watch
	}{{"", w}, {"-empty-program", none}} {
		t.report("wake-ups"+p.suffix, float64(p.wakeUps)/p.minutes(), perMinute)
		t.report("switches"+p.suffix, float64(p.last.switches-p.first.switches)/p.minutes(), perMinute)
		t.report("cpu"+p.suffix, report.Milli(p.last.cpu-p.first.cpu)/p.minutes(), "ms/min")
	}
	return err
}

func (t *trial) wait(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-t.ctx.Done():
		return t.ctx.Err()
	}
}

// usage is what a process has used up to a moment.
type usage struct {
	at       time.Time
	switches int64         // voluntary ones of the context, in all threads
	cpu      time.Duration // of all threads
}

// watch is what was seen of a process at glances.
//
// A single timer of a Go program makes dozens of switches, since a thread of the runtime
// looks after the others in short naps until all sleep again. So the switches between two
// glances are one wake-up, and those around one glance too.
type watch struct {
	pid         int
	first, last usage
	wakeUps     int
	awake       int // the glances in a row that found switches
}

func (w *watch) look() error {
	u, err := usageOf(w.pid)
	if err != nil {
		return err
	}
	switch {
	case w.first.at.IsZero():
		w.first = u
	case u.switches == w.last.switches:
		w.awake = 0
	default:
		if w.awake%2 == 0 {
			w.wakeUps++
		}
		w.awake++
	}
	w.last = u
	return nil
}

func (w *watch) minutes() float64 { return w.last.at.Sub(w.first.at).Minutes() }
