package bolt

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// happened is a model of the throughput: what events say, by minute and queue.
type happened struct {
	mu     sync.Mutex
	counts map[int64]map[string]*driver.Totals
	last   int64 // the last minute with an event
}

func (h *happened) hear(e pawl.Event) {
	var c driver.Totals
	if c.Count(e.Type, 1); !c.Counted() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last = e.At.Unix() / 60; h.counts[h.last] == nil {
		h.counts[h.last] = make(map[string]*driver.Totals)
	}
	of := h.counts[h.last]
	if of[e.Job.Queue] == nil {
		of[e.Job.Queue] = new(driver.Totals)
	}
	of[e.Job.Queue].Add(c)
}

// in returns what happened to the jobs of a queue, or of all, in a period, before a minute.
func (h *happened) in(queue string, p driver.Period, step time.Duration, before int64) (sum driver.Totals) {
	for minute := p.At.Unix() / 60; minute < p.At.Add(step).Unix()/60 && minute < before; minute++ {
		for name, c := range h.counts[minute] {
			if queue == "" || name == queue {
				sum.Add(*c)
			}
		}
	}
	sum.Changes = 0
	return sum
}

// equal requires that reports of every length and queue are those of the model, before a minute.
func (h *happened) equal(t *testing.T, r *reader, queues []string, before int64) {
	t.Helper()
	for _, last := range []time.Duration{0, 17 * time.Minute, 24 * time.Hour, driver.ThroughputKept} {
		for _, queue := range append([]string{""}, queues...) {
			got, err := r.Throughput(t.Context(), driver.ThroughputQuery{Queue: queue, Last: last})
			require.NoError(t, err)
			require.Zero(t, got.Damaged)
			require.False(t, got.Periods[len(got.Periods)-1].At.After(r.now()))
			for _, p := range got.Periods {
				p.Changes = 0
				require.Equal(t, h.in(queue, p, got.Step, before), p.Totals, "queue %q, %s since %s", queue, got.Step, p.At)
			}
		}
	}
}

const noLimit = int64(1) << 40 // a minute after all others

// Rule: the counts of every minute and queue are those of the events, while the queue works, after restarts, and in the
// file that a clean close left. A copy of the file at any moment, as a kill leaves it, lacks no more than the last minute
// in which something happened.
func TestThroughputModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { throughputWalk(t, rand.New(rand.NewPCG(seed, 1)), seed%2 == 0) })
		})
	}
}

func throughputWalk(t *testing.T, r *rand.Rand, listens bool) {
	h := &happened{counts: make(map[int64]map[string]*driver.Totals)}
	path := filepath.Join(memoryFolder(t), "jobs.db")
	queues := []string{"a", "b", "c", "d"}
	opts := &Options{Lease: 24 * time.Hour}
	opts.OnEvent = h.hear
	if !listens { // the fast ways of a queue without a listener count, too
		opts.OnEvent = nil
	}
	q := openAt(t, path, opts)
	note := func(queue string, what pawl.EventType) {
		if !listens {
			h.hear(pawl.Event{Type: what, At: q.Now(), Job: &pawl.Envelope{Queue: queue}})
		}
	}
	for range 400 {
		queue := queues[r.IntN(len(queues))]
		switch r.IntN(8) {
		case 0, 1, 2:
			add(t, q, func(e *pawl.Envelope) { e.Queue = queue })
			note(queue, pawl.EventEnqueued)
		case 3, 4, 5:
			for _, l := range fetch(t, q, 3, queue) {
				s, what := l.Ack(), pawl.EventSucceeded
				switch r.IntN(3) {
				case 0:
					s, what = l.Nack(time.Duration(r.IntN(90))*time.Second, os.ErrInvalid), pawl.EventRetried
				case 1:
					s, what = l.Abandon(pawl.ReasonPermanent, os.ErrInvalid), pawl.EventDied
				}
				require.NoError(t, q.Settle(t.Context(), s))
				note(queue, what)
			}
		case 6:
			time.Sleep(time.Duration(r.IntN(2000)) * time.Second * time.Duration(1+r.IntN(4)*r.IntN(4)))
		case 7:
			throughputKilled(t, h, path, q.Now(), queues)
			if r.IntN(4) == 0 {
				require.NoError(t, q.Close())
				killed, err := OpenReader(path)
				require.NoError(t, err)
				killed.UseClock(q.Now)
				h.equal(t, &killed.reader, queues, noLimit)
				require.NoError(t, killed.Close())
				q = openAt(t, path, opts)
			}
		}
	}
	h.equal(t, &q.reader, queues, noLimit)
}

