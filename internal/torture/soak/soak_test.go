package soak

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/torture/harness"
)

// smallRound has jobs of every class, and is short.
const smallRound = 4 * blockSize

// small is the family with small rounds.
func small() *harness.Family {
	f := *Soak
	f.Prepare = func(env *harness.Env) (func(*harness.Try) error, error) { return prepare(env, smallRound), nil }
	return &f
}

// Two of the first eight rounds are killed, and the eight have every sort of
// break.
func TestShortSoakFindsNothing(t *testing.T) {
	result := small().Run(t.Context(), harness.Plan{Goal: 8 * smallRound, Seed: rand.Uint64N(1 << 40)})
	require.Empty(t, result.First)
	require.Equal(t, 8*smallRound, result.Tried)
}

func TestClassesAreAllThere(t *testing.T) {
	count := make(map[class]int)
	for n := range smallRound {
		count[classOf(n)]++
		require.Equal(t, classOf(n&^1), classOf(n), "the two of a pair are of one class")
		round, number := numberOf(idOf(7, n))
		require.Equal(t, []int{7, n}, []int{round, number})
	}
	for c := plain; c <= overdue; c++ {
		require.Positive(t, count[c], "class %d", c)
	}
}

// finished is the ledger's content for a job that did what its class must do.
func finished(n int) (c cell) {
	c = cell{flags: begun | accepted}
	run := func() { c.starts++; c.settled++ }
	switch classOf(n) {
	case cancelled, overdue:
		c.flags |= died | deleted
		return c
	case stopped:
		run()
		c.flags |= died | deleted
		return c
	case exhausted:
		for range exhaustedRetries + 1 {
			run()
		}
		c.failures = exhaustedRetries
		c.flags |= died | deleted
		return c
	case permanent:
		run()
		c.flags |= died | revived
	case snoozed:
		run()
		c.snoozes = 1
	case uniquePair:
		if existing(n) {
			return c
		}
	case onePair:
		if n%2 == 1 {
			c.flags |= skipped
			return c
		}
	}
	for range failures(n) {
		run()
		c.failures++
	}
	run()
	c.returned = 1
	c.flags |= done
	return c
}

// round is a round that is over and in order.
func round() *life {
	l := &life{ledger: &ledger{cells: make([]cell, smallRound), counts: map[pawl.EventType]int{}}}
	for n := range l.cells {
		l.cells[n] = finished(n)
		if !existing(n) {
			l.counts[pawl.EventEnqueued]++
		}
	}
	return l
}

// first is the first even job of a class.
func first(c class) int {
	n := 0
	for classOf(n) != c {
		n += 2
	}
	return n
}

func TestJudge(t *testing.T) {
	require.NoError(t, round().judge(), "what each class is to do is in order")
	for _, test := range []struct {
		rule string
		of   class
		odd  int
		do   func(c *cell)
	}{
		{"a job that was stored and never ran is lost", plain, 0, func(c *cell) { *c = cell{flags: begun | accepted} }},
		{"a job that failed for the last time is lost", retried, 0, func(c *cell) { c.flags &^= done }},
		{"a success that the queue took back is lost", large, 1, func(c *cell) { c.flags &^= done }},
		{"an attempt that did not end is one too many", plain, 0, func(c *cell) { c.starts++ }},
		{"an attempt that is still under way is one too many", plain, 0, func(c *cell) { c.flags |= running }},
		{"a job fails as often as it is to", retried, 0, func(c *cell) { c.failures++; c.starts++; c.settled++ }},
		{"a panic is a failure", panics, 0, func(c *cell) { c.failures = 0; c.starts--; c.settled-- }},
		{"a snooze is not forgotten", snoozed, 0, func(c *cell) { c.snoozes = 0; c.starts--; c.settled-- }},
		{"a job that waits and is cancelled does not run", cancelled, 0, func(c *cell) { c.starts++; c.settled++ }},
		{"a dead job is not lost", overdue, 0, func(c *cell) { c.flags &^= died | deleted }},
		{"a job that fails always does not succeed", exhausted, 0, func(c *cell) { c.returned++ }},
		{"a job with all its failures has no more", exhausted, 0, func(c *cell) { c.failures++ }},
		{"of two jobs with one unique key one runs", uniquePair, 1, func(c *cell) { *c = finished(0) }},
		{"of two jobs with one effect one runs", onePair, 0, func(c *cell) { c.flags &^= done }},
		{"each job is stored", plain, 0, func(c *cell) { *c = cell{} }},
		{"each storing is answered", plain, 0, func(c *cell) { c.flags &^= accepted }},
	} {
		l := round()
		test.do(&l.cells[first(test.of)+test.odd])
		require.Error(t, l.judge(), test.rule)
	}
	l := round()
	l.counts[pawl.EventEnqueued]++
	require.Error(t, l.judge(), "each job is told once")
}

func TestJudgeAfterKills(t *testing.T) {
	n := first(plain)
	l := round()
	l.kills = 1
	l.cells[n] = cell{flags: begun | accepted, starts: 1, cuts: 1, returned: 1}
	require.NoError(t, l.judge(), "an ack right before a kill is not heard")
	l.cells[n].returned = 0
	require.Error(t, l.judge(), "an attempt that a kill has cut off is made up for")

	l = round()
	l.kills = 1
	from, to := batchOf(0, n)
	for n := from; n < to; n++ {
		l.cells[n] = cell{flags: begun | doubted}
	}
	require.NoError(t, l.judge(), "what was being stored at a kill may not be there")
	l.cells[to-1] = finished(to - 1)
	l.cells[to-1].flags |= doubted
	require.Error(t, l.judge(), "it is all there or nothing of it")
}

