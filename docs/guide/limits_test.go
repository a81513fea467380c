package guide

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

type SyncArgs struct{ Folder string }

var Sync = pawl.Define[SyncArgs]("sync")

// limit enqueues a job of a tenant to a queue with limits.
func limit(ctx context.Context, path string) error {
	q, err := bolt.Open(path, &bolt.Options{Limits: map[string]pawl.Limits{
		"sync": {Running: 20, RunningPerKey: 3},
	}})
	if err != nil {
		return err
	}
	defer q.Close()
	if err := pawl.Require(q, pawl.LimitKeys); err != nil {
		return err // another engine may have no limits
	}
	_, err = Sync.Enqueue(ctx, q, SyncArgs{Folder: "/inbox"}, pawl.OnQueue("sync"), pawl.Key("tenant/42"))
	return err
}

var rates = pawl.Limits{
	Rate:       pawl.Rate{Starts: 1000, Per: time.Minute},
	RatePerKey: pawl.Rate{Starts: 100, Per: time.Minute, Burst: 20},
}

type PromptArgs struct{ Tokens int }

var Prompt = pawl.Define[PromptArgs]("prompt")

// tokens are units of 1000 tokens of a model that allows 100 000 a minute.
var tokens = pawl.Limits{RatePerKey: pawl.Rate{Starts: 100, Per: time.Minute, MaxCost: 8}}

func ask(ctx context.Context, q pawl.Enqueuer, account string, p PromptArgs) error {
	_, err := Prompt.Enqueue(ctx, q, p, pawl.OnQueue("model"), pawl.Key(account), pawl.Cost(1+p.Tokens/1000))
	return err
}

// prompt returns how long the server wants a pause, 0 for not at all.
func prompt(_ context.Context, p PromptArgs) (pause time.Duration, err error) {
	if p.Tokens > 1000 {
		return time.Minute, nil
	}
	return 0, nil
}

func call(ctx context.Context, job *pawl.Job[PromptArgs]) error {
	pause, err := prompt(ctx, job.Args)
	if pause > 0 { // the server answered 429, with Retry-After
		return pawl.Throttle(pause, pawl.ThisKey)
	}
	return err
}

// Rule: the key of a prompt that was refused rests, and that of another account does not.
func TestThrottledPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(&memory.Options{Limits: map[string]pawl.Limits{"model": tokens}})
		defer q.Close()
		require.NoError(t, ask(t.Context(), q, "a", PromptArgs{Tokens: 2000}))
		require.NoError(t, ask(t.Context(), q, "b", PromptArgs{Tokens: 10}))
		w := worker.New(q, &worker.Options{Queues: []string{"model"}, Logger: hclog.NewNullLogger()})
		worker.Handle(w, Prompt, call)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		key, err := q.Key(t.Context(), "model", "a")
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(time.Minute), key.Rests, time.Second)
		other, err := q.Key(t.Context(), "model", "b")
		require.NoError(t, err)
		require.Zero(t, other.Rests)
		require.Zero(t, other.Ready+other.Running, "its prompt is done")
		stop()
		require.NoError(t, <-ended)
	})
}

func fair(path string) (*bolt.Queue, error) {
	q, err := bolt.Open(path, &bolt.Options{Limits: map[string]pawl.Limits{"crawl": {Fair: true, RunningPerKey: 2}}})
	if err != nil {
		return nil, err
	}
	return q, pawl.Require(q, pawl.LimitKeys|pawl.FairKeys)
}

type Tenant struct {
	Name   string
	Weight int
}

type CrawlArgs struct{ URL string }

var Crawl = pawl.Define[CrawlArgs]("crawl")

func crawl(ctx context.Context, q pawl.Enqueuer, tenant Tenant, args CrawlArgs) error {
	_, err := Crawl.Enqueue(ctx, q, args, pawl.OnQueue("crawl"), pawl.Key(tenant.Name), pawl.Weight(tenant.Weight))
	return err
}

// Rule: a tenant of weight 3 has three turns for each of one of weight 1.
func TestCrawlByWeight(t *testing.T) {
	q := memory.New(&memory.Options{Limits: map[string]pawl.Limits{"crawl": {Fair: true}}})
	defer q.Close()
	for _, tenant := range []Tenant{{"small", 1}, {"large", 3}} {
		for range 8 {
			require.NoError(t, crawl(t.Context(), q, tenant, CrawlArgs{}))
		}
	}
	leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"crawl"}, Kinds: []string{"crawl"}, Max: 8, Wait: pawl.WaitNot})
	require.NoError(t, err)
	large := 0
	for _, l := range leases {
		if l.Key == "large" {
			large++
		}
	}
	require.Equal(t, 6, large)
}