// throughputKilled looks at a copy of the file, as a kill leaves it.
func throughputKilled(t *testing.T, h *happened, path string, now time.Time, queues []string) {
	t.Helper()
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	copied := filepath.Join(filepath.Dir(path), "killed.db")
	require.NoError(t, os.WriteFile(copied, file, 0o600))
	r, err := OpenReader(copied)
	require.NoError(t, err)
	defer r.Close()
	r.UseClock(func() time.Time { return now })
	got, err := r.Throughput(t.Context(), driver.ThroughputQuery{Last: driver.ThroughputKept})
	require.NoError(t, err)
	// Of the last minute it may have a part, but not of a minute before.
	var before, all driver.Totals
	for _, p := range got.Periods {
		before.Add(h.in("", p, got.Step, h.last))
		all.Add(h.in("", p, got.Step, noLimit))
	}
	total := got.Total()
	total.Changes = 0
	for i, n := range []int64{total.Enqueued, total.Succeeded, total.Retried, total.Died} {
		least := []int64{before.Enqueued, before.Succeeded, before.Retried, before.Died}[i]
		most := []int64{all.Enqueued, all.Succeeded, all.Retried, all.Died}[i]
		require.GreaterOrEqual(t, n, least)
		require.LessOrEqual(t, n, most)
	}
}

// Rule: an idle queue stores its counts once, with its first pass of a later minute, and then commits nothing.
func TestThroughputIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		commits := 0
		require.NoError(t, q.do(t.Context(), visit(func() {
			q.scheduler.commitTx = func(tx *bbolt.Tx) error { commits++; return tx.Commit() }
		})))
		add(t, q, nil)
		for range 30 {
			time.Sleep(20 * time.Second)
			require.Empty(t, fetch(t, q, 1, "empty"))
		}
		require.Equal(t, 2, commits)
	})
}

// Rule: a week of very many queues has a bounded number of rows and bytes, and every job is counted, those of the queues
// beyond the limit together. A clock that was set forward or back leaves no rows behind.
func TestThroughputBounds(t *testing.T) {
	db := openApp(t)
	require.NoError(t, openOver(t, db, nil).Close())
	const queues, hours = 150, 200
	var m driver.Meter
	begin := time.Date(2026, 11, 1, 0, 30, 0, 0, time.UTC)
	store := func(now time.Time) {
		tally := new(driver.Tally)
		for i := range queues {
			tally.Count(fmt.Sprintf("queue %d", i), pawl.EventEnqueued, 1)
		}
		m.Add(now, tally, false)
		updateApp(t, db, nil, func(tx *bbolt.Tx) { require.NoError(t, m.Store(&tables{tx: tx}, now, uint64(tx.ID()))) })
		m.Stored(true)
	}
	rows := func() (rows, bytes int) {
		require.NoError(t, db.View(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("pawl.throughput")).Bucket([]byte("counts")).ForEach(func(k, v []byte) error {
				rows, bytes = rows+1, bytes+len(k)+len(v)
				return nil
			})
		}))
		return rows, bytes
	}
	now := begin
	for range hours {
		store(now)
		now = now.Add(time.Hour)
	}
	now = now.Add(-time.Hour)
	n, bytes := rows()
	require.GreaterOrEqual(t, n, 168*100)
	require.LessOrEqual(t, n, 168*101)
	require.Less(t, bytes, 168*101*1600)
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		got, err := m.Read(&tables{tx: tx}, uint64(tx.ID()), now, driver.ThroughputQuery{Last: driver.ThroughputKept})
		require.NoError(t, err)
		require.EqualValues(t, 168*queues, got.Total().Enqueued)
		got, err = m.Read(&tables{tx: tx}, uint64(tx.ID()), now, driver.ThroughputQuery{Queue: "queue 7", Last: driver.ThroughputKept})
		require.NoError(t, err)
		require.LessOrEqual(t, got.Total().Enqueued, int64(168))
		return nil
	}))
	far := now.AddDate(1, 0, 0)
	for i := range 168 { // old rows go some at a time
		store(far.Add(time.Duration(i) * time.Hour))
	}
	n, _ = rows()
	require.LessOrEqual(t, n, 168*101)
	for i := range 168 {
		store(now.Add(time.Duration(i) * time.Hour))
	}
	n, _ = rows()
	require.LessOrEqual(t, n, 168*101)
}