func TestEvents(t *testing.T) {
	for _, test := range []struct {
		rule   string
		before cell
		what   pawl.EventType
	}{
		{"a job succeeds once", cell{flags: done | running}, pawl.EventSucceeded},
		{"what succeeds ran", cell{}, pawl.EventSucceeded},
		{"what is retried ran", cell{}, pawl.EventRetried},
		{"no lease expires", cell{flags: running}, pawl.EventReaped},
	} {
		require.Error(t, test.before.event(test.what), test.rule)
	}
}

func TestMay(t *testing.T) {
	pair := first(onePair)
	for _, test := range []struct {
		rule     string
		n        int
		c        cell
		attempts int
		do       func(l *life)
	}{
		{"what nobody stored does not run", 0, cell{}, 0, nil},
		{"no two attempts at a time", 0, cell{flags: begun | running}, 0, nil},
		{"no attempt after a success", 0, cell{flags: begun | done}, 0, nil},
		{"no attempt of a dead job", 0, cell{flags: begun | died}, 0, nil},
		{"an attempt is not lost", 0, cell{flags: begun, failures: 2}, 1, nil},
		{"no attempt is made up", 0, cell{flags: begun, failures: 2, cuts: 1}, 3, nil},
		{"a job that waits does not run", first(cancelled), cell{flags: begun}, 0, nil},
		{"the second of one unique key does not run", first(uniquePair) + 1, cell{flags: begun}, 0, nil},
		{"no two attempts of one effect at a time", pair, cell{flags: begun}, 0, func(l *life) { l.cells[pair+1].flags |= running }},
		{"no attempt of an effect that took place", pair, cell{flags: begun}, 0, func(l *life) { l.ended[pair] = time.Now() }},
	} {
		l := &life{ledger: &ledger{cells: make([]cell, smallRound), ended: make(map[int]time.Time)}}
		require.NoError(t, l.may(pair, cell{flags: begun}, 0))
		if test.do != nil {
			test.do(l)
		}
		require.Error(t, l.may(test.n, test.c, test.attempts), test.rule)
	}
}

func TestFlat(t *testing.T) {
	steady := func() []sample {
		all := make([]sample, 100)
		for i := range all {
			all[i] = sample{heap: 4 << 20, goroutines: 12, files: 9, used: 100 << 10, size: 3 << 20}
		}
		return all
	}
	require.NoError(t, flat(steady()))
	for _, test := range []struct {
		rule string
		do   func(s *sample, round int)
	}{
		{"memory does not leak", func(s *sample, round int) { s.heap += round << 16 }},
		{"no goroutine stays", func(s *sample, round int) { s.goroutines += round / 8 }},
		{"no open file stays", func(s *sample, round int) { s.files += round / 16 }},
		{"no row stays in the file", func(s *sample, round int) { s.used += round << 12 }},
		{"no single file is larger than a round needs", func(s *sample, round int) { s.size += int64(round/99) << 24 }},
	} {
		samples := steady()
		for i := range samples {
			test.do(&samples[i], i)
		}
		require.Error(t, flat(samples), test.rule)
	}
	parsed, err := parseSample(sample{1, 2, 3, 4, 5}.String())
	require.NoError(t, err)
	require.Equal(t, sample{1, 2, 3, 4, 5}, parsed)
}

// The next process reads what the killed one knew.
func TestLedgerOutlivesAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	book, err := openLedger(path, 8)
	require.NoError(t, err)
	defer book.file.Close()
	require.NoError(t, book.begin(3, true))
	book.changeAll(0, 8, func(_ int, c *cell) { c.flags |= begun })
	book.changeAll(0, 4, func(_ int, c *cell) { c.flags |= accepted })
	book.change(1, func(c *cell) { c.flags |= running; c.starts = 2; c.settled = 1 })

	next, err := openLedger(path, 8)
	require.NoError(t, err)
	defer next.file.Close()
	require.NoError(t, next.resume(3))
	require.Equal(t, cell{flags: begun | accepted}, next.cell(0))
	require.Equal(t, cell{flags: begun | accepted, starts: 2, settled: 1, cuts: 1}, next.cell(1), "the kill has cut its attempt off")
	require.Equal(t, cell{flags: begun | doubted}, next.cell(7))
}

// A violation that a process reports counts for the family.
func TestWhatAProcessFindsIsAViolation(t *testing.T) {
	f := *Soak
	f.Prepare = func(env *harness.Env) (func(*harness.Try) error, error) {
		return func(tr *harness.Try) error {
			l := &life{ledger: &ledger{cells: make([]cell, 1), counts: map[pawl.EventType]int{}}}
			l.event(pawl.Event{Type: pawl.EventEnqueued, Job: &pawl.Envelope{ID: idOf(5, 0)}})
			return errors.Join(l.violation())
		}, nil
	}
	result := f.Run(t.Context(), harness.Plan{Goal: 1})
	require.NotEmpty(t, result.First)
	require.True(t, strings.Contains(result.First[0].Err.Error(), "none of round 0"))
}
