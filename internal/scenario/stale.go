package scenario

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// deaf is a queue whose worker cannot extend its leases, like a worker that is cut off or
// stalled.
type deaf struct{ Queue }

// Extend implements pawl.Queue.
func (deaf) Extend(context.Context, ...*pawl.Lease) ([]*pawl.Lease, error) { return nil, nil }

// Rule: a worker that has lost its lease writes nothing more, whatever it is about to write:
// the changes that another worker has made to the run meanwhile stay.
func (suite) Scenario36StaleWorker(t *testing.T) {
	for name, write := range map[string]func(r *workflow.Run) error{
		"checkpoint": func(r *workflow.Run) error {
			_, err := workflow.Step(r, "write", func(context.Context) (string, error) { return r.ID(), nil })
			return err
		},
		"transaction": func(r *workflow.Run) error {
			_, err := workflow.StepTx(r, "write", func(Tx) (string, error) { return r.ID(), nil })
			return err
		},
		"suspension": func(r *workflow.Run) error { return workflow.Sleep(r, "write", time.Hour) },
		"publishing": func(r *workflow.Run) error { return workflow.Publish(r, "write", 1) },
		"version": func(r *workflow.Run) error {
			_, err := workflow.Version(r, "write", 1, 2)
			return err
		},
		"end":     func(*workflow.Run) error { return nil },
		"failure": func(*workflow.Run) error { return errors.New("failed") },
		"restart": func(r *workflow.Run) error { return workflow.Restart(r, "again") },
		"block": func(r *workflow.Run) error {
			_, err := workflow.Step(r, "other", func(context.Context) (string, error) { return "", nil })
			return err
		},
	} {
		sub(t, name, func(t *testing.T, k *kit) {
			stale := make(chan error, 1)
			f := workflow.Define("stale", func(r *workflow.Run, _ string) (string, error) {
				n := k.called("function")
				if _, err := workflow.Step(r, "first", func(context.Context) (int, error) { return 1, nil }); err != nil {
					return "", err
				}
				if n == 1 {
					k.at("stalled")
					err := write(r)
					stale <- err
					return "stale", err
				}
				if _, err := workflow.Step(r, "second", func(context.Context) (int, error) { return n, nil }); err != nil {
					return "", err
				}
				return "good", workflow.Sleep(r, "night", 10*time.Hour)
			})
			k.slots = -1
			k.open(f)
			stalled := k.gate("stalled")
			h := start(k, f, "1", "input")
			ctx, stop := context.WithCancel(t.Context())
			gone := make(chan error, 2)
			work := func(q pawl.Queue) {
				w := worker.New(q, &worker.Options{Concurrency: 1, Drain: 1, Logger: hclog.NewNullLogger()})
				require.NoError(t, k.e.Handle(ctx, w, f))
				go func() { gone <- w.Run(ctx) }()
			}
			work(deaf{k.q})
			<-stalled.reached
			work(k.q)
			k.pass(time.Hour) // the lease is over, and the other worker has the run
			require.Equal(t, workflow.Sleeping, k.info(h.Run()).Status)
			journal, info := k.journal(h.Run()), k.info(h.Run())

			close(stalled.open)
			<-stale
			k.settle()
			require.Equal(t, journal, k.journal(h.Run()))
			require.Equal(t, info, k.info(h.Run()))
			published, err := k.e.Published(t.Context(), h.Run())
			require.NoError(t, err)
			require.Empty(t, published)
			returns(k, h, "good")
			require.Equal(t, journal[:2], k.journal(h.Run())[:2])
			stop()
			<-gone
			<-gone
		})
	}
}