// gpu is what the queues that need the graphics card share.
var gpu = pawl.Pool{Name: "gpu", Running: 2}

func pooled(path string) (*bolt.Queue, error) {
	q, err := bolt.Open(path, &bolt.Options{Limits: map[string]pawl.Limits{
		"train":  {Pool: gpu, Running: 1},
		"render": {Pool: gpu},
	}})
	if err != nil {
		return nil, err
	}
	return q, pawl.Require(q, pawl.LimitKeys|pawl.SharedPools)
}

// Rule: the queues of the page share a pool of two, of which one has one place at most.
func TestPoolOfTheGuide(t *testing.T) {
	q, err := pooled(filepath.Join(t.TempDir(), "jobs.db"))
	require.NoError(t, err)
	defer q.Close()
	for range 3 {
		for _, queue := range []string{"train", "render"} {
			_, err := Sync.Enqueue(t.Context(), q, SyncArgs{}, pawl.OnQueue(queue))
			require.NoError(t, err)
		}
	}
	fetch := func(queues ...string) (n int) {
		leases, err := q.Fetch(t.Context(), pawl.Request{Queues: queues, Kinds: []string{"sync"}, Max: 9, Wait: pawl.WaitNot})
		if err != nil {
			require.ErrorIs(t, err, pawl.ErrEmpty)
		}
		return len(leases)
	}
	require.Equal(t, 1, fetch("train"))
	require.Equal(t, 1, fetch("train", "render"))
	require.Zero(t, fetch("train", "render"))
}

func bounded(path string) (*bolt.Queue, error) {
	q, err := bolt.Open(path, &bolt.Options{Limits: map[string]pawl.Limits{
		"sync": {MaxWaiting: 1_000_000, MaxWaitingPerKey: 10_000},
	}})
	if err != nil {
		return nil, err
	}
	return q, pawl.Require(q, pawl.LimitKeys|pawl.BoundedQueues)
}

func accept(ctx context.Context, q pawl.Queue, tenant string, args SyncArgs) error {
	_, err := Sync.Enqueue(ctx, q, args, pawl.OnQueue("sync"), pawl.Key(tenant))
	if errors.Is(err, pawl.ErrQueueFull) {
		return errBusy // let the caller come back later
	}
	return err
}

func slow(ctx context.Context, q *bolt.Queue) error {
	return q.SetLimits(ctx, "sync", &pawl.Limits{Running: 5, RunningPerKey: 3})
}

// Rule: the limits of an operator stay in force when the program declares its own again.
func TestSlow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	q, err := bolt.Open(path, nil)
	require.NoError(t, err)
	require.NoError(t, slow(t.Context(), q))
	require.NoError(t, q.Close())
	require.NoError(t, limit(t.Context(), path))
	q, err = bolt.Open(path, nil)
	require.NoError(t, err)
	defer q.Close()
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, pawl.Limits{Running: 5, RunningPerKey: 3}, stats.Queues[0].Limits)
	require.Equal(t, &pawl.Limits{Running: 20, RunningPerKey: 3}, stats.Queues[0].Declared)
}

var errBusy = errors.New("busy")

// Rule: an enqueue for a tenant with as many waiting jobs as its bound is refused, and one for another is not.
func TestBounded(t *testing.T) {
	q, err := bounded(filepath.Join(t.TempDir(), "jobs.db"))
	require.NoError(t, err)
	defer q.Close()
	batch := make([]*pawl.Envelope, pawl.MaxBatchJobs)
	for i := range batch {
		batch[i] = &pawl.Envelope{Kind: "sync", Queue: "sync", Key: "a"}
	}
	_, err = q.Enqueue(t.Context(), batch...)
	require.NoError(t, err)
	require.ErrorIs(t, accept(t.Context(), q, "a", SyncArgs{}), errBusy)
	require.NoError(t, accept(t.Context(), q, "b", SyncArgs{}))
}

