package power

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/trace"
)

// FailedSync makes a sync fail, and simulates power cuts at any later moment. The kernel still
// shows the changes that the sync covered, and the disk may have them or not. A later
// successful sync does not make them durable.
var FailedSync = &harness.Family{
	Name:  "failed-sync-images",
	Goals: "R4",
	Method: "strace fails a sync; nothing is acknowledged after it, and images of later power cuts, in which its " +
		"data may be lost for good, have all that was acknowledged before",
	Unit: "images",
	PR:   5_000, Nightly: 100_000, Share: 10,
	Missing: trace.MissingInjection,
	Prepare: harness.Each(func(t *harness.Try) error { return watched(t, "failed-sync-try", imageTimeout) }),
}

func init() { harness.Role("failed-sync-try", role(failedSyncTry)) }

var failingFlavours = []flavour{plain, concurrent, large, reopens, copies, inTx, killed}

// roundsOfAFailure is the number of images of each mode at a moment. There are few moments
// after a failed sync, and each may lose much.
const roundsOfAFailure = 8

func failedSyncTry(t *tried) error {
	f := failingFlavours[t.seed%uint64(len(failingFlavours))]
	for which := 1 + t.rand.IntN(30); which > 0; which /= 2 {
		if f == killed { // the sync of Open
			which = 1
		}
		dir, err := subfolder(t.dir, fmt.Sprintf("sync-%d", which))
		if err != nil {
			return err
		}
		r, err := newRecording(context.Background(), dir, t.rand)
		if err != nil {
			return err
		}
		r.strace = []string{"-e", fmt.Sprintf("inject=fdatasync,fsync:error=EIO:when=%d", which)}
		role, many := "power-steps", 60
		if f == concurrent {
			role, many = "power-concurrent", 300
		}
		if f == killed { // a sync of the next process fails
			inject := r.strace
			r.strace = nil
			if err := r.run(role, f, 1000, 0, 1+r.rand.IntN(90)); err != nil {
				return fmt.Errorf("workload %s: %w", f, err)
			}
			r.strace = inject
		}
		if err := r.run(role, f, many, r.lastBegun(), 0); err != nil {
			return fmt.Errorf("workload %s: %w", f, err)
		}
		if f == killed { // another process continues after that
			r.strace = nil
			if err := r.run(role, f, 10, r.lastBegun(), 0); err != nil {
				return fmt.Errorf("workload %s: %w", f, err)
			}
		}
		at := firstFailure(r.log)
		if at < 0 {
			continue // strace counts the syncs of each thread, and no thread had so many
		}
		if err := t.afterFailure(r, f, at); err != nil {
			return fmt.Errorf("workload %s: %w", f, err)
		}
		return nil
	}
	return errors.New("no sync could be made to fail")
}

func (t *tried) afterFailure(r *recording, f flavour, at int) error {
	if f == concurrent {
		return t.cut(r, new(concurrentStory), at, roundsOfAFailure, imagesOfATry)
	}
	if err := silent(r.log, at); err != nil {
		return err
	}
	s, err := newStates(r.log)
	if err != nil {
		return err
	}
	s.failing = true
	if err := s.learnFailures(r.log, r.dir); err != nil {
		return err
	}
	return t.cut(r, s, at, roundsOfAFailure, imagesOfATry)
}

// firstFailure returns the end of the first failed sync, -1 for none.
func firstFailure(l *trace.Log) int {
	for i, e := range l.Events {
		if e.IsSync() && !e.Begin && e.Failed {
			return i
		}
	}
	return -1
}

// silent requires that nothing is acknowledged between a failed sync of the queue's file and
// the next open, which replaces the file by a copy. A backup is another file, so the queue
// may continue without it.
func silent(l *trace.Log, failure int) error {
	if f := l.Events[failure]; f.Kind == trace.SyncFolder || f.File != l.Number(queueFile) {
		return nil
	}
	steps, before := make(map[string]string), len(l.Story(failure))
	for i, line := range l.Story(len(l.Events)) {
		words := strings.Fields(line)
		switch words[0] {
		case "begin":
			steps[words[1]] = strings.Join(words[2:], " ")
		case "done":
			switch what := steps[words[1]]; {
			case i < before || !promises(what):
			case what == "open again":
				return nil
			default:
				return fmt.Errorf("step %s (%s) was acknowledged after the failed sync of event %d", words[1], what, failure)
			}
		}
	}
	return nil
}

// learnFailures finds the states after steps that were not acknowledged, and so reported no
// state: the content according to the kernel right after the failed sync.
func (s *states) learnFailures(l *trace.Log, folder string) error {
	d := newDisk(l)
	begun := 0
	for _, e := range l.Events {
		d.apply(e)
		if e.Kind == trace.Say && e.Begin {
			var n int
			if _, err := fmt.Sscanf(e.Text, "begin %d ", &n); err == nil {
				begun = n
			}
		}
		if !e.IsSync() || e.Begin || !e.Failed {
			continue
		}
		if _, known := s.digests[begun]; known {
			continue
		}
		is, err := put(folder, queueFile, d.image(kept, rand.New(rand.NewPCG(0, 0))))
		if err != nil {
			return fmt.Errorf("after the failed sync of step %d: %w", begun, err)
		}
		s.digests[begun] = is
	}
	return nil
}
