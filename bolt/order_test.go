package bolt

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// The jobs are made in the order a, b, c, …, one second apart, and fetched once all are due.
func TestOrder(t *testing.T) {
	priority := func(p int8) func(*pawl.Envelope) { return func(e *pawl.Envelope) { e.Priority = p } }
	delay := func(d time.Duration) func(*pawl.Envelope) { return func(e *pawl.Envelope) { e.Delay = d } }
	at := func(d time.Duration) func(*pawl.Envelope) {
		return func(e *pawl.Envelope) { e.NotBefore = time.Now().Add(d) }
	}
	for _, c := range []struct {
		rule  string
		jobs  []func(*pawl.Envelope)
		order string
	}{
		{"equal jobs come as they were made", []func(*pawl.Envelope){nil, nil, nil}, "abc"},
		{"a higher priority comes first, from 127 down to -128", []func(*pawl.Envelope){
			priority(-128), priority(-1), priority(0), priority(1), priority(127), priority(-127), priority(126),
		}, "egdcbfa"},
		{"priority counts before time", []func(*pawl.Envelope){nil, nil, priority(1)}, "cab"},
		{"a delayed job is ready since it was due", []func(*pawl.Envelope){delay(1500 * time.Millisecond), nil, nil}, "bac"},
		{"a job may say when", []func(*pawl.Envelope){at(2500 * time.Millisecond), nil, at(100 * time.Millisecond), nil}, "bcad"},
		{"a time in the past does not jump the queue", []func(*pawl.Envelope){nil, at(-time.Hour), nil}, "abc"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				for i, change := range c.jobs {
					add(t, q, func(e *pawl.Envelope) {
						e.Kind = string(rune('a' + i))
						if change != nil {
							change(e)
						}
					})
					pass(time.Second)
				}
				pass(time.Minute)
				require.Equal(t, c.order, kindsOf(fetch(t, q, 99)))
			})
		})
	}
}

func TestSameInstantComesBySequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in the meantime the clock stands still
		q := openTest(t, nil)
		due := time.Now().Add(time.Second)
		var want []byte
		for i := range 300 {
			kind := byte(1 + i%255)
			add(t, q, func(e *pawl.Envelope) { e.Kind, e.NotBefore = string([]byte{kind}), due })
			want = append(want, kind)
		}
		pass(time.Second)
		require.Equal(t, string(want), kindsOf(fetch(t, q, 300)))
	})
}

// Random jobs leave in the documented order, whatever the sizes of batches and fetches and
// whatever path the jobs took: new, delayed, released, crashed once, failed.
func TestDrainedOrderIsTheDocumentedOne(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testDrainedOrder(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func testDrainedOrder(t *testing.T, random *rand.Rand) {
	q := openTest(t, nil)
	for range 20 {
		batch := make([]*pawl.Envelope, 1+random.IntN(10))
		for i := range batch {
			e := &pawl.Envelope{Kind: "k", Priority: int8(random.IntN(5) - 2)}
			switch random.IntN(4) {
			case 0:
				e.Delay = time.Duration(random.Int64N(int64(time.Minute)))
			case 1:
				e.NotBefore = time.Now().Add(time.Duration(random.Int64N(int64(time.Minute)) - int64(time.Minute)/2))
			case 2:
				e.Priority = int8(random.IntN(256) - 128)
			}
			batch[i] = e
		}
		require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
		pass(time.Duration(random.Int64N(int64(time.Second))))
	}
	for i, l := range fetch(t, q, 40) {
		switch {
		case i%4 == 0:
			require.NoError(t, q.Settle(t.Context(), l.Release()))
		case i%4 == 1:
			require.NoError(t, q.Settle(t.Context(), l.Nack(0, nil)))
		case i%4 == 2:
			require.NoError(t, q.Settle(t.Context(), l.Snooze(time.Second)))
		} // the others crash
	}
	pass(2 * time.Minute)
	synctest.Wait()

	var want []*pawl.Envelope
	for e, err := range q.Jobs(t.Context(), pawl.Filter{}) {
		require.NoError(t, err)
		require.Equal(t, pawl.Ready, e.State)
		want = append(want, e)
	}
	slices.SortFunc(want, documentedOrder)
	var got []pawl.ID
	for {
		leases := fetch(t, q, 1+random.IntN(20))
		if leases == nil {
			break
		}
		for _, l := range leases {
			got = append(got, l.ID)
		}
	}
	require.Equal(t, idsOf(want), got)
}

// documentedOrder compares two jobs of one queue.
func documentedOrder(a, b *pawl.Envelope) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.NotBefore.Compare(b.NotBefore), cmp.Compare(a.Seq, b.Seq))
}

