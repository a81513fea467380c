package hostile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/workflow"
)

// The errors of package workflow besides those of the queue.
var flowAnswers = []error{
	workflow.ErrNotFound, workflow.ErrNotRunning, workflow.ErrConflict, workflow.ErrTooMany, workflow.ErrTooLarge, workflow.ErrNoFlow,
}

// matchable requires that a caller can match an error.
func matchable(err error) error {
	if errors.As(err, new(*workflow.DeterminismError)) {
		return nil
	}
	return matched(err, refusals, answers, flowAnswers)
}

// anyRun draws the ID of a run, or of no run.
func (h *hostile) anyRun() pawl.ID {
	if len(h.runs) == 0 || h.rand.IntN(16) == 0 {
		return h.anyID()
	}
	return h.runs[h.rand.IntN(len(h.runs))]
}

// someRuns draws a few runs.
func (h *hostile) someRuns() (runs []pawl.ID) {
	for range 4 {
		runs = append(runs, h.anyRun())
	}
	return runs
}

// lookAtRuns reads everything about runs. If no process has changed the file, each run must be as in the
// sound file, or there must be an error.
func (t *trial) lookAtRuns(s workflow.Source, asStored bool) {
	if len(t.runs) == 0 {
		return
	}
	asStored = asStored && !t.forged
	rd := workflow.Read(s)
	t.do("List of runs", func() error { return t.listRuns(rd, asStored) })
	for _, run := range t.someRuns() {
		known := t.stories[run]
		if !asStored {
			known = nil
		}
		t.do("Info of a run", func() error {
			info, err := rd.Info(t.ctx, run)
			if err != nil {
				return matchable(err)
			}
			return sameInfo(info, known)
		})
		t.do("Journal of a run", func() error {
			journal, err := rd.Journal(t.ctx, run, t.rand.IntN(4) > 0)
			if err != nil {
				return matchable(err)
			}
			for _, e := range journal {
				if err := sameEntry(e, known); err != nil {
					return err
				}
			}
			return nil
		})
		t.do("Signals of a run", func() error {
			signals, err := rd.Signals(t.ctx, run)
			if err != nil {
				return matchable(err)
			}
			return sameSignals(signals, known)
		})
		t.do("Published by a run", func() error {
			values, err := rd.Published(t.ctx, run)
			if err != nil {
				return matchable(err)
			}
			if t.salvaged {
				return nil
			}
			return samePublished(values, known)
		})
		t.do("Streams of a run", func() error {
			streams, err := rd.Streams(t.ctx, run)
			if err != nil {
				return matchable(err)
			}
			return sameStreams(streams, known)
		})
		t.do("Items of a run", func() error {
			items, err := rd.Items(t.ctx, run, printed.Name(), 0, workflow.MaxListed)
			if err != nil {
				return matchable(err)
			}
			return sameItems(items, known)
		})
		t.do("Input and output of a run", func() error {
			input, err := rd.Input(t.ctx, run)
			output, outputErr := rd.Output(t.ctx, run)
			if err == nil && known != nil && !bytes.Equal(input, known.input) {
				return fmt.Errorf("silently wrong: the input of run %s is %x, it was %x", run, input, known.input)
			}
			if outputErr == nil && known != nil && !bytes.Equal(output, known.output) {
				return fmt.Errorf("silently wrong: the output of run %s is %x, it was %x", run, output, known.output)
			}
			return errors.Join(matchable(err), matchable(outputErr))
		})
	}
	t.do("Check of runs", func() error { return matchable(rd.Check(t.ctx)) })
}

// listRuns reads a list to its end, in pages.
func (t *trial) listRuns(rd *workflow.Reader, asStored bool) error {
	filters := []workflow.Filter{{}, {}, {Flow: "story"}, {Status: workflow.Waiting}, {Status: workflow.Dead}, {Prefix: "w"}}
	filter, part := filters[t.rand.IntN(len(filters))], 1+t.rand.IntN(30)
	n := 0
	for after := ""; ; {
		l, err := rd.List(t.ctx, filter, after, part)
		if err != nil {
			return matchable(err)
		}
		for _, info := range l.Runs {
			known := t.stories[info.Run]
			if asStored && known == nil && info.Error == "" {
				return fmt.Errorf("silently wrong: there never was a run %s", info.Run)
			}
			if !asStored {
				known = nil
			}
			if err := sameInfo(info, known); err != nil {
				return err
			}
		}
		if n += len(l.Runs); n > mostListed {
			return fmt.Errorf("it has no end: %d runs so far", n)
		}
		if after = l.Next; after == "" {
			return nil
		}
	}
}

// sameInfo requires that the row of a run is unchanged, if its content is known. The job of
// the run may be lost, and with it the status.
func sameInfo(is workflow.Info, known *storyOf) error {
	if known == nil || is.Flow == "" && is.Error != "" {
		return nil
	}
	was := known.info
	for _, holder := range is.Holders { // some holders may be lost, and a list has none
		if !slices.Contains(was.Holders, holder) {
			return fmt.Errorf("silently wrong: run %s waits for run %s, it waited for %s", is.Run, holder, was.Holders)
		}
	}
	is.Holders = was.Holders
	if is.Error != was.Error || is.Status != was.Status { // its job is damaged or gone, or in another state
		is.Status, is.Error, is.Due, is.Waits, is.Place, is.Rate = was.Status, was.Error, was.Due, was.Waits, was.Place, was.Rate
	}
	if !reflect.DeepEqual(is, was) {
		return fmt.Errorf("silently wrong: run %s is %+v, it was %+v", is.Run, is, was)
	}
	return nil
}