// Rule: a build is marked when it first leases jobs after another did, so a program that only looks or enqueues leaves no
// mark. The number of marks is bounded, and a report has the one before its periods.
func TestBuildsAreMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(memoryFolder(t), "jobs.db")
		run := func(version, revision string, leases bool) {
			t.Helper()
			q := openAt(t, path, nil)
			q.scheduler.meter.Build = driver.Build{Version: version, Revision: revision}
			add(t, q, nil)
			if leases {
				require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
			} else {
				require.NoError(t, q.Delete(t.Context(), dead(t, q)))
			}
			require.NoError(t, q.Close())
		}
		builds := func() (names []string) {
			t.Helper()
			r, err := OpenReader(path)
			require.NoError(t, err)
			defer r.Close()
			r.UseClock(time.Now)
			got, err := r.Throughput(t.Context(), driver.ThroughputQuery{})
			require.NoError(t, err)
			for _, b := range got.Builds {
				names = append(names, b.Version+" "+b.Revision)
			}
			return names
		}
		run("v1", "aaa", true)
		run("jobctl", "", false)
		run("v1", "aaa", true)
		require.Equal(t, []string{"v1 aaa"}, builds())
		time.Sleep(time.Minute)
		run("v1", "bbb", true)
		time.Sleep(time.Minute)
		run(strings.Repeat("long", 100), "ccc", true)
		got := builds()
		require.Len(t, got, 3)
		require.Equal(t, "v1 bbb", got[1])
		require.Less(t, len(got[2]), 200)
		time.Sleep(2 * time.Hour)
		require.Len(t, builds(), 1, "the build that runs since before")
		for i := range 150 {
			time.Sleep(10 * time.Second)
			run("v"+strconv.Itoa(i), "", true)
		}
		got = builds()
		require.Len(t, got, 100)
		require.Equal(t, "v149 ", got[99])
	})
}

// dead cancels the only ready job and returns its ID.
func dead(t *testing.T, q *Queue) (id pawl.ID) {
	t.Helper()
	for e, err := range q.Jobs(t.Context(), pawl.Filter{State: pawl.Ready}) {
		require.NoError(t, err)
		id = e.ID
	}
	require.NoError(t, q.Cancel(t.Context(), id))
	return id
}

// Rule: damage in the counts stops no queue and no report. Check reports it.
func TestThroughputDamage(t *testing.T) {
	for name, damage := range map[string]func(b *bbolt.Bucket) error{
		"a row": func(root *bbolt.Bucket) error {
			b := root.Bucket([]byte("counts"))
			k, v := b.Cursor().Last()
			v = append([]byte{}, v...)
			v[1]++
			return b.Put(append([]byte{}, k...), v)
		},
		"a build": func(root *bbolt.Bucket) error {
			return root.Bucket([]byte("counts")).Put([]byte{'b', 7}, []byte("no build"))
		},
		"no table": func(root *bbolt.Bucket) error {
			if err := root.DeleteBucket([]byte("counts")); err != nil {
				return err
			}
			return root.Put([]byte("counts"), []byte("a row in its place"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := openApp(t)
				use := func(q *Queue) {
					add(t, q, nil)
					require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
				}
				q := openOver(t, db, nil)
				use(q)
				require.NoError(t, q.Close())
				updateApp(t, db, nil, func(tx *bbolt.Tx) { require.NoError(t, damage(tx.Bucket([]byte("pawl.throughput")))) })
				q = openOver(t, db, nil)
				if name != "no table" {
					require.ErrorIs(t, q.Check(t.Context()), pawl.ErrCorrupt)
				}
				for range 3 {
					time.Sleep(time.Hour)
					use(q)
					_, err := q.Throughput(t.Context(), driver.ThroughputQuery{})
					require.NoError(t, err)
				}
				got, err := q.Throughput(t.Context(), driver.ThroughputQuery{Last: 24 * time.Hour})
				require.NoError(t, err)
				if name == "no table" {
					require.Zero(t, got.Total().Enqueued)
				} else {
					require.Equal(t, 1, got.Damaged)
					require.GreaterOrEqual(t, got.Total().Enqueued, int64(3))
				}
				require.NoError(t, q.Close())
				updateApp(t, db, nil, func(tx *bbolt.Tx) { require.NoError(t, tx.DeleteBucket([]byte("pawl.throughput"))) })
			})
		})
	}
}

