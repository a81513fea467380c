package redis_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/engine"
	"github.com/gopawl/pawl/redis"
)

// Rule: Open says what is wrong with the options and the place, without the password.
func TestOpenRefuses(t *testing.T) {
	for field, o := range map[string]redis.Options{
		"Name":       {Name: "a b"},
		"Lease":      {Lease: time.Millisecond},
		"MaxCrashes": {MaxCrashes: -2},
		"MaxPayload": {MaxPayload: -1},
		"Poll":       {Poll: time.Millisecond},
		"Timeout":    {Timeout: time.Millisecond},
	} {
		_, err := redis.Open(t.Context(), "redis://127.0.0.1:1", &o)
		var invalid *pawl.InvalidError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, field, invalid.Field)
	}
	_, err := redis.Open(t.Context(), "postgres://app:secret@db", nil)
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.NotContains(t, err.Error(), "secret")
	_, err = redis.Open(t.Context(), "redis://app:secret@127.0.0.1:1", nil)
	require.ErrorIs(t, err, redis.ErrUnavailable)
	require.NotContains(t, err.Error(), "secret")
}

// Rule: a server that would evict jobs is refused. A server that does not sync each write is accepted, the
// queue lacks Synced then, and says so in its log.
func TestDurabilityIsChecked(t *testing.T) {
	url(t)
	for _, test := range []struct {
		args   []string
		synced bool
	}{
		{[]string{"--appendonly", "no"}, false},
		{[]string{"--appendonly", "yes", "--appendfsync", "everysec"}, false},
		{[]string{"--appendonly", "yes", "--appendfsync", "always"}, true},
	} {
		s, err := startServer(t.TempDir(), test.args...)
		require.NoError(t, err)
		log := new(lines)
		q := open(t, s.url, redis.Options{Logger: log})
		err = pawl.Require(q, pawl.Synced)
		require.Equal(t, test.synced, err == nil)
		require.Equal(t, !test.synced, errors.Is(err, pawl.ErrUnsupported))
		require.Equal(t, !test.synced, log.warned)
		require.NoError(t, connect(t, s.url).ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
		_, err = redis.Open(t.Context(), s.url, nil)
		require.ErrorIs(t, err, redis.ErrEvicts)
		require.ErrorContains(t, err, "allkeys-lru")
		require.NoError(t, q.Close())
		s.Stop()
	}
}

// lines is a logger that notes warnings.
type lines struct {
	hclog.Logger
	warned bool
}

func (*lines) Debug(string, ...any)  {}
func (*lines) Info(string, ...any)   {}
func (l *lines) Warn(string, ...any) { l.warned = true }
func (*lines) Error(string, ...any)  {}

// Rule: a server whose memory is full refuses jobs with ErrMemory, and stores nothing. It still runs those
// that it has, also for a process that opens the queue then: jobs are fetched, their leases are extended and
// settled, and operators act on them.
func TestMemoryIsFull(t *testing.T) {
	url(t)
	s, err := startServer(t.TempDir())
	require.NoError(t, err)
	defer s.Stop()
	q := open(t, s.url, redis.Options{Name: "full"})
	id := signed(t, q)
	require.NoError(t, connect(t, s.url).ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err = redis.Open(t.Context(), s.url, &redis.Options{Name: "new"})
	require.ErrorIs(t, err, redis.ErrMemory)
	q = open(t, s.url, redis.Options{Name: "full"})
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, redis.ErrMemory)
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", UniqueKey: "u"})
	require.ErrorIs(t, err, redis.ErrMemory)
	require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q))

	l := fetch(t, q)
	require.Equal(t, id, l.ID)
	lost, err := q.Extend(t.Context(), l)
	require.NoError(t, err)
	require.Empty(t, lost)
	require.NoError(t, q.Settle(t.Context(), l.Nack(0, errBoom)))
	require.NoError(t, q.Settle(t.Context(), fetch(t, q).Abandon(pawl.ReasonPermanent, errBoom)))
	require.NoError(t, q.Retry(t.Context(), id, false))
	require.NoError(t, q.Settle(t.Context(), fetch(t, q).Ack()))
	require.Equal(t, pawl.Counts{}, countsOf(t, q))
}

// Rule: on a server whose memory is full, delayed jobs become ready at their time, and leases expire.
func TestUpkeepInFullMemory(t *testing.T) {
	url(t)
	s, err := startServer(t.TempDir())
	require.NoError(t, err)
	defer s.Stop()
	start := time.Now()
	var passed atomic.Int64
	now := func() time.Time { return start.Add(time.Duration(passed.Load())) }
	q := open(t, s.url, redis.Options{Name: "full", Now: now, Lease: time.Second, Poll: redis.NoPoll})
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Delay: time.Hour})
	require.NoError(t, err)
	require.NoError(t, connect(t, s.url).ConfigSet(t.Context(), "maxmemory", "1").Err())
	passed.Store(int64(2 * time.Hour))
	first := fetch(t, q)
	second := fetch(t, q) // waits for the end of the lease
	require.Equal(t, first.ID, second.ID)
	require.Equal(t, 1, second.Crashes)
}