func idsOf(jobs []*pawl.Envelope) (ids []pawl.ID) {
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// fill puts n jobs on each queue. Their kind is the name of the queue.
func fill(t *testing.T, q *Queue, n int, queues ...string) {
	t.Helper()
	var batch []*pawl.Envelope
	for range n {
		for _, name := range queues {
			batch = append(batch, &pawl.Envelope{Queue: name, Kind: name, MaxRetries: 3, Payload: []byte("payload")})
		}
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
}

func TestQueuesTakeTurns(t *testing.T) {
	t.Run("within one fetch", func(t *testing.T) {
		q := openTest(t, nil)
		fill(t, q, 3, "a", "b", "c")
		require.Equal(t, "abcabca", kindsOf(fetch(t, q, 7, "a", "b", "c")))
	})
	t.Run("over fetches of one", func(t *testing.T) {
		q := openTest(t, nil)
		fill(t, q, 3, "a", "b", "c")
		var kinds string
		for range 9 {
			kinds += kindsOf(fetch(t, q, 1, "a", "b", "c"))
		}
		require.Equal(t, "abcabcabc", kinds)
	})
	t.Run("an empty queue leaves its turn to all others alike", func(t *testing.T) {
		q := openTest(t, nil)
		fill(t, q, 1, "b")
		fetch(t, q, 1, "b")
		fill(t, q, 6, "a", "c")
		var kinds string
		for range 8 {
			kinds += kindsOf(fetch(t, q, 1, "a", "b", "c"))
		}
		require.Equal(t, 4, strings.Count(kinds, "a"), kinds)
	})
	t.Run("one that runs dry leaves the rest to the others", func(t *testing.T) {
		q := openTest(t, nil)
		fill(t, q, 1, "a")
		fill(t, q, 4, "b")
		require.Equal(t, "abbbb", kindsOf(fetch(t, q, 9, "a", "b", "never seen")))
	})
	t.Run("a priority counts within its queue only", func(t *testing.T) {
		q := openTest(t, nil)
		fill(t, q, 2, "a")
		add(t, q, func(e *pawl.Envelope) { e.Queue, e.Kind, e.Priority = "b", "B", 100 })
		require.Equal(t, "aBa", kindsOf(fetch(t, q, 9, "a", "b")))
	})
	t.Run("a queue that is named twice is one queue", func(t *testing.T) {
		q := openTest(t, nil)
		fill(t, q, 2, "a")
		require.Len(t, fetch(t, q, 9, "a", "a"), 2, "no job is leased twice")
		require.Equal(t, pawl.Counts{Leased: 2}, countsOf(t, q, "a"))
	})
}

func TestQueueNamesNeverMix(t *testing.T) {
	q := openTest(t, nil)
	names := []string{
		"default", "a", "aa", "a\x01", "a\xff", "\xff", "\xff\xff", "\x01", " ", "ü", "\xc3", "a/b", "%s",
		strings.Repeat("a", 254), strings.Repeat("a", 255), strings.Repeat("\xff", 255),
	}
	fill(t, q, 2, names...)
	for i, name := range names {
		var filtered string
		for e, err := range q.Jobs(t.Context(), pawl.Filter{Queue: name}) {
			require.NoError(t, err)
			require.Equal(t, name, e.Queue)
			filtered += e.Kind
		}
		require.Equal(t, name+name, filtered)
		require.Equal(t, name+name, kindsOf(fetch(t, q, 99, name)))
		require.Equal(t, pawl.Counts{Leased: 2}, countsOf(t, q, name))
		for _, other := range names[i+1:] {
			require.Equal(t, pawl.Counts{Ready: 2}, countsOf(t, q, other))
		}
	}
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	for i, name := range names {
		require.Equal(t, name, stats.Queues[i].Name, "queues come in the order of their first job")
	}

	for _, name := range []string{"a\x00", "\x00", strings.Repeat("a", 256)} {
		require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k", Queue: name}), pawl.ErrInvalid)
		_, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{name}, Max: 1, Wait: pawl.WaitNot})
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
}

func TestFetchGivesNoMoreThanAsked(t *testing.T) {
	q := openTest(t, nil)
	fill(t, q, 5, pawl.DefaultQueue)
	require.Len(t, fetch(t, q, 2), 2)
	require.Equal(t, pawl.Counts{Ready: 3, Leased: 2}, countsOf(t, q, pawl.DefaultQueue))
	require.Len(t, fetch(t, q, 99), 3)
	for _, most := range []int{0, -1} {
		_, err := q.Fetch(t.Context(), pawl.Request{Max: most, Wait: pawl.WaitNot})
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
}