// panics is a writer over damaged pages.
type panics struct{ *tables }

func (panics) Put(*driver.Table, []byte, []byte) error { panic("page 7: invalid page type") }

// Rule: a store that fails because of damage is not tried again, and nothing more is counted.
func TestThroughputOnDamagedPages(t *testing.T) {
	db := openApp(t)
	require.NoError(t, openOver(t, db, nil).Close())
	var m driver.Meter
	now := time.Date(2026, 11, 1, 0, 30, 0, 0, time.UTC)
	tally := new(driver.Tally)
	tally.Count("q", pawl.EventEnqueued, 1)
	m.Add(now, tally, true)
	require.False(t, m.Due(now))
	now = now.Add(time.Minute)
	require.True(t, m.Due(now))
	updateApp(t, db, os.ErrInvalid, func(tx *bbolt.Tx) {
		require.Panics(t, func() { _ = m.Store(panics{&tables{tx: tx}}, now, 1) })
	})
	m.Stored(false)
	require.False(t, m.Due(now.Add(time.Hour)))
	m.Add(now, tally, true)
	require.False(t, m.Waits())
}

// Rule: counts whose commit the disk refuses are stored in a later minute, once. The calls of that commit succeed without
// them, if the disk has room for those.
func TestThroughputOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		add(t, q, nil)
		refused := 0
		require.NoError(t, q.do(t.Context(), visit(func() {
			q.scheduler.commitTx = func(tx *bbolt.Tx) error {
				if b := tx.Bucket([]byte("pawl.throughput")); b != nil && refused == 0 {
					refused++
					_ = tx.Rollback()
					return &fs.PathError{Op: "write", Path: "jobs.db", Err: syscall.ENOSPC}
				}
				return tx.Commit()
			}
		})))
		time.Sleep(time.Minute)
		add(t, q, nil)
		require.Equal(t, 1, refused)
		for range 2 {
			time.Sleep(time.Minute)
			add(t, q, nil)
		}
		got, err := q.Throughput(t.Context(), driver.ThroughputQuery{})
		require.NoError(t, err)
		require.EqualValues(t, 4, got.Total().Enqueued)
		for _, p := range got.Periods[len(got.Periods)-4:] {
			require.EqualValues(t, 1, p.Enqueued)
		}
	})
}

// Rule: jobs of the app's own transactions count when those commit, and Close of a queue over the app's database stores
// what waits.
func TestThroughputOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openApp(t)
		q := openOver(t, db, nil)
		enqueue := func(tx *bbolt.Tx) {
			_, err := q.EnqueueTx(tx, &pawl.Envelope{Kind: "k"})
			require.NoError(t, err)
		}
		updateApp(t, db, nil, enqueue)
		updateApp(t, db, os.ErrInvalid, enqueue)
		require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { enqueue(tx); return nil }))
		require.NoError(t, q.Close())
		q = openOver(t, db, nil)
		got, err := q.Throughput(t.Context(), driver.ThroughputQuery{})
		require.NoError(t, err)
		require.EqualValues(t, 2, got.Total().Enqueued)
	})
}
