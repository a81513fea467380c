package bolt

import (
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: the pages of a list have the same jobs as the iteration, each once, whatever the size
// of the pages.
func TestListIsTheIterationInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openAt(t, memoryFolder(t)+"/jobs.db", nil)
		fillMixed(t, q, 1)
		filters := []pawl.Filter{{Kind: "k1"}, {Reason: pawl.ReasonPermanent}, {State: pawl.Dead, DiedBefore: time.Now().Add(-time.Hour)}, {Queue: "nobody's"}}
		for _, state := range append(pawl.States(), "") {
			for _, queue := range []string{"", "a", "default"} {
				filters = append(filters, pawl.Filter{State: state, Queue: queue})
			}
		}
		found := 0
		for _, f := range filters {
			want := all(t, q, f)
			found += len(want)
			for _, max := range []int{1, 7, 64, 65, pawl.MaxListed} {
				require.Equal(t, want, listAll(t, &q.reader, f, max), "%+v by %d", f, max)
			}
		}
		require.Greater(t, found, 200, "the test needs jobs")
	})
}

// Rule: one List reads a limited number of rows and bytes, and the next one continues.
func TestListIsBounded(t *testing.T) {
	q := openAt(t, memoryFolder(t)+"/jobs.db", nil)
	for _, n := range []int{listRows / 2, listRows / 2, 10} {
		require.NoError(t, withid.Enqueue(t.Context(), q, newBatch(n)...))
	}
	last := add(t, q, func(e *pawl.Envelope) { e.Kind = "rare" })
	for _, f := range []pawl.Filter{{Kind: "rare"}, {Kind: "rare", State: pawl.Ready}} {
		part, err := q.List(t.Context(), f, "", 10)
		require.NoError(t, err)
		require.Empty(t, part.Jobs, "it lies behind the bound")
		require.NotEmpty(t, part.Next)
		part, err = q.List(t.Context(), f, part.Next, 10)
		require.NoError(t, err)
		require.Equal(t, last.ID, part.Jobs[0].Job.ID)
		require.Len(t, part.Jobs, 1)
		require.Empty(t, part.Next, "the end")
	}
	for range 12 {
		add(t, q, func(e *pawl.Envelope) { e.Queue, e.Kind, e.Payload = "large", "large", make([]byte, 1<<20) })
	}
	part, err := q.List(t.Context(), pawl.Filter{State: pawl.Ready, Queue: "large"}, "", pawl.MaxListed)
	require.NoError(t, err)
	require.Len(t, part.Jobs, listBytes>>20)
	require.Len(t, listAll(t, &q.reader, pawl.Filter{State: pawl.Ready, Queue: "large"}, pawl.MaxListed), 12)
}

// Rule: histories count as bytes, with their errors and stacks.
func TestListBoundsHistories(t *testing.T) {
	e := &pawl.Envelope{Payload: []byte("12345"), Headers: map[string]string{"a": "12", "bc": ""},
		History: []pawl.Failure{{Error: "123"}, {}, {Error: "1", Stack: "1234"}}}
	require.Equal(t, 5+3+2+3+1+4+3*40, driver.JobSize(e))
}

