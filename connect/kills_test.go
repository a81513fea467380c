//go:build unix

package connect

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/kills"
)

// Rule: two processes enqueue while a third owns the file and works, and is killed again and again.
// Nothing that was acknowledged is lost, and nothing is stored twice under one ID, whether the answer came or not.
func TestKilledOwners(t *testing.T) {
	count := kills.Count(t, 6)
	path := newPath(t)
	acknowledged := newTally()
	stop := make(chan struct{})
	results := make(chan enqueued, 2)
	for by := range 2 {
		enqueuer := start(t, "enqueue", path)
		go func() {
			r := enqueuer.enqueueUntil(stop, by, acknowledged)
			acknowledged.end()
			results <- r
		}()
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range count {
		third := start(t, "elect", path)
		require.Equal(t, "elected", third.line(t))
		if !acknowledged.await(rnd.IntN(12)) {
			require.NoError(t, (<-results).err)
		}
		third.kill(t)
	}
	close(stop)
	all, unknown := make(map[pawl.ID]Note), 0
	for range 2 {
		r := <-results
		require.NoError(t, r.err)
		maps.Copy(all, r.ids)
		unknown += r.unknown
	}
	stored, completed := read(t, path)
	require.Equal(t, all, stored, "every acknowledged job, each once, and no other")
	t.Logf("%d kills, %d jobs acknowledged, %d stored, %d of them completed; %d answers that were lost were asked for again",
		count, len(all), len(stored), completed, unknown)
}

// enqueued is what an enqueuer reports.
type enqueued struct {
	ids     map[pawl.ID]Note // acknowledged
	unknown int              // outcomes
	err     error
}

// enqueueUntil lets a process enqueue one job after the other.
func (c *child) enqueueUntil(stop <-chan struct{}, by int, acknowledged *tally) (r enqueued) {
	r.ids = make(map[pawl.ID]Note)
	for n := 0; ; n++ {
		select {
		case <-stop:
			if r.err = c.stdin.Close(); r.err == nil {
				r.err = c.cmd.Wait()
			}
			return r
		default:
		}
		if _, r.err = fmt.Fprintln(c.stdin, by, n); r.err != nil {
			return r
		}
		if !c.lines.Scan() {
			_ = c.cmd.Wait()
			r.err = fmt.Errorf("the enqueuer is gone: %s", c.stderr.String())
			return r
		}
		text, unknown, _ := strings.Cut(c.lines.Text(), " ")
		id, err := pawl.ParseID(text)
		if err != nil {
			r.err = err
			return r
		}
		times := 0
		if _, r.err = fmt.Sscan(unknown, &times); r.err != nil {
			return r
		}
		r.unknown += times
		r.ids[id] = Note{by, n}
		acknowledged.add()
	}
}

// tally counts acknowledged jobs.
type tally struct {
	mu    sync.Mutex
	more  *sync.Cond
	n     int
	ended bool // an enqueuer has ended
}

func newTally() *tally {
	t := new(tally)
	t.more = sync.NewCond(&t.mu)
	return t
}

func (t *tally) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	t.more.Broadcast()
}

func (t *tally) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.more.Broadcast()
}

// await waits for some more jobs. It reports whether all enqueuers run.
func (t *tally) await(more int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for until := t.n + more; t.n < until && !t.ended; {
		t.more.Wait()
	}
	return !t.ended
}

// read returns the jobs of a file by their IDs, and how many have succeeded. It requires that none is there twice,
// under any ID, and that the file is sound.
func read(t *testing.T, path string) (stored map[pawl.ID]Note, completed int) {
	r, err := bolt.OpenReader(path)
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, r.Check(t.Context()))
	stored = make(map[pawl.ID]Note)
	once := make(map[Note]bool)
	for e, err := range r.Jobs(t.Context(), pawl.Filter{}) {
		require.NoError(t, err)
		job, err := note.Job(e)
		require.NoError(t, err)
		require.False(t, once[job.Args], "%v is there twice", job.Args)
		stored[e.ID], once[job.Args] = job.Args, true
		if e.State == pawl.Completed {
			completed++
		}
	}
	return stored, completed
}