// Rule: on a server whose memory is full, calls that store no jobs succeed beside those that are refused, and a
// fetch that waits goes on waiting.
func TestCallsBesideRefusedJobs(t *testing.T) {
	url(t)
	s, err := startServer(t.TempDir())
	require.NoError(t, err)
	defer s.Stop()
	q := open(t, s.url, redis.Options{Name: "full", Lease: time.Hour})
	for range 50 {
		signed(t, q)
	}
	unique := &pawl.Envelope{Kind: "other", UniqueKey: "u"}
	holder, err := q.Enqueue(t.Context(), unique)
	require.NoError(t, err)
	leases, err := q.Fetch(t.Context(), pawl.Request{Kinds: []string{"k"}, Max: 50})
	require.NoError(t, err)
	got := make(chan *pawl.Lease)
	go func() {
		defer close(got)
		got <- fetch(t, q)
	}()
	require.NoError(t, connect(t, s.url).ConfigSet(t.Context(), "maxmemory", "1").Err())

	var producers sync.WaitGroup
	stop := make(chan struct{})
	for range 8 {
		e := &pawl.Envelope{Kind: "k"}
		producers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, err := q.Enqueue(t.Context(), e)
				assert.ErrorIs(t, err, redis.ErrMemory)
			}
		})
	}
	for _, l := range leases {
		assert.NoError(t, q.Settle(t.Context(), l.Ack()))
		done, err := q.Enqueue(t.Context(), unique) // stores nothing
		assert.NoError(t, err)
		assert.Equal(t, []pawl.Enqueued{{ID: holder[0].ID, Existing: true}}, done)
	}
	close(stop)
	producers.Wait()
	require.NoError(t, connect(t, s.url).ConfigSet(t.Context(), "maxmemory", "0").Err())
	id := signed(t, q)
	l := <-got
	require.NotNil(t, l)
	require.Equal(t, id, l.ID)
}

// Rule: queues of different names on one server share nothing.
func TestNamesAreApart(t *testing.T) {
	q, other := open(t, url(t), redis.Options{}), open(t, url(t), redis.Options{})
	signed(t, q)
	none(t, other)
	fetch(t, q)
}

// Rule: a process that waits learns of a job, and of a cancelled lease, immediately. It does not poll.
func TestBell(t *testing.T) {
	name := newName()
	q, other := open(t, url(t), redis.Options{Name: name, Poll: time.Hour}), open(t, url(t), redis.Options{Name: name, Poll: time.Hour})
	got := make(chan *pawl.Lease)
	go func() { got <- fetch(t, other) }()
	id := signed(t, q)
	l := <-got
	require.Equal(t, id, l.ID)
	fired := make(chan struct{})
	l.Cancelled.OnFire(func() { close(fired) })
	require.NoError(t, q.Cancel(t.Context(), id))
	<-fired
}

// Rule: two processes that have different wall clocks agree when a job is due, because they use the clock of
// the server. This process has no other.
func TestClockOfTheServer(t *testing.T) {
	q := open(t, url(t), redis.Options{})
	server, err := connect(t, url(t)).Time(t.Context()).Result()
	require.NoError(t, err)
	require.WithinDuration(t, server, q.Now(), time.Minute)
}

// Rule: the URLs redis://, rediss:// and unix:// name the queue; a program that imports the package opens
// it by engine.Open.
func TestEngine(t *testing.T) {
	_, err := engine.Open(context.Background(), "redis://127.0.0.1:1")
	require.ErrorIs(t, err, redis.ErrUnavailable)
	require.Subset(t, engine.Schemes(), []string{"redis", "rediss"})
}

// Rule: workflows need an engine that stores their rows. This one has none, so it is no store of workflows.
func TestNoWorkflows(t *testing.T) {
	_, can := any(new(redis.Queue)).(interface {
		Mutate(context.Context, any, int) error
	})
	require.False(t, can)
}

