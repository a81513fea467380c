package sim

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

const second = int64(time.Second)

// clockOf is a wall clock whose pieces begin at the instants given, of a world that began at
// instant 0.
func clockOf(pieces ...piece) *wall { return &wall{pieces: pieces} }

// The wall clock shows what was set from the moment on at which it was set, and knows since
// when it is past a time.
func TestWall(t *testing.T) {
	w := clockOf(piece{}, piece{from: 100, ahead: -50}, piece{from: 200, ahead: 1000, stuck: true}, piece{from: 300})
	require.EqualValues(t, []int64{99, 50, 149, 1200, 1200, 300}, []int64{w.at(99), w.at(100), w.at(199), w.at(200), w.at(299), w.at(300)})
	for _, c := range []struct {
		rule              string
		from, to, due     int64
		latest, since     int64
		isPast, wasItEver bool
	}{
		{"it is past a time from the moment on at which it shows it", 0, 80, 40, 80, 40, true, true},
		{"not before that", 0, 80, 81, 80, 0, false, false},
		{"set back, it was past a time and is not any more", 0, 120, 90, 100, 0, false, true},
		{"set ahead, it is past a time from then on", 120, 210, 500, 1200, 200, true, true},
		{"a clock that stands is past what it showed first", 220, 290, 1200, 1200, 200, true, true},
		{"a time between what it showed before and after it was set right", 250, 350, 320, 1300 - 100, 320, true, true},
	} {
		require.Equal(t, c.latest, w.latest(c.from, c.to), c.rule)
		require.Equal(t, c.wasItEver, w.latest(c.from, c.to) >= c.due, c.rule)
		since, ok := w.since(c.due, c.to)
		require.Equal(t, c.isPast, ok, c.rule)
		if ok {
			require.Equal(t, c.since, since, c.rule)
		}
	}
}

// A job moves on when it is due, and not before. Within the instant at which it is due, it
// may have moved or not.
func TestTimeInTheModel(t *testing.T) {
	exact := &rules{wall: clockOf(piece{}), lease: 10 * time.Second, maxCrashes: 2}
	l := law{rules: exact, Job: &Job{}, deadline: 50 * second}
	delayed := known{State: pawl.Delayed, due: 20 * second}
	ready := known{State: pawl.Ready, due: 20 * second}
	leased := known{State: pawl.Leased, token: 1, expires: 30 * second}
	crashed := known{State: pawl.Ready, crashes: 1}
	late := l.dead(ready, pawl.ReasonDeadline)
	for _, c := range []struct {
		rule  string
		from  known
		to    int64
		whole bool
		want  []known
	}{
		{"before it is due", delayed, 20*second - 1, true, []known{delayed}},
		{"amid the instant", delayed, 20 * second, false, []known{ready, delayed}},
		{"at its end", delayed, 20 * second, true, []known{ready}},
		{"later", delayed, 21 * second, false, []known{ready}},
		{"a lease before its end", leased, 30*second - 1, true, []known{leased}},
		{"a lease at its end", leased, 30 * second, false, []known{crashed, leased}},
		{"a lease behind it", leased, 30 * second, true, []known{crashed}},
		{"two things in their order", delayed, 60 * second, true, []known{late}},
	} {
		require.Equal(t, c.want, l.all([]known{c.from}, 0, c.to, c.whole), c.rule)
	}
	stepped := law{rules: &rules{wall: clockOf(piece{}, piece{from: 5 * second, ahead: 100 * second}), slack: time.Minute}, Job: &Job{}}
	require.Equal(t, []known{ready, delayed}, stepped.all([]known{delayed}, 0, 64*second, true), "a step may be noticed late")
	require.Equal(t, []known{ready}, stepped.all([]known{delayed}, 0, 65*second, true), "and is within a minute")
}

// An answer that the rules do not give is no explanation.
func TestAnswersInTheModel(t *testing.T) {
	l := law{rules: &rules{wall: clockOf(piece{}), lease: 10 * time.Second, maxCrashes: 2}, Job: &Job{}}
	held := known{State: pawl.Leased, token: 1, expires: 9 * second, attempts: 1}
	ready := known{State: pawl.Ready, attempts: 1, crashes: 1}
	dead := known{State: pawl.Dead, reason: pawl.ReasonPermanent}
	for _, c := range []struct {
		rule string
		k    known
		r    record
		ok   bool
	}{
		{"an ack by the holder", held, record{what: "ack", token: 1}, true},
		{"an ack by another", held, record{what: "ack", token: 2}, false},
		{"an ack by another is refused", held, record{what: "ack", token: 2, err: pawl.ErrLeaseLost}, true},
		{"the holder's is not", held, record{what: "ack", token: 1, err: pawl.ErrLeaseLost}, false},
		{"a lease of a ready job", ready, record{what: "lease", token: 3, attempts: 1, crashes: 1}, true},
		{"a lease that counts other attempts", ready, record{what: "lease", token: 3, crashes: 1}, false},
		{"a lease that counts other crashes", ready, record{what: "lease", token: 3, attempts: 1}, false},
		{"a lease of a leased job", held, record{what: "lease", token: 3, attempts: 1}, false},
		{"a retry of a dead job", dead, record{what: "retry"}, true},
		{"a retry of a ready job", ready, record{what: "retry"}, false},
		{"which is refused", ready, record{what: "retry", err: pawl.ErrConflict}, true},
		{"a cancel of a dead job", dead, record{what: "cancel"}, false},
		{"a delete of what is gone", known{gone: true}, record{what: "delete", err: pawl.ErrNotFound}, true},
		{"a delete of what is there", dead, record{what: "delete", err: pawl.ErrNotFound}, false},
		{"a skip of a leased job", held, record{what: "skip"}, false},
		{"a second enqueue", ready, record{what: "enqueue"}, false},
	} {
		_, ok := l.apply(c.k, &c.r)
		require.Equal(t, c.ok, ok, c.rule)
	}
}

