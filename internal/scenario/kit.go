package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// kit is a queue, an engine over it and a running worker, all in a bubble of
// testing/synctest: time passes when everybody waits, and then settle returns. A kit has
// several lives. Each ends by close, by a crash in the process, or by a kill; see story.
//
// The effects of the runs on the outside world are stored beside the file, and outlive
// everything.
type kit struct {
	t     *testing.T
	path  string
	flows []workflow.Definition

	// Set these before open.
	build      string                // "1" by default
	around     []workflow.Middleware // of the engine
	log        hclog.Logger          // of the engine
	slots      int                   // of the worker; 8 by default, and no worker if negative
	maxCrashes int                   // of the queue; the queue's default if zero
	codec      workflow.Codec        // of the engine; random by default, and the same in all lives
	warm       int                   // suspended runs in memory; random in each life if zero

	q    Queue
	e    *workflow.Engine
	stop context.CancelFunc // of the worker
	gone chan struct{}      // closed when the worker has returned

	offset atomic.Int64 // of the queue's clock
	mortal bool         // the kit has its own process, which dies with it
	looks  atomic.Int64 // reads of the clock until it dies; negative for never

	ending atomic.Bool   // this life is about to end
	dead   chan struct{} // closed when nothing more of it is written

	mu    sync.Mutex
	gates map[string]*gate
	count map[string]int
}

// bubble runs a test with a kit whose file does not exist yet.
func bubble(t *testing.T, test func(t *testing.T, k *kit)) {
	t.Helper()
	path := filepath.Join(memdir.New(t), "jobs.db")
	synctest.Test(t, func(t *testing.T) { test(t, newKit(t, path)) })
}

// sub runs a subtest with a kit.
func sub(t *testing.T, name string, test func(t *testing.T, k *kit)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble(t, test) })
}

// longest is the time limit of a scenario by the clock of its bubble. A longer scenario waits
// for something that does not come.
const longest = 100 * 24 * time.Hour

func newKit(t *testing.T, path string) *kit {
	watch := time.AfterFunc(longest, func() { panic("the scenario waits for what does not come") })
	t.Cleanup(func() { watch.Stop() })
	return &kit{t: t, path: path, build: "1", slots: 8, codec: codecFor(path), log: hclog.NewNullLogger(), gates: make(map[string]*gate)}
}

// open opens the file and starts the worker. The file is checked at the end of the test.
func (k *kit) open(flows ...workflow.Definition) {
	k.t.Helper()
	q := under.Open(k.t, k.path, Options{Now: k.now, MaxCrashes: k.maxCrashes})
	k.flows = flows
	k.ending.Store(false)
	k.mu.Lock()
	k.q, k.dead = q, make(chan struct{})
	k.count = make(map[string]int)
	k.mu.Unlock()
	e := workflow.Open(q, &workflow.Options{Build: k.build, Middleware: k.around, Logger: k.log, Codec: k.codec, Warm: k.warmth()})
	k.mu.Lock()
	k.e = e
	k.mu.Unlock()
	ctx, stop := context.WithCancel(context.Background())
	gone := make(chan struct{})
	k.stop, k.gone = stop, gone
	k.t.Cleanup(func() {
		stop()
		<-gone
		if err := q.Check(context.Background()); err != nil {
			require.ErrorIs(k.t, err, pawl.ErrClosed)
		}
		require.NoError(k.t, q.Close())
	})
	w := worker.New(q, &worker.Options{Concurrency: max(k.slots, 1), Drain: 1, Logger: hclog.NewNullLogger()})
	require.NoError(k.t, k.e.Handle(ctx, w, flows...))
	if k.slots < 0 {
		close(gone)
		return
	}
	go func() {
		defer close(gone)
		_ = w.Run(ctx)
	}()
}

// cold has every wake call the functions again, for a scenario that counts the calls.
const cold = -1

// warmth returns how many suspended runs stay in memory in this life. Nothing else that a scenario sees may
// depend on it.
func (k *kit) warmth() int {
	warm := k.warm
	if warm == 0 {
		warm = [...]int{cold, 1, workflow.DefaultWarm}[rand.IntN(3)]
		k.t.Logf("suspended runs in memory: %d", warm)
	}
	return warm
}

// engine returns the engine of this life, for functions that an earlier life left behind.
func (k *kit) engine() *workflow.Engine {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.e
}

// close ends this life as a program does: the worker stops, and the file is closed.
func (k *kit) close() {
	k.t.Helper()
	k.stop()
	<-k.gone
	require.NoError(k.t, k.q.Check(context.Background()))
	require.NoError(k.t, k.q.Close())
}

// restart closes the file and opens it with other flows, or with the same flows if none are
// given.
func (k *kit) restart(build string, flows ...workflow.Definition) {
	k.t.Helper()
	k.close()
	k.build = build
	k.again(flows...)
}

// crash ends this life as a kill does, and begins the next.
func (k *kit) crash(flows ...workflow.Definition) {
	k.t.Helper()
	k.refuse()
	k.over()
	k.again(flows...)
}

func (k *kit) again(flows ...workflow.Definition) {
	k.t.Helper()
	if len(flows) == 0 {
		flows = k.flows
	}
	k.open(flows...)
}

// now returns the time by the queue's clock.
func (k *kit) now() time.Time {
	if k.mortal && k.looks.Add(-1) == 0 {
		k.kill()
	}
	return time.Now().Add(time.Duration(k.offset.Load()))
}

