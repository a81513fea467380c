package workflow

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/worker"
)

// atCheckpoint is a store that calls a function before its first commit that has only entries.
type atCheckpoint struct {
	*bolt.Queue
	first  sync.Once
	before func()
}

func (s *atCheckpoint) Mutate(ctx context.Context, m driver.Mutation, size int) error {
	if _, ok := m.(*checkpoint); ok {
		s.first.Do(s.before)
	}
	return s.Queue.Mutate(ctx, m, size)
}

// runOnce runs a flow to its end. Before is called before the first commit that has only entries.
func runOnce(t *testing.T, before func(), fn func(*Run, int) (string, error)) string {
	t.Helper()
	q, err := bolt.Open(filepath.Join(memdir.New(t), "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	defer q.Close()
	e := Open(&atCheckpoint{Queue: q, before: before}, &Options{Logger: hclog.NewNullLogger()})
	flow := Define("once", fn)
	w := worker.New(q, &worker.Options{Concurrency: 1, Logger: hclog.NewNullLogger()})
	require.NoError(t, e.Handle(t.Context(), w, flow))
	h, err := flow.Start(t.Context(), e, "1", 0)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- w.Run(ctx) }()
	out, err := h.Result(ctx)
	require.NoError(t, err)
	stop()
	require.NoError(t, <-gone)
	require.NoError(t, q.Check(t.Context()))
	return out
}

// green takes what a value has.
func green(got *string) func(*string) bool {
	return func(v *string) bool {
		if *v == "" {
			return false
		}
		*got, *v = *v, ""
		return true
	}
}

// waitInParts is a Wait with pauses for a test: once it has begun, and once it has looked.
func waitInParts(r *Run, light *Shared[string], begun, looked func()) (got string, err error) {
	c, err := light.begin(r, KindCondition, "green")
	if err != nil {
		return "", err
	}
	defer c.end()
	begun()
	w := c.sharedWait(&sharedCase{on: light.shared, try: light.try(green(&got))})
	defer w.join()()
	if met, err := w.look(nil, func() { w.opens(true, w.changed) }); met || err != nil {
		return got, err
	}
	looked()
	if _, err = c.idle(waitCondition{shared: true}, w.changed); err == nil {
		_, err = w.over()
	}
	return got, err
}

func nothing() {}

// change gives the value one content after the other.
func change(r *Run, light *Shared[string], contents ...string) error {
	for _, next := range contents {
		if err := light.Change(r, func(v *string) { *v = next }); err != nil {
			return err
		}
	}
	return nil
}

// Rule: once a wait has looked at a value, no later value escapes it, even before its goroutine sleeps.
func TestSharedMomentBetweenLookAndSleep(t *testing.T) {
	looked, changed := make(chan bool), make(chan bool)
	out := runOnce(t, nothing, func(r *Run, _ int) (string, error) {
		light := Share(r, "light", "")
		b := Go(r, "waits", func(r *Run) (string, error) {
			return waitInParts(r, light, nothing, func() { close(looked); <-changed })
		})
		<-looked
		if err := change(r, light, "1", "2", ""); err != nil {
			return "", err
		}
		close(changed)
		return b.Wait(r)
	})
	require.Equal(t, "1", out)
}

// Rule: the wait that began first comes first, in whatever order goroutines get to their waits.
func TestSharedWaitThatBeganFirst(t *testing.T) {
	begun, joined, both := make(chan bool), make(chan bool), make(chan bool)
	out := runOnce(t, nothing, func(r *Run, _ int) (string, error) {
		light := Share(r, "light", "")
		first := Go(r, "first", func(r *Run) (string, error) {
			return waitInParts(r, light, func() { close(begun); <-joined }, func() { close(both) })
		})
		second := Go(r, "second", func(r *Run) (string, error) {
			<-begun
			return waitInParts(r, light, nothing, func() { close(joined) })
		})
		<-both
		if err := change(r, light, "1", "2"); err != nil {
			return "", err
		}
		all, err := All(r, first, second)
		return strings.Join(all, " "), err
	})
	require.Equal(t, "1 2", out)
}

// Rule: a branch that lost a race takes nothing from the others.
func TestSharedWaitOfALoserTakesNothing(t *testing.T) {
	looked, changed := make(chan *scope), make(chan bool)
	out := runOnce(t, nothing, func(r *Run, _ int) (got string, err error) {
		light := Share(r, "light", "")
		Go(r, "loses", func(r *Run) (string, error) {
			return waitInParts(r, light, nothing, func() { looked <- r.s; <-changed })
		})
		loser := <-looked
		r.x.mu.Lock()
		loser.abandoned = true
		r.x.mu.Unlock()
		err = change(r, light, "1")
		if err == nil {
			err = light.Change(r, func(v *string) { got = *v })
		}
		close(changed)
		return got, err
	})
	require.Equal(t, "1", out)
}

// Rule: a wait takes once, even if its function failed in the branch that changed the value.
func TestSharedWaitTakesOnceAfterAPanic(t *testing.T) {
	looked := make(chan bool)
	out := runOnce(t, nothing, func(r *Run, _ int) (string, error) {
		slots, calls := Share(r, "slots", 0), 0
		b := Go(r, "waits", func(r *Run) (int, error) {
			return 0, slots.Wait(r, "a slot", func(n *int) bool {
				switch calls++; calls {
				case 1:
					close(looked)
					return false
				case 2:
					panic("in the other branch")
				}
				*n--
				return *n >= 0
			})
		})
		<-looked
		err := slots.Change(r, func(n *int) { *n = 2 })
		if err == nil {
			_, err = b.Wait(r)
		}
		left := 0
		if err == nil {
			err = slots.Change(r, func(n *int) { left = *n })
		}
		return strconv.Itoa(left), err
	})
	require.Equal(t, "1", out)
}

// Rule: a Select waits for a value from its first look, while the commit of its entry is under way.
func TestSharedMomentDuringTheCommitOfASelect(t *testing.T) {
	commits, changed := make(chan bool), make(chan bool)
	out := runOnce(t, func() { close(commits); <-changed }, func(r *Run, _ int) (string, error) {
		light := Share(r, "light", "")
		b := Go(r, "waits", func(r *Run) (got string, err error) {
			_, err = Select(r, "green", light.Case(green(&got)), After(time.Minute))
			return got, err
		})
		<-commits
		if err := change(r, light, "1", "2", ""); err != nil {
			return "", err
		}
		close(changed)
		return b.Wait(r)
	})
	require.Equal(t, "1", out)
}

// Rule: of the cases that are ready, a Select takes the first, even if another branch changes the value of a later
// one before the Select is awake.
func TestSharedCaseBehindABranch(t *testing.T) {
	const groups = 30
	out := runOnce(t, nothing, func(r *Run, _ int) (string, error) {
		start := Share(r, "start", "")
		var selects, changes []*Branch[string]
		var looked sync.WaitGroup
		for i := range groups {
			light, of := Share(r, fmt.Sprintf("light %d", i), ""), func(what string) string { return fmt.Sprintf("%s %d", what, i) }
			first := Go(r, of("first"), func(r *Run) (string, error) {
				return "", start.Wait(r, "start", func(v *string) bool { return *v != "" })
			})
			looked.Add(1)
			once := sync.OnceFunc(looked.Done)
			selects = append(selects, Go(r, of("select"), func(r *Run) (string, error) {
				n, err := Select(r, "either", first.Case(nil), light.Case(func(v *string) bool { once(); return *v != "" }))
				return strconv.Itoa(n), err
			}))
			changes = append(changes, Go(r, of("change"), func(r *Run) (string, error) {
				if _, err := first.Wait(r); err != nil {
					return "", err
				}
				return "", change(r, light, "1")
			}))
		}
		looked.Wait()
		if err := change(r, start, "now"); err != nil {
			return "", err
		}
		if _, err := All(r, changes...); err != nil {
			return "", err
		}
		all, err := All(r, selects...)
		return strings.Join(all, ""), err
	})
	require.Equal(t, strings.Repeat("0", groups), out)
}

// Rule: the wait that began first comes first, even if another one has to take something before it can.
func TestSharedWaitThatBeganFirstComesSecond(t *testing.T) {
	looked := []chan bool{make(chan bool), make(chan bool), make(chan bool)}
	out := runOnce(t, nothing, func(r *Run, _ int) (taker string, err error) {
		light := Share(r, "light", "")
		for i, w := range []struct{ name, from, to string }{{"first", "2", "3 by the first"}, {"second", "1", "2"}, {"third", "2", "3 by the third"}} {
			Go(r, w.name, func(r *Run) (int, error) {
				once := sync.OnceFunc(func() { close(looked[i]) })
				return 0, light.Wait(r, "its turn", func(v *string) bool {
					once()
					mine := *v == w.from
					if mine {
						*v = w.to
					}
					return mine
				})
			})
			<-looked[i]
		}
		if err = change(r, light, "1"); err == nil {
			err = light.Change(r, func(v *string) { taker = *v })
		}
		if err == nil {
			err = change(r, light, "2") // for the other one
		}
		return taker, err
	})
	require.Equal(t, "3 by the first", out)
}
