package scenario

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/workflow"
)

// spinning are loops that ignore the errors of their calls once the first of them waits.
var spinning = map[string]func(r *workflow.Run){
	"sleep": func(r *workflow.Run) {
		for workflow.Sleep(r, "s", time.Hour) != nil {
		}
	},
	"other calls": func(r *workflow.Run) {
		for err := workflow.Sleep(r, "s", time.Hour); err != nil; {
			_, err = workflow.Version(r, "v", 1, 1)
			_ = workflow.Publish(r, "p", 1)
			_, _ = workflow.Each(r, "e", []int{1}, strconv.Itoa, 1, func(*workflow.Run, int) (int, error) { return 1, nil })
		}
	},
	"branch": func(r *workflow.Run) {
		_, _ = workflow.Go(r, "b", func(r *workflow.Run) (int, error) {
			for workflow.Sleep(r, "s", time.Hour) != nil {
			}
			return 1, nil
		}).Wait(r)
	},
	"waiting for a branch": func(r *workflow.Run) {
		b := workflow.Go(r, "b", func(r *workflow.Run) (int, error) { return 1, workflow.Sleep(r, "s", time.Hour) })
		for {
			if _, err := b.Wait(r); err == nil {
				return
			}
		}
	},
	"recover": func(r *workflow.Run) {
		once := func() (err error) {
			defer func() { _ = recover() }()
			return workflow.Sleep(r, "s", time.Hour)
		}
		for once() != nil {
		}
	},
	"defer": func(r *workflow.Run) {
		defer func() {
			for workflow.Sleep(r, "t", time.Hour) != nil {
			}
		}()
		_ = workflow.Sleep(r, "s", time.Hour)
	},
	"goroutine": func(r *workflow.Run) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for workflow.Sleep(r, "s", time.Hour) != nil {
			}
		}()
		<-done
	},
}

// Rule: a loop that ignores the error of a suspended run ends, wherever it is, and costs the
// run nothing: the run continues at its time, as if the function had returned.
func (suite) Scenario31SpinningIsEnded(t *testing.T) {
	for name, spin := range spinning {
		sub(t, name, func(t *testing.T, k *kit) {
			f := workflow.Define("careless", func(r *workflow.Run, _ int) (int, error) {
				k.called("function")
				_, err := act(k, r, "before", 1)
				spin(r)
				return 1, err
			})
			k.open(f)
			h := startAndSettle(k, f, "1", 0)
			require.Equal(t, workflow.Sleeping, k.info(h.Run()).Status)
			require.Equal(t, 1, k.calls("function"))
			require.NoError(t, k.e.Verify(t.Context(), h.Run()))
			require.NoError(t, k.e.Check(t.Context()))
			returns(k, h, 1)
			require.Equal(t, []string{"before"}, k.effects())
		})
	}
}

// Rule: the log reports a function whose goroutine was ended, once each time.
func (suite) Scenario31SpinningIsReported(t *testing.T, k *kit) {
	f := workflow.Define("careless", func(r *workflow.Run, _ int) (int, error) {
		spinning["sleep"](r)
		return 1, nil
	})
	var lines bytes.Buffer
	k.log, k.warm = hclog.New(&hclog.LoggerOptions{Output: &lines}), cold
	k.open(f)
	succeeds(k, start(k, f, "1", 0))
	require.Equal(t, 1, strings.Count(lines.String(), "return each error of a call that is not a *StepError"))
}

// Rule: the same holds for a loop that ignores that the run is cancelled, that its branch has
// lost, or that the journal is full: the run ends as if the function had returned that error.
func (suite) Scenario37SpinningEndsWithItsRefusal(t *testing.T) {
	stubborn := func(r *workflow.Run) (int, error) {
		for {
			if _, err := workflow.Step(r, "s", func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			}); err == nil {
				return 1, nil
			}
		}
	}
	for _, c := range []struct {
		name string
		fn   func(r *workflow.Run) (int, error)
		stop func(t *testing.T, k *kit, h *workflow.Handle[int])
		want workflow.Status
	}{
		{"cancelled", stubborn, func(t *testing.T, k *kit, h *workflow.Handle[int]) {
			require.NoError(t, h.Cancel(t.Context(), "enough"))
		}, workflow.Cancelled},
		{"abandoned", func(r *workflow.Run) (int, error) {
			loser := workflow.Go(r, "loser", stubborn)
			winner := workflow.Go(r, "winner", func(r *workflow.Run) (int, error) { _, err := last.Wait(r, workflow.Forever); return 1, err })
			_, _, err := workflow.Race(r, "first", winner, loser)
			return 1, err
		}, func(t *testing.T, k *kit, h *workflow.Handle[int]) {
			require.NoError(t, last.Send(t.Context(), k.e, h.Run(), "me", ""))
		}, workflow.Done},
		{"full", func(r *workflow.Run) (int, error) {
			for {
				_ = workflow.Sleep(r, "s", 0)
			}
		}, nil, workflow.Failed},
	} {
		sub(t, c.name, func(t *testing.T, k *kit) {
			if c.stop == nil { // its own goroutine fills the journal
				race.SkipLone(t)
			}
			f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) { return c.fn(r) })
			k.open(f)
			h := startAndSettle(k, f, "1", 0)
			if c.stop != nil {
				require.Equal(t, workflow.Running, k.info(h.Run()).Status)
				c.stop(t, k, h)
				k.settle()
			}
			require.Equal(t, c.want, k.info(h.Run()).Status)
			if c.want == workflow.Failed {
				require.Contains(t, k.info(h.Run()).Error, "Restart begins a new one")
			}
		})
	}
}