// jump sets the clock of the queue forward or back without letting time pass.
func (k *kit) jump(by time.Duration) {
	k.t.Helper()
	k.offset.Add(int64(by))
	_, err := k.q.Extend(k.t.Context()) // makes the queue look at it
	require.NoError(k.t, err)
	k.settle()
}

// settle waits until everything waits.
func (k *kit) settle() { synctest.Wait() }

// pass lets time pass and settles.
func (k *kit) pass(d time.Duration) {
	<-time.After(d) // takes no time in the bubble
	synctest.Wait()
}

// linger lets so much time pass that the end of a step is in the file, which else waits for the next write of its run.
func (k *kit) linger() { k.pass(time.Second) }

// info returns the Info of a run.
func (k *kit) info(run pawl.ID) workflow.Info {
	k.t.Helper()
	info, err := k.e.Info(k.t.Context(), run)
	require.NoError(k.t, err)
	return info
}

// journal returns the journal of a run, one line for each entry: what it is, where it stands,
// and its value or error.
func (k *kit) journal(run pawl.ID) (lines []string) {
	k.t.Helper()
	for _, e := range k.entries(run) {
		line := fmt.Sprintf("%s %s %s", e.Kind, e.Step(), e.State)
		var v any
		switch {
		case e.Error != "":
			line += ": " + e.Error
		case e.Bytes > 0:
			require.NoError(k.t, driver.DecodePayload(e.Result, &v))
			line += fmt.Sprintf(": %v", v)
		}
		lines = append(lines, line)
	}
	return lines
}

func (k *kit) entries(run pawl.ID) []workflow.Entry {
	k.t.Helper()
	entries, err := k.e.Journal(k.t.Context(), run, true)
	require.NoError(k.t, err)
	return entries
}

// start starts a run.
func start[In, Out any](k *kit, f *workflow.Flow[In, Out], id string, in In) *workflow.Handle[Out] {
	k.t.Helper()
	h, err := f.Start(k.t.Context(), k.e, id, in)
	require.NoError(k.t, err)
	return h
}

// startAndSettle starts a run and settles.
func startAndSettle[In, Out any](k *kit, f *workflow.Flow[In, Out], id string, in In) *workflow.Handle[Out] {
	k.t.Helper()
	h := start(k, f, id, in)
	k.settle()
	return h
}

// find returns the run with an ID, for a life other than the one that started it.
func find[In, Out any](k *kit, f *workflow.Flow[In, Out], id string) *workflow.Handle[Out] {
	k.t.Helper()
	h, err := f.Handle(k.t.Context(), k.e, id)
	require.NoError(k.t, err)
	return h
}

// outcome waits for the end of a run, within a month: time passes meanwhile.
func outcome[Out any](k *kit, h *workflow.Handle[Out]) (Out, error) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), 30*24*time.Hour)
	defer cancel()
	out, err := h.Result(ctx)
	if ctx.Err() != nil {
		k.t.Fatalf("the run has not ended: %+v\n%s", k.info(h.Run()), strings.Join(k.journal(h.Run()), "\n"))
	}
	return out, err
}

// returns requires that a run ends with a result.
func returns[Out any](k *kit, h *workflow.Handle[Out], want Out) {
	k.t.Helper()
	out, err := outcome(k, h)
	require.NoError(k.t, err)
	require.Equal(k.t, want, out)
}

// succeeds requires that a run ends with any result.
func succeeds[Out any](k *kit, h *workflow.Handle[Out]) {
	k.t.Helper()
	_, err := outcome(k, h)
	require.NoError(k.t, err)
}

// act is a step that takes effect and returns v.
func act[T any](k *kit, r *workflow.Run, name string, v T) (T, error) {
	return workflow.Step(r, name, func(context.Context) (T, error) {
		k.effect(r)
		return v, nil
	})
}

// effect is a step's effect on the outside world: it records its key, for this life.
func (k *kit) effect(r *workflow.Run) {
	k.mu.Lock()
	dead := k.dead
	k.mu.Unlock()
	select {
	case <-dead:
		return
	default:
	}
	f, err := os.OpenFile(k.path+".effects", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(r.Key() + "\n")
		_ = f.Close()
	}
	if err != nil {
		panic(err)
	}
}

// keys returns the effects of all lives, in order.
func (k *kit) keys() []string {
	k.t.Helper()
	b, err := os.ReadFile(k.path + ".effects")
	if !os.IsNotExist(err) {
		require.NoError(k.t, err)
	}
	keys := strings.Split(string(b), "\n")
	return keys[:len(keys)-1]
}

// effects returns the keys without the run: the steps.
func (k *kit) effects() (steps []string) {
	k.t.Helper()
	for _, key := range k.keys() {
		steps = append(steps, key[strings.IndexByte(key, '/')+1:])
	}
	return steps
}

// sameKeys requires that a step that took effect several times used one key.
func (k *kit) sameKeys(step string, times int) {
	k.t.Helper()
	var keys []string
	for _, key := range k.keys() {
		if strings.HasSuffix(key, "/"+step) {
			keys = append(keys, key)
		}
	}
	require.Len(k.t, keys, times, step)
	require.Len(k.t, slices.Compact(keys), 1, step)
}

// called counts a call in this life, and returns the number of calls so far.
func (k *kit) called(name string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count[name]++
	return k.count[name]
}

// calls returns the number of calls counted by called.
func (k *kit) calls(name string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.count[name]
}

// numbers returns n items, each of which is its own key.
func numbers(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}