// Rule: a cursor is valid only for its own list. Anything else is refused or harmless.
func TestListRefuses(t *testing.T) {
	q := openTest(t, nil)
	require.NoError(t, withid.Enqueue(t.Context(), q, newBatch(5)...))
	ready := pawl.Filter{State: pawl.Ready}
	part, err := q.List(t.Context(), ready, "", 2)
	require.NoError(t, err)
	next := part.Next

	for _, f := range []pawl.Filter{{}, {State: pawl.Delayed}, {State: pawl.Ready, Kind: "k"}, {State: pawl.Ready, Queue: "default"},
		{State: pawl.Ready, Reason: "x"}, {State: pawl.Ready, DiedBefore: time.Now()}} {
		_, err := q.List(t.Context(), f, next, 2)
		require.ErrorIs(t, err, pawl.ErrInvalid, "the list of %+v", f)
	}
	_, _, err = q.Effects(t.Context(), next, 2)
	require.ErrorIs(t, err, pawl.ErrInvalid, "the list of effects")
	for _, max := range []int{-1, 0, pawl.MaxListed + 1} {
		_, err := q.List(t.Context(), ready, "", max)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		_, _, err = q.Effects(t.Context(), "", max)
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
	_, err = q.List(t.Context(), pawl.Filter{State: "sleeping"}, "", 2)
	require.ErrorIs(t, err, pawl.ErrInvalid)

	for at := range next {
		for _, changed := range []string{next[:at], next[:at] + "-" + next[at+1:], next[:at] + " " + next[at:], next + next[at:]} {
			if changed == "" || changed == next {
				continue
			}
			_, err := q.List(t.Context(), ready, changed, 2)
			require.ErrorIs(t, err, pawl.ErrInvalid, "%q in place of %q", changed, next)
		}
	}
}

// Rule: a forged cursor with a correct checksum leads only to rows of the list.
func TestListFromAForgedPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openAt(t, memoryFolder(t)+"/jobs.db", nil)
		fillMixed(t, q, 2)
		random := rand.New(rand.NewPCG(3, 4))
		refused, listed := 0, 0
		for range 5000 {
			f := pawl.Filter{State: append(pawl.States(), "")[random.IntN(len(pawl.States())+1)], Queue: []string{"", "a"}[random.IntN(2)]}
			key := make([]byte, random.IntN(40))
			for i := range key {
				key[i] = []byte{0, 1, 2, 0xff, byte(random.IntN(256))}[random.IntN(5)]
			}
			part, err := q.List(t.Context(), f, formatCursor(random.IntN(4), key, driver.FilterScope(f)), 3)
			if err != nil {
				require.ErrorIs(t, err, pawl.ErrInvalid)
				refused++
				continue
			}
			for _, job := range part.Jobs {
				require.NoError(t, job.Err)
				require.True(t, f.Matches(job.Job), "%+v is not of %+v", job.Job, f)
				listed++
			}
		}
		require.Greater(t, refused, 100)
		require.Greater(t, listed, 100)
		ofA := pawl.Filter{State: pawl.Ready, Queue: "a"}
		for _, key := range []string{"", "\x00", "\x00\x00\x00\x63", "\xff\xff\xff\xff\xff"} {
			_, err := q.List(t.Context(), ofA, formatCursor(0, []byte(key), driver.FilterScope(ofA)), 3)
			require.Equal(t, key != "", errors.Is(err, pawl.ErrInvalid), "the key %q of another queue", key)
		}
		_, err := q.List(t.Context(), pawl.Filter{}, base64.RawURLEncoding.EncodeToString(make([]byte, 2<<10)), 3)
		require.ErrorIs(t, err, pawl.ErrInvalid, "one that is too long")
	})
}

// Rule: a cursor stays valid when its job is gone, and untouched jobs come exactly once.
func TestListGoesOnWhenItsJobIsGone(t *testing.T) {
	for _, state := range []pawl.State{"", pawl.Ready} {
		q := openTest(t, nil)
		batch := newBatch(9)
		require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
		part, err := q.List(t.Context(), pawl.Filter{State: state}, "", 3)
		require.NoError(t, err)
		for _, l := range fetch(t, q, 4) {
			require.NoError(t, q.Settle(t.Context(), l.Ack()))
		}
		part, err = q.List(t.Context(), pawl.Filter{State: state}, part.Next, 9)
		require.NoError(t, err)
		require.Len(t, part.Jobs, 5)
		require.Equal(t, batch[4].ID, part.Jobs[0].Job.ID)
	}
}

// Rule: an unreadable job is in the list with its ID and its error, and the list continues
// after it.
func TestListOfADamagedJob(t *testing.T) {
	for _, c := range append(changes, missing) {
		q, err := Open(t.TempDir()+"/jobs.db", quiet())
		require.NoError(t, err)
		defer q.Close()
		require.NoError(t, q.Pause(t.Context(), pawl.DefaultQueue))
		batch := newBatch(3)
		require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
		damageRecord(t, q, batch[1].ID, c.change)
		for _, f := range []pawl.Filter{{State: pawl.Ready}, {State: pawl.Ready, Kind: batch[0].Kind}} {
			part, err := q.List(t.Context(), f, "", 10)
			require.NoError(t, err, c.name)
			require.Len(t, part.Jobs, 3)
			for i, job := range part.Jobs {
				require.Equal(t, batch[i].ID, job.Job.ID)
				if i != 1 {
					require.NoError(t, job.Err)
					continue
				}
				require.ErrorIs(t, job.Err, pawl.ErrCorrupt)
				require.Empty(t, job.Job.Kind)
			}
		}
	}
}