// Rule: a job whose record is damaged is dead as corrupt, and does not delay the others.
func TestDamagedRecord(t *testing.T) {
	name := newName()
	q := open(t, url(t), redis.Options{Name: name})
	id := signed(t, q)
	require.NoError(t, connect(t, url(t)).HSet(t.Context(), "{pawl:"+name+"}:b", string(id[:]), "rubbish").Err())
	second := signed(t, q)
	require.Equal(t, second, fetch(t, q).ID)
	require.Eventually(t, func() bool {
		stats, err := q.Stats(t.Context())
		return err == nil && stats.Queues[0].Dead == 1
	}, time.Minute, time.Millisecond)
	_, err := q.Job(t.Context(), id)
	require.ErrorIs(t, err, pawl.ErrCorrupt)
	require.NoError(t, q.Delete(t.Context(), id))
}

// Rule: a job whose row is damaged or missing is not run, and delays no other, in whatever state it is. Its ID stays
// taken while its row is there, and a read of the job returns ErrCorrupt.
func TestDamagedRow(t *testing.T) {
	start := time.Now()
	for name, damage := range map[string]func(row string) string{
		"tail": func(row string) string {
			b, tail := []byte(row), 50
			if b[0] == 'l' {
				tail = 100
			}
			b[tail] ^= 0x40
			return string(b)
		},
		"too short": func(row string) string { return row[:20] },
		"missing":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			var passed atomic.Int64
			now := func() time.Time { return start.Add(time.Duration(passed.Load())) }
			o := redis.Options{Name: newName(), Now: now, Lease: time.Second, Poll: redis.NoPoll}
			q := open(t, url(t), o)
			jobs := []*pawl.Envelope{
				{Kind: "leased", IdempotencyKey: "l"}, {Kind: "leased"}, {Kind: "k"}, {Kind: "k", IdempotencyKey: "r"},
				{Kind: "k", Delay: time.Hour}, {Kind: "k", Deadline: start.Add(time.Hour)}, {Kind: "completed", Retain: time.Hour},
			}
			done, err := q.Enqueue(t.Context(), jobs...)
			require.NoError(t, err)
			leases, err := q.Fetch(t.Context(), pawl.Request{Kinds: []string{"leased"}, Max: 2})
			require.NoError(t, err)
			patient := open(t, url(t), redis.Options{Name: o.Name, Now: now, Lease: time.Hour, Poll: redis.NoPoll})
			completed, err := patient.Fetch(t.Context(), pawl.Request{Kinds: []string{"completed"}, Max: 1})
			require.NoError(t, err)
			require.NoError(t, patient.Settle(t.Context(), completed[0].Ack()))
			server, key := connect(t, url(t)), "{pawl:"+o.Name+"}:m"
			for _, d := range done {
				if damage == nil {
					require.NoError(t, server.HDel(t.Context(), key, string(d.ID[:])).Err())
					continue
				}
				row, err := server.HGet(t.Context(), key, string(d.ID[:])).Result()
				require.NoError(t, err)
				require.NoError(t, server.HSet(t.Context(), key, string(d.ID[:]), damage(row)).Err())
			}
			require.ErrorIs(t, q.Settle(t.Context(), leases[0].Ack(), leases[1].Nack(0, errBoom)), pawl.ErrLeaseLost)
			passed.Store(int64(3 * time.Hour))
			id := signed(t, q, func(e *pawl.Envelope) { e.Priority = -1 }) // behind all others
			require.Equal(t, id, fetch(t, q).ID)
			for _, index := range []string{"d", "x", "c"} {
				require.Zero(t, server.Exists(t.Context(), "{pawl:"+o.Name+"}:"+index).Val(), index)
			}
			if damage != nil {
				_, err = q.Job(t.Context(), done[0].ID)
				require.ErrorIs(t, err, pawl.ErrCorrupt)
				_, err = q.Enqueue(t.Context(), &pawl.Envelope{ID: done[0].ID, Kind: "k"})
				require.ErrorIs(t, err, pawl.ErrConflict)
			}
			second := fetch(t, q) // waits for the end of the leases
			require.Equal(t, id, second.ID)
		})
	}
}

// Rule: a job is never fetched past its deadline, even if more jobs are late than one run of the script ends.
func TestManyAreLate(t *testing.T) {
	start := time.Now()
	var passed atomic.Int64
	q := open(t, url(t), redis.Options{Now: func() time.Time { return start.Add(time.Duration(passed.Load())) }, Poll: redis.NoPoll})
	jobs := make([]*pawl.Envelope, 2500)
	for i := range jobs {
		jobs[i] = &pawl.Envelope{Kind: "k", Deadline: start.Add(time.Hour)}
	}
	_, err := q.Enqueue(t.Context(), jobs...)
	require.NoError(t, err)
	passed.Store(int64(2 * time.Hour))
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 500, Wait: pawl.WaitNot})
	require.ErrorIs(t, err, pawl.ErrEmpty)
	require.Empty(t, leases)
	require.Equal(t, pawl.Counts{Dead: 2500}, countsOf(t, q))
}