// Rule: the job of a handler that returns the error of a full queue is retried.
func TestHandlerMeetsAFullQueue(t *testing.T) {
	q := memory.New(&memory.Options{Limits: map[string]pawl.Limits{"sync": {MaxWaiting: 1}}})
	defer q.Close()
	require.NoError(t, accept(t.Context(), q, "a", SyncArgs{}))
	fill := pawl.Define[SyncArgs]("fill", pawl.MaxRetries(1))
	_, err := fill.Enqueue(t.Context(), q, SyncArgs{})
	require.NoError(t, err)
	w := worker.New(q, &worker.Options{Policy: pawl.None(), Logger: hclog.NewNullLogger()})
	var errs []error
	worker.Handle(w, fill, func(ctx context.Context, job *pawl.Job[SyncArgs]) error {
		errs = append(errs, accept(ctx, q, "a", SyncArgs{}))
		if job.Attempt == 2 {
			return nil
		}
		return errs[0]
	})
	require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	require.Equal(t, []error{errBusy, errBusy}, errs)
}

type UploadArgs struct{ File string }

func upload(context.Context, *pawl.Job[UploadArgs]) error { return nil }

// answers says that the server answers.
func answers(context.Context) bool { return true }

var Upload = pawl.Define[UploadArgs]("upload", pawl.Needs("network"))

func uploads(ctx context.Context, q *bolt.Queue) error {
	network := new(worker.Gate)
	w := worker.New(q, &worker.Options{Gates: map[string]*worker.Gate{"network": network}})
	worker.Handle(w, Upload, upload)
	go probe(ctx, network)
	return w.Run(ctx)
}

// probe opens the gate while the server answers.
func probe(ctx context.Context, network *worker.Gate) {
	for ctx.Err() == nil {
		if answers(ctx) {
			network.Open()
		} else {
			network.Close()
		}
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
		}
	}
}

// Rule: a job that needs the network runs once the probe of the guide has opened its gate.
func TestNeeds(t *testing.T) {
	q, err := bolt.Open(filepath.Join(t.TempDir(), "jobs.db"), nil)
	require.NoError(t, err)
	defer q.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	id, err := Upload.Enqueue(ctx, q, UploadArgs{File: "a"}, pawl.Retain(time.Hour))
	require.NoError(t, err)
	go func() { ended <- uploads(ctx, q) }()
	_, err = q.Await(ctx, id.ID)
	require.NoError(t, err)
	stop()
	require.NoError(t, <-ended)
}

// Rule: the rates of the guide are valid.
func TestRates(t *testing.T) { require.NoError(t, rates.Validate()) }

// explain prints what keeps a job from running.
func explain(ctx context.Context, q *bolt.Queue, id pawl.ID) error {
	obstacles, err := q.Why(ctx, id)
	if err != nil {
		return err
	}
	for _, o := range obstacles {
		fmt.Println(o) // key "tenant/42" has 3 of 3 jobs running: 01902a3b-…
	}
	return nil
}

// want returns how many workers the queues of a program could use.
func want(stats pawl.Stats) (wanted int) {
	for _, row := range stats.Queues {
		wanted += row.Ready - row.Blocked
	}
	return wanted
}

// Rule: the file keeps the limits that a program declares, until another declares none.
func TestLimits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	require.NoError(t, limit(t.Context(), path))
	removed := &bolt.Options{Limits: map[string]pawl.Limits{"sync": {}}}
	for _, step := range []struct {
		o     *bolt.Options
		limit int
	}{{nil, 3}, {removed, 0}} {
		q, err := bolt.Open(path, step.o)
		require.NoError(t, err)
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, explain(t.Context(), q, pawl.ID{1}), pawl.ErrNotFound)
		require.NoError(t, q.Close())
		require.Equal(t, step.limit, stats.Queues[0].Limits.RunningPerKey)
		require.Equal(t, 1, want(stats))
	}
}

// Rule: keys take turns in a queue that is declared fair.
func TestFair(t *testing.T) {
	q, err := fair(filepath.Join(t.TempDir(), "jobs.db"))
	require.NoError(t, err)
	defer q.Close()
	for _, key := range []string{"a", "a", "b"} {
		_, err := Sync.Enqueue(t.Context(), q, SyncArgs{}, pawl.OnQueue("crawl"), pawl.Key(key))
		require.NoError(t, err)
	}
	leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"crawl"}, Max: 2})
	require.NoError(t, err)
	require.Equal(t, "b", leases[1].Key)
}
