package hostile

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// answering is a reader with an answer for each call.
type answering struct {
	looks
	stats pawl.Stats
	jobs  []*pawl.Envelope
	check error
	one   *pawl.Envelope // for each ID; nil for the job itself
	lost  bool           // the jobs are damaged, and not listed
}

func (a *answering) Stats(context.Context) (pawl.Stats, error) { return a.stats, nil }

func (a *answering) Check(context.Context) error { return a.check }

func (a *answering) Job(_ context.Context, id pawl.ID) (*pawl.Envelope, error) {
	if a.one != nil {
		return a.one, nil
	}
	if a.lost {
		return nil, pawl.ErrCorrupt
	}
	for _, e := range a.jobs {
		if e.ID == id {
			return e, nil
		}
	}
	return nil, pawl.ErrNotFound
}

func (a *answering) Jobs(_ context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error] {
	return func(yield func(*pawl.Envelope, error) bool) {
		for _, e := range a.jobs {
			if !a.lost && (f.State == "" || f.State == e.State) && !yield(e, nil) {
				return
			}
		}
	}
}

// Rule: in a file without findings, a job that is missing and a wrong count are violations. In any file, so is a job
// that was not requested, a job in a list of another state, a job that is listed twice, and a damaged job that is not
// listed.
func TestMissingJobIsSeen(t *testing.T) {
	all, _ := bases(t)
	b := all[len(all)-1]
	sound := func() *answering {
		a := &answering{}
		for name, counts := range b.counts {
			a.stats.Queues = append(a.stats.Queues, pawl.QueueStats{Name: name, Counts: counts})
		}
		for _, id := range b.ids {
			a.jobs = append(a.jobs, b.jobs[id])
		}
		return a
	}
	look := func(a *answering, forged bool) error {
		for seed := range uint64(8) { // half of them list the states
			trial := &trial{hostile: blank([]*base{b}, seed, ""), ctx: t.Context(), watch: newWatch(nil)}
			trial.forged = forged
			if trial.look(a, trial.asStored); trial.err == nil {
				trial.err = errors.Join(trial.whole(), trial.sameJobs(a))
			}
			if trial.err != nil {
				return trial.err
			}
		}
		return nil
	}
	require.NoError(t, look(sound(), false))
	for name, change := range map[string]func(a *answering){
		"a job":    func(a *answering) { a.jobs = a.jobs[1:] },
		"a count":  func(a *answering) { a.stats.Queues[0].Dead++ },
		"a queue":  func(a *answering) { a.stats.Queues = a.stats.Queues[1:] },
		"no queue": func(a *answering) { a.stats, a.jobs = pawl.Stats{}, nil },
	} {
		a := sound()
		change(a)
		require.ErrorContains(t, look(a, false), "Check finds nothing", name)
		require.NoError(t, look(a, true), name)
		a.check = pawl.ErrCorrupt
		require.NoError(t, look(a, false), name)
	}
	a := sound()
	a.one = a.jobs[3]
	require.ErrorContains(t, look(a, false), "was requested")
	a = sound()
	a.jobs[1] = a.jobs[0]
	require.ErrorContains(t, look(a, false), "is listed twice")
	a = sound()
	a.lost, a.check = true, pawl.ErrCorrupt
	require.ErrorContains(t, look(a, true), "the list has job")
	a = sound()
	moved := *a.jobs[3]
	moved.State = "another"
	a.jobs[3] = &moved
	require.ErrorContains(t, look(a, false), "is another, it was")
}
