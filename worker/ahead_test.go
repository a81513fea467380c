package worker

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

const mebibyte = 1 << 20

var sized = pawl.Define[string]("sized")

// sizedLease is the lease of a job of kind sized whose payload has so many bytes.
func sizedLease(t *testing.T, bytes int) *pawl.Lease {
	t.Helper()
	e, err := sized.Envelope(strings.Repeat("x", bytes))
	require.NoError(t, err)
	e, err = sized.Envelope(strings.Repeat("x", 2*bytes-len(e.Payload))) // without what the encoding adds
	require.NoError(t, err)
	require.Len(t, e.Payload, bytes)
	e.ID = pawl.NewID(time.Now())
	return &pawl.Lease{Envelope: e, Length: time.Hour, Expires: time.Now().Add(time.Hour), Cancelled: new(driver.Cancellation)}
}

// settler is a queue that takes a second for every ack and notes what was settled.
type settler struct {
	pawl.Queue // nil: only the methods below are called
	mu         sync.Mutex
	settled    map[string]int // by the verb
}

func (q *settler) note(verb string, n int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settled[verb] += n
	return nil
}

func (q *settler) Settle(_ context.Context, settlements ...pawl.Settlement) error {
	for _, s := range settlements {
		if s.Outcome == pawl.OutcomeAck {
			<-time.After(time.Second)
			break
		}
	}
	for _, s := range settlements {
		_ = q.note(string(s.Outcome), 1)
	}
	return nil
}

// aheadOf is a session with a single slot. A first job runs in it until finish is called,
// and jobs of these sizes wait for it.
type aheadOf struct {
	*session
	queue   *settler
	stop    context.CancelFunc
	finish  func()
	waits   []*pawl.Lease
	started []int // sizes of the payloads, in the order in which they started
}

func newAheadOf(t *testing.T, sizes ...int) *aheadOf {
	t.Helper()
	done := make(chan struct{})
	a := &aheadOf{queue: &settler{settled: make(map[string]int)}, finish: sync.OnceFunc(func() { close(done) })}
	t.Cleanup(a.finish) // where the test fails
	w := New(a.queue, &Options{Concurrency: 1, Logger: hclog.NewNullLogger()})
	Handle(w, sized, func(_ context.Context, job *pawl.Job[string]) error {
		a.started = append(a.started, len(job.Lease.Payload))
		<-done
		return nil
	})
	ctx, stop := context.WithCancel(t.Context())
	a.stop = stop
	a.session = newSession(ctx, w)
	t.Cleanup(func() {
		stop()
		a.giveBackTimer.Stop()
		a.stopHandling(ErrStopping)
		a.stopSettling()
	})
	a.deliver([]*pawl.Lease{sizedLease(t, 100)})
	a.require(t, 0)
	for _, size := range sizes {
		a.waits = append(a.waits, sizedLease(t, size))
	}
	a.deliver(a.waits)
	synctest.Wait()
	return a
}

// require requires that so many bytes wait, by the count and by the jobs.
func (a *aheadOf) require(t *testing.T, want int) {
	t.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	sum := 0
	for _, waiting := range a.waiting {
		sum += len(waiting.Payload)
	}
	assert.Equal(t, want, sum, "bytes that wait")
	require.Equal(t, want, a.aheadBytes, "bytes that are counted")
}

// attemptOf is the attempt of one of the jobs.
func (a *aheadOf) attemptOf(l *pawl.Lease) *attempt {
	for _, one := range a.all() {
		if one.Lease == l {
			return one
		}
	}
	return nil
}

// Rule: the bytes of a job count only as long as it waits, whatever ends its wait.
func TestBytesOfWaitingJobs(t *testing.T) {
	for _, test := range []struct {
		rule    string
		run     func(t *testing.T, a *aheadOf)
		settled map[string]int
	}{
		{"they start", func(t *testing.T, a *aheadOf) {
			a.finish()
			a.require(t, 0)
			require.Equal(t, []int{100, 1000, 200, 30}, a.started)
		}, map[string]int{"ack": 4}},
		{"they go back, since no slot comes free", func(t *testing.T, a *aheadOf) {
			<-time.After(minWait)
			a.require(t, 0)
			a.finish()
		}, map[string]int{"ack": 1, "release": 3}},
		{"their leases are lost, one after the other", func(t *testing.T, a *aheadOf) {
			for i, left := range []int{1030, 30, 0} {
				a.lost(a.attemptOf(a.waits[[]int{1, 0, 2}[i]]))
				a.require(t, left)
			}
			a.finish()
		}, map[string]int{"ack": 1}},
		{"a lease is lost twice, or that of a job that runs", func(t *testing.T, a *aheadOf) {
			lost := a.attemptOf(a.waits[0])
			a.lost(lost)
			a.lost(lost)
			for _, running := range a.all() {
				if len(running.Payload) == 100 {
					a.lost(running)
				}
			}
			a.require(t, 230)
			a.finish()
			a.require(t, 0)
		}, map[string]int{"ack": 3}},
		{"they are cancelled, and their turn comes", func(t *testing.T, a *aheadOf) {
			for _, l := range a.waits {
				l.Cancelled.Fire()
			}
			a.require(t, 1230)
			a.finish()
			a.require(t, 0)
		}, map[string]int{"ack": 1, "snooze": 3}},
		{"the worker stops", func(t *testing.T, a *aheadOf) {
			a.stop()
			a.releaseWaiting()
			a.require(t, 0)
			a.finish()
		}, map[string]int{"ack": 1, "release": 3}},
		{"the worker stops, and what it fetched comes behind that", func(t *testing.T, a *aheadOf) {
			a.stop()
			a.deliver([]*pawl.Lease{sizedLease(t, 4000)})
			a.require(t, 5230)
			a.releaseWaiting()
			a.require(t, 0)
			a.finish()
		}, map[string]int{"ack": 1, "release": 4}},
		{"others that never wait come between", func(t *testing.T, a *aheadOf) {
			unknown := sizedLease(t, 500)
			unknown.Kind = "unknown"
			a.deliver([]*pawl.Lease{unknown})
			a.require(t, 1230)
			a.finish()
			a.require(t, 0)
		}, map[string]int{"ack": 4, "snooze": 1}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAheadOf(t, 1000, 200, 30)
				a.require(t, 1230)
				test.run(t, a)
				a.open.Wait()
				a.require(t, 0)
				require.Equal(t, test.settled, a.queue.settled)
			})
		})
	}
}