func sameEntry(is workflow.Entry, known *storyOf) error {
	if known == nil || is.Name == "" && is.Error != "" {
		return nil
	}
	was := known.journal[is.Seq]
	if is.Result == nil { // not requested, or lost
		is.Result = was.Result
	}
	if is.Error != "" && was.Error == "" { // the value is damaged
		is.Error = ""
	}
	if !reflect.DeepEqual(is, was) {
		return fmt.Errorf("silently wrong: the entry %+v was %+v", is, was)
	}
	return nil
}

func sameSignals(are []workflow.Pending, known *storyOf) error {
	if known == nil {
		return nil
	}
	for _, is := range are {
		found := false
		for _, was := range known.signals {
			found = found || reflect.DeepEqual(is, was)
		}
		if !found {
			return fmt.Errorf("silently wrong: there never was the signal %+v", is)
		}
	}
	return nil
}

func samePublished(are map[string][]byte, known *storyOf) error {
	if known == nil {
		return nil
	}
	for key, value := range are {
		if was, ok := known.published[key]; !ok || !bytes.Equal(value, was) {
			return fmt.Errorf("silently wrong: %q is published as %x, it was %x", key, value, was)
		}
	}
	return nil
}

// mostWork is the time limit of a few jobs of runs, on a machine that is busy. A run that waits suspends.
const mostWork = time.Minute

// steer carries out operations of operators on runs, and lets a worker run a few.
func (t *trial) steer(q *bolt.Queue) {
	if len(t.runs) == 0 || t.rand.IntN(2) == 0 {
		return
	}
	e := workflow.Open(q, &workflow.Options{Build: "3", Logger: hclog.NewNullLogger()})
	for _, o := range []operation{
		{"Cancel of a run", func(run pawl.ID) error { return e.Cancel(t.ctx, run, "why") }},
		{"Terminate of a run", func(run pawl.ID) error { return e.Terminate(t.ctx, run, "") }},
		{"Pause of a run", func(run pawl.ID) error { return e.Pause(t.ctx, run) }},
		{"Resume of a run", func(run pawl.ID) error { return e.Resume(t.ctx, run) }},
		{"Send", func(run pawl.ID) error { return e.Send(t.ctx, run, "go", []byte{0xa0}, "order/1") }},
		{"Send again", func(run pawl.ID) error { return e.Send(t.ctx, run, "go", []byte{0xa0}, "") }},
		{"Verify without the flow", func(run pawl.ID) error { return e.Verify(t.ctx, run) }},
		{"Fork", func(run pawl.ID) error {
			_, err := e.Fork(t.ctx, run, []string{"", "step", "large", "fast/step", "none"}[t.rand.IntN(5)], "forked again")
			return err
		}},
		{"Start", func(pawl.ID) error {
			_, err := story("step", false).Start(t.ctx, e, []string{"waits", "calls/child", "new"}[t.rand.IntN(3)], "waits")
			return err
		}},
		{"Start in line", func(pawl.ID) error {
			f := []*workflow.Flow[string, string]{narrow(), paced()}[t.rand.IntN(2)]
			_, err := f.Start(t.ctx, e, f.Name()+" anew", "", workflow.Key(keysOfLines[t.rand.IntN(3)]))
			return err
		}},
		{"a request again", func(pawl.ID) error { return t.again(e) }},
	} {
		if t.rand.IntN(2) == 0 {
			id := t.anyRun()
			t.do(o.name, func() error { return matchable(o.run(id)) })
		}
	}
	if t.rand.IntN(2) == 0 {
		t.do("Prune", func() error {
			_, err := e.Prune(t.ctx, []time.Time{began, began.Add(1), {}}[t.rand.IntN(3)], nil)
			return matchable(err)
		})
	}
	if t.rand.IntN(2) == 0 {
		t.crew(q)
	}
	t.do("Check of runs that were steered", func() error { return matchable(e.Check(t.ctx)) })
}

// crew continues runs with a build: the build that wrote them, or one that does not match.
func (t *trial) crew(q *bolt.Queue) {
	ctx, stop := context.WithTimeout(t.ctx, mostWork)
	defer stop()
	var c *crew
	t.do("Handle", func() (err error) {
		c, err = newCrew(t.ctx, q, []string{"step", "step", "step", "other"}[t.rand.IntN(4)], false)
		return matchable(err)
	})
	t.do("Verify", func() error {
		for _, run := range t.someRuns() {
			if err := matchable(c.Verify(t.ctx, run)); err != nil {
				return err
			}
		}
		return nil
	})
	t.do("a worker with runs", func() error {
		if err := matchable(c.works(8)); err != nil {
			return err
		}
		return ctx.Err()
	})
}