// Rule: effects are listed with the time until which they are done, by a reader too. A leased
// effect that is not done is not listed.
func TestEffects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir() + "/jobs.db"
		q := openAt(t, path, nil)
		now := time.Now()
		for i, key := range []string{"b", "a", "bb", "held"} {
			add(t, q, func(e *pawl.Envelope) { e.IdempotencyKey, e.IdempotencyTTL = key, time.Duration(i+1)*time.Hour })
		}
		leases := fetch(t, q, 4)
		for i, l := range leases[:3] {
			pass(time.Second)
			require.NoError(t, q.Settle(t.Context(), l.Ack()))
			leases[i] = l
		}
		want := []driver.Effect{{Kind: "k", Key: "a", Until: now.Add(2*time.Hour + 2*time.Second)}, {Kind: "k", Key: "b", Until: now.Add(time.Hour + time.Second)}, {Kind: "k", Key: "bb", Until: now.Add(3*time.Hour + 3*time.Second)}}
		check := func(r *reader) {
			t.Helper()
			for _, max := range []int{1, 2, 10} {
				got := effectsOf(t, r, max)
				require.Len(t, got, len(want))
				for i, e := range got {
					require.True(t, want[i].Until.Equal(e.Until), "%v in place of %v", e.Until, want[i].Until)
					e.Until = want[i].Until
					require.Equal(t, want[i], e)
				}
			}
		}
		check(&q.reader)
		require.NoError(t, q.Close())
		r, err := OpenReader(path)
		require.NoError(t, err)
		check(&r.reader)
		require.NoError(t, r.Close())
	})
}

// Rule: an unreadable effect is reported and does not hide the effects after it.
func TestEffectsOfADamagedRow(t *testing.T) {
	q, err := Open(t.TempDir()+"/jobs.db", quiet())
	require.NoError(t, err)
	defer q.Close()
	for _, key := range []string{"a", "b", "c"} {
		add(t, q, func(e *pawl.Envelope) { e.IdempotencyKey = key })
		require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
	}
	changeRows(t, q, bucketEffects, func(k []byte) bool { return k[len(k)-1] == 'b' }, func(v []byte) []byte { v[0] ^= 1; return v })
	effects, next, err := q.Effects(t.Context(), "", 10)
	require.ErrorIs(t, err, pawl.ErrCorrupt)
	require.Len(t, effects, 1)
	effects, next, err = q.Effects(t.Context(), next, 10)
	require.NoError(t, err)
	require.Empty(t, next)
	require.Len(t, effects, 1)
	require.Equal(t, "c", effects[0].Key)
}

// Rule: the key of an effects row is two names, and nothing else is accepted as one.
func TestCutName(t *testing.T) {
	for _, test := range []struct {
		key, name, rest string
		ok              bool
	}{{"", "", "", false}, {"\x00", "", "", true}, {"\x01", "", "", false}, {"\x01a", "a", "", true}, {"\x01ab", "a", "b", true}, {"\xffab", "", "", false}} {
		name, rest, ok := cutName([]byte(test.key))
		require.Equal(t, test.ok, ok, "%q", test.key)
		require.Equal(t, test.name, string(name))
		require.Equal(t, test.rest, string(rest))
	}
	row := effectRow{done: time.Now()}
	for _, key := range []string{"", "\x01", "\x01k", "\x01k\x02e", "\x01k\x01ee"} {
		_, err := parseEffect([]byte(key), seal([]byte(key), row.append(nil)))
		require.ErrorIs(t, err, pawl.ErrCorrupt, "%q", key)
	}
}