// Rule: while slots are busy and the payloads of what waits have maxAheadBytes, nothing is
// wanted; but an idle slot still wants a job.
func TestWantedByBytes(t *testing.T) {
	for _, test := range []struct {
		rule           string
		taken, waiting int
		bytes, want    int
	}{
		{"nothing waits", 4, 0, 0, 1000},
		{"few bytes wait", 4, 10, maxAheadBytes - 1, 990},
		{"as many as may", 4, 10, maxAheadBytes, 0},
		{"one large job waits", 4, 1, 2 * maxAheadBytes, 0},
		{"half of the jobs wait", 4, 500, 500, 500},
		{"more than half of them", 4, 501, 501, 0},
		{"an idle slot, and nothing waits", 3, 0, 0, 1001},
		{"idle slots beside what was counted wrongly", 0, 0, maxAheadBytes, 1004},
	} {
		t.Run(test.rule, func(t *testing.T) {
			w := New(&settler{}, &Options{Concurrency: 4, Logger: hclog.NewNullLogger()})
			s := &session{w: w, taken: test.taken, waiting: make([]*attempt, test.waiting), aheadBytes: test.bytes}
			s.pace = pace{handler: time.Millisecond, settle: 125 * time.Millisecond}
			require.Equal(t, 1000, s.pace.ahead(4))
			require.Equal(t, test.want, s.wanted())
			s.unsettled = maxUnsettled
			require.Zero(t, s.wanted())
		})
	}
}

// Rule: while a handler is at work a worker fetches large payloads ahead until those that
// wait have maxAheadBytes, and continues once some have started. It fetches small ones
// without such a limit.
func TestFetchesAheadByBytes(t *testing.T) {
	const jobs, portion = 60, 3 // jobs in all, and how many one fetch gives
	for _, test := range []struct {
		rule  string
		size  int
		least int // that wait at most
	}{
		{"large payloads", mebibyte, maxAheadBytes / mebibyte},
		{"small ones", 1000, jobs - 2},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var (
					mu      sync.Mutex
					fetched int
					begun   int
					most    int // that waited
				)
				one := sizedLease(t, test.size)
				q := &settler{settled: make(map[string]int)}
				fetch := func(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
					mu.Lock()
					n := min(r.Max, portion, jobs-fetched)
					fetched += n
					most = max(most, fetched-begun)
					mu.Unlock()
					if n == 0 {
						<-ctx.Done()
						return nil, pawl.ErrNotAccepted
					}
					leases := make([]*pawl.Lease, n)
					for i := range leases {
						e := *one.Envelope
						e.ID = pawl.NewID(time.Now())
						leases[i] = &pawl.Lease{Envelope: &e, Length: time.Hour, Expires: time.Now().Add(time.Hour), Cancelled: new(driver.Cancellation)}
					}
					return leases, nil
				}
				w := New(&fetching{q, fetch}, &Options{Concurrency: 1, Logger: hclog.NewNullLogger()})
				Handle(w, sized, func(context.Context, *pawl.Job[string]) error {
					mu.Lock()
					begun++
					n := begun
					mu.Unlock()
					switch n {
					case 1: // no time, and its ack takes a second: the worker fetches ahead then
					case 2:
						<-time.After(2 * time.Second)
					default:
						<-time.After(10 * time.Millisecond)
					}
					return nil
				})
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- w.Run(ctx) }()
				<-time.After(time.Minute)
				synctest.Wait()
				require.Equal(t, jobs, begun, "all come in the end")
				require.GreaterOrEqual(t, most, test.least)
				require.LessOrEqual(t, most, test.least+portion, "the last fetch brings some, and one has a slot and has not begun")
				stop()
				require.NoError(t, <-ended)
				require.Equal(t, map[string]int{"ack": jobs}, q.settled)
			})
		})
	}
}

// fetching is a settler that gives jobs.
type fetching struct {
	*settler
	fetch func(context.Context, pawl.Request) ([]*pawl.Lease, error)
}

func (q *fetching) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	return q.fetch(ctx, r)
}

func (q *fetching) Extend(context.Context, ...*pawl.Lease) ([]*pawl.Lease, error) { return nil, nil }
