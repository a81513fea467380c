package kills

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// editor is a queue that can edit jobs.
type editor interface {
	Edit(ctx context.Context, id pawl.ID, payload []byte, when pawl.Condition) error
	Cancel(ctx context.Context, id pawl.ID) error
}

// editJobs edits dead jobs, which are there already, from several goroutines. It edits each again while it is ready, and makes
// it dead again.
func editJobs(ctx context.Context, q Queue) error {
	editor := q.(editor)
	var jobs []*pawl.Envelope
	for job, err := range q.Jobs(ctx, pawl.Filter{}) {
		if err != nil {
			return err
		}
		if job, err = q.Job(ctx, job.ID); err != nil {
			return err
		}
		jobs = append(jobs, job)
	}
	var all sync.WaitGroup
	for _, job := range jobs {
		n, times := binary.BigEndian.Uint64(job.Payload), 2
		if job.State == pawl.Ready {
			times = 1
		}
		all.Go(func() {
			for ; ; times = 2 {
				for range times {
					n++
					if err := editor.Edit(ctx, job.ID, numbered(n), nil); err != nil {
						panic(err)
					}
					Say("edited", job.ID, n)
				}
				if err := editor.Cancel(ctx, job.ID); err != nil {
					panic(err)
				}
				Say("cancelled", job.ID, n)
			}
		})
	}
	all.Wait()
	return nil
}

// Edits guards the rule: an edit of a dead job is one with its retry. Whenever the process is killed, the job is the old one,
// which is dead, or the new one, which is ready. It has its whole payload, and a header that names the one before.
func (e Engine) Edits(t *testing.T) {
	place := e.New(t)
	e.Look(t, place, func(q Queue) {
		for range 4 {
			done, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Payload: numbered(0)})
			require.NoError(t, err)
			require.NoError(t, q.(editor).Cancel(t.Context(), done[0].ID))
		}
	})
	acked := make(map[string]uint64) // the last payload of each job
	ready := make(map[string]bool)
	total := 0
	for range Count(t, 8) {
		note := func(verb, id string, n uint64) { acked[id], ready[id] = n, verb == "edited" }
		total += e.kill(t, "edits", place, note, func(q Queue) {
			jobs := 0
			for job, err := range q.Jobs(t.Context(), pawl.Filter{}) {
				require.NoError(t, err)
				full, err := q.Job(t.Context(), job.ID)
				require.NoError(t, err)
				id, n := job.ID.String(), binary.BigEndian.Uint64(full.Payload)
				require.Equal(t, numbered(n), full.Payload)
				if n > 0 {
					edits := driver.EditsOf(full)
					require.Equal(t, driver.SumOf(numbered(n-1)), edits[len(edits)-1].SHA256)
				}
				switch {
				case n == acked[id]+1: // by an edit that was not acknowledged
					require.Equal(t, pawl.Ready, full.State)
				case !ready[id]:
					require.Equal(t, pawl.Dead, full.State)
					fallthrough
				default: // a cancel may have ended it
					require.Equal(t, acked[id], n)
				}
				acked[id], ready[id] = n, full.State == pawl.Ready
				jobs++
			}
			require.Equal(t, 4, jobs)
		})
	}
	t.Logf("%d acknowledged edits and cancels", total)
}
