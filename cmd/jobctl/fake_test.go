package main

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
)

// fake is a queue that does what a real file does too rarely for a test. Methods that a test
// does not define panic.
type fake struct {
	admin.Admin
	pages   []admin.Page
	job     func(pawl.ID) (*pawl.Envelope, error)
	deleted error

	mu     sync.Mutex
	stored int // guarded by mu
}

func (f *fake) Stats(context.Context) (admin.Stats, error) { return admin.Stats{}, nil }

func (f *fake) Job(_ context.Context, id pawl.ID) (*pawl.Envelope, error) { return f.job(id) }

func (f *fake) Enqueue(_ context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stored += len(jobs)
	return make([]pawl.Enqueued, len(jobs)), nil
}

func (f *fake) List(context.Context, admin.Query) (admin.Page, error) {
	page := f.pages[0]
	f.pages = f.pages[1:]
	return page, nil
}

func (f *fake) Do(_ context.Context, _ admin.Action, ids ...pawl.ID) ([]error, error) {
	results := make([]error, len(ids))
	for i := range results {
		results[i] = f.deleted
	}
	return results, nil
}

// Rule: after the last requested job, a list says whether there are more, or that there may be
// if checking would take long.
func TestListReportsMore(t *testing.T) {
	job := pawl.Listed{Job: &pawl.Envelope{}}
	for rest, behind := range map[string]admin.Page{
		"":       {},
		"are":    {Jobs: []pawl.Listed{job}},
		"may be": {Next: "further"},
	} {
		asOfToday(t.Context(), nil, false, func(a *app) error {
			l, queue := list{paging: paging{limit: 1}}, &fake{pages: []admin.Page{{Jobs: []pawl.Listed{job}, Next: "cursor"}, behind}}
			require.NoError(t, l.fill(t.Context(), queue, a.jobListing(), new(damage)))
			require.Equal(t, rest, l.rest)
			require.Equal(t, "cursor", l.next)
			return nil
		})
	}
}

// Rule: an error about the whole queue ends a change before anything is done; an error about a
// job concerns only that job.
func TestChooseDistinguishesJobsFromTheQueue(t *testing.T) {
	disk := errors.New("input/output error")
	for _, err := range []error{disk, pawl.ErrNotFound, pawl.ErrCorrupt} {
		c := &change{app: &app{}, selection: &jobSelection{ids: []pawl.ID{id(1)}}, verb: verb{states: []pawl.State{pawl.Dead}}}
		c.verb.apply = func(_ context.Context, _ admin.Admin, how how, ids []pawl.ID) ([]error, error) {
			require.True(t, how.dry)
			if err == disk {
				return nil, err
			}
			return []error{err}, nil
		}
		got := c.choose(t.Context(), new(fake))
		if err == disk {
			require.ErrorIs(t, got, disk)
			continue
		}
		require.NoError(t, got)
		require.ErrorIs(t, c.results[0].err, err)
	}
}

// Rule: a dead job that is stored elsewhere and that another process has removed here in the
// meantime counts as forwarded; a job that is still here is reported.
func TestForwardOfWhatIsGone(t *testing.T) {
	deadJob := func(id pawl.ID) (*pawl.Envelope, error) {
		return &pawl.Envelope{ID: id, Kind: "k", Queue: "q", State: pawl.Dead, Death: &pawl.Death{Reason: pawl.ReasonPermanent}}, nil
	}
	for _, c := range []struct{ deleted, want error }{{nil, nil}, {pawl.ErrNotFound, nil}, {pawl.ErrConflict, pawl.ErrConflict}} {
		to := &fake{}
		results := (&forwarding{to: new(app)}).over(t.Context(), &fake{job: deadJob, deleted: c.deleted}, to, how{}, []pawl.ID{id(1), id(2)})
		require.Equal(t, 2, to.stored)
		for _, result := range results {
			require.ErrorIs(t, result, c.want)
		}
	}
}