// Calls of one instant are explained by any order in which a call that ended before another
// one began comes first, and by no other order. A call without an answer may have done
// nothing.
func TestOrdersOfAnInstant(t *testing.T) {
	tr := &track{law: law{rules: &rules{wall: clockOf(piece{}), lease: 10 * time.Second, maxCrashes: -1}, Job: &Job{}}}
	held := known{State: pawl.Leased, token: 1, expires: 9 * second}
	next := &record{what: "lease", token: 2, attempts: 1, begin: 1, end: 4}
	nack := &record{what: "nack", token: 1, begin: 2, end: 3}
	states := func(set []known) (states []pawl.State) {
		for _, k := range set {
			states = append(states, k.State)
		}
		slices.Sort(states)
		return states
	}
	require.Equal(t, []pawl.State{pawl.Leased}, states(tr.linear([]known{held}, []*record{next, nack}, 0)), "the nack came first")
	nack.begin, nack.end = 5, 6
	require.Empty(t, tr.linear([]known{held}, []*record{next, nack}, 0), "it cannot have")
	nack.end = never
	require.Equal(t, []pawl.State{pawl.Leased, pawl.Ready}, states(tr.linear([]known{held}, []*record{nack}, 0)), "nobody knows")
}

// Leases that touch do not run beside one another. Leases that overlap do, and so do two
// leases that begin in one instant, if both last longer.
func TestBeside(t *testing.T) {
	of := func(at, ended int64) *lease { return &lease{record: &record{at: at}, ended: ended} }
	for _, c := range []struct {
		rule   string
		leases []*lease
		beside bool
	}{
		{"one after the other", []*lease{of(1, 2), of(2, 3), of(5, 0)}, false},
		{"one within the other", []*lease{of(1, 9), of(2, 3)}, true},
		{"behind a short one within a long one", []*lease{of(1, 2), of(2, 9), of(4, 5)}, true},
		{"one that has not ended", []*lease{of(1, 0), of(5, 6)}, true},
		{"in one instant, and over", []*lease{of(1, 1), of(1, 4)}, false},
		{"in one instant, and on", []*lease{of(1, 4), of(1, 3)}, true},
	} {
		a, _ := beside(c.leases)
		require.Equal(t, c.beside, a != nil, c.rule)
	}
}

// The cases cause everything that can happen: every event, every reason of a death, and
// every answer. What they do not reach is not tested.
func TestCasesReachEverything(t *testing.T) {
	events, reasons, answers := make(map[pawl.EventType]bool), make(map[pawl.Reason]bool), make(map[string]bool)
	var mu sync.Mutex
	open := func(path string, o *bolt.Options) (Queue, error) {
		hear := o.OnEvent
		o.OnEvent = func(e pawl.Event) {
			mu.Lock()
			if e.Type == pawl.EventDied {
				reasons[e.Job.Death.Reason] = true
			}
			events[e.Type] = true
			mu.Unlock()
			hear(e)
		}
		return Real(path, o)
	}
	dir := memoryDir(t)
	for seed := uint64(1); seed <= 12; seed++ {
		c := Generate(seed)
		var w *world
		synctest.Test(t, func(t *testing.T) {
			w = newWorld(c, dir, open)
			require.NoError(t, w.simulate())
		})
		for _, l := range w.leases {
			answers["lease ended by "+l.how] = true
			for _, s := range l.settles {
				if s.err != nil {
					answers[s.what+": "+class(s.err)] = true
				}
			}
		}
	}
	for _, event := range []pawl.EventType{
		pawl.EventEnqueued, pawl.EventFetched, pawl.EventSucceeded, pawl.EventSkipped, pawl.EventRetried, pawl.EventDied, pawl.EventReleased, pawl.EventSnoozed,
		pawl.EventReaped, pawl.EventRecovered, pawl.EventCancelled, pawl.EventRevived, pawl.EventDeleted,
	} {
		require.True(t, events[event], event)
	}
	for _, reason := range []pawl.Reason{pawl.ReasonExhausted, pawl.ReasonPermanent, pawl.ReasonPoison, pawl.ReasonDeadline, pawl.ReasonCancelled} {
		require.True(t, reasons[reason], reason)
	}
	for _, verb := range []string{"ack", "nack", "abandon", "release", "snooze"} {
		require.True(t, answers["lease ended by "+verb], verb)
		require.True(t, answers[verb+": lease lost"], verb)
	}
	require.True(t, answers["lease ended by expiry"] && answers["lease ended by crash"])
}
