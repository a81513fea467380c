package oracle

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// plainID is the ID of a job that is ready immediately and not retained.
func plainID(t *testing.T) pawl.ID {
	t.Helper()
	for {
		id := pawl.NewID(time.Now())
		if e := JobOf(id); e.Delay == 0 && e.Retain == 0 && e.Key == "" {
			return id
		}
	}
}

// Rule: a job follows from its ID alone.
func TestJobOf(t *testing.T) {
	for range 64 {
		id := pawl.NewID(time.Now())
		require.Equal(t, JobOf(id), JobOf(id))
	}
}

// Rule: what was acknowledged must have happened, what was not begun must not have, and what was under way may have
// happened, as a whole.
func TestExplain(t *testing.T) {
	a, b := plainID(t), plainID(t)
	type file = map[pawl.ID]Known
	ready, crashed := Known{State: pawl.Ready}, Known{State: pawl.Ready, Crashes: 1}
	for _, test := range []struct {
		rule  string
		story string // A and B stand for the jobs
		found file
		wrong string // "" for nothing
	}{
		{"nothing", "", file{}, ""},
		{"stored", "begin enqueue 0 A; done enqueue 0 A", file{a: ready}, ""},
		{"stored, and lost", "begin enqueue 0 A; done enqueue 0 A", file{}, "is lost"},
		{"stored by nobody", "", file{a: ready}, "was {State: Attempts:0 Crashes:0 Holds:false}"},
		{"refused, and stored", "begin enqueue 0 A; refused enqueue 0 A", file{a: ready}, "job"},
		{"under way, and there", "begin enqueue 0 A", file{a: ready}, ""},
		{"under way, and not there", "begin enqueue 0 A", file{}, ""},
		{"unknown, and there", "begin enqueue 0 A; unknown enqueue 0 A", file{a: ready}, ""},
		{"unknown, and not there", "begin enqueue 0 A; unknown enqueue 0 A", file{}, ""},
		{"a batch, whole", "begin enqueue 0 A B", file{a: ready, b: ready}, ""},
		{"a batch, half", "begin enqueue 0 A B", file{a: ready}, "1 of 2 jobs that were stored together"},
		{"another state", "begin enqueue 0 A; done enqueue 0 A", file{a: {State: pawl.Dead}}, "job"},
		{"a crash that nobody had", "begin enqueue 0 A; done enqueue 0 A", file{a: crashed}, "1 jobs had leases that nobody heard of, and 0 were being fetched"},
		{"a lease that nobody heard of", "begin enqueue 0 A; done enqueue 0 A; begin fetch 1 1", file{a: crashed}, ""},
		{"more of them than were fetched", "begin enqueue 0 A B; done enqueue 0 A B; begin fetch 1 1", file{a: crashed, b: crashed}, "2 jobs had leases"},
		{"leased", "begin enqueue 0 A; done enqueue 0 A; begin fetch 1 1; done fetch 1 A", file{a: crashed}, ""},
		{"leased, and no crash counted", "begin enqueue 0 A; done enqueue 0 A; begin fetch 1 1; done fetch 1 A", file{a: ready}, "leased"},
		{"leased, and lost", "begin enqueue 0 A; done enqueue 0 A; begin fetch 1 1; done fetch 1 A", file{}, "is lost"},
		{"leased before it was told to be stored", "begin enqueue 0 A; begin fetch 1 1; done fetch 1 A", file{a: crashed}, ""},
		{"which stores all of its batch", "begin enqueue 0 A B; begin fetch 1 1; done fetch 1 A", file{a: crashed}, "is lost"},
		{"acked", "begin enqueue 0 A; done enqueue 0 A; begin fetch 1 1; done fetch 1 A; begin ack 1 A; done ack 1 A", file{}, ""},
		{"acked, and there again", "begin enqueue 0 A; done enqueue 0 A; begin fetch 1 1; done fetch 1 A; begin ack 1 A; done ack 1 A", file{a: crashed}, "job"},
		{"being acked, and gone", "begin enqueue 0 A; done enqueue 0 A; begin fetch 1 1; done fetch 1 A; begin ack 1 A", file{}, ""},
		{"being acked, and there", "begin enqueue 0 A; done enqueue 0 A; begin fetch 1 1; done fetch 1 A; begin ack 1 A", file{a: crashed}, ""},
		{"failed", "begin enqueue 0 A; done enqueue 0 A; begin fetch 1 1; done fetch 1 A; begin nack 1 A; done nack 1 A", file{a: {pawl.Ready, 1, 0, false}}, ""},
		{"failed, and the attempt lost", "begin enqueue 0 A; done enqueue 0 A; begin fetch 1 1; done fetch 1 A; begin nack 1 A; done nack 1 A", file{a: ready}, "job"},
		{"fetched again before the failure was told",
			"begin enqueue 0 A; done enqueue 0 A; begin fetch 1 1; done fetch 1 A; begin nack 1 A; begin fetch 2 1; done fetch 2 A; done nack 1 A",
			file{a: {pawl.Ready, 1, 1, false}}, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var o Oracle
			require.NoError(t, hear(&o, test.story, a, b))
			err := o.Explain(test.found)
			if test.wrong == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.wrong)
			}
		})
	}
}

func hear(o *Oracle, story string, a, b pawl.ID) error {
	story = strings.NewReplacer("A", a.String(), "B", b.String()).Replace(story)
	for line := range strings.SplitSeq(story, "; ") {
		if line == "" {
			continue
		}
		if err := o.Hear(line); err != nil {
			return err
		}
	}
	return nil
}

// Rule: a story in which a job runs beside itself, or that is impossible, is refused.
func TestHearRefuses(t *testing.T) {
	a := plainID(t)
	stored := "begin enqueue 0 A; done enqueue 0 A; "
	for rule, story := range map[string]string{
		"leased twice at a time":    stored + "begin fetch 1 1; done fetch 1 A; begin fetch 2 1; done fetch 2 A",
		"nobody stored it":          "begin fetch 1 1; done fetch 1 A",
		"Delayed":                   "", // below
		`the story has the line "x`: "x",
	} {
		if rule == "Delayed" {
			rule, story = "was leased, and is {State:delayed", stored+"begin fetch 1 1; done fetch 1 A; begin snooze 1 A; done snooze 1 A; begin fetch 2 1; done fetch 2 A"
		}
		var o Oracle
		require.ErrorContains(t, hear(&o, story, a, a), rule)
	}
}

// Rule: the next process starts from the state that was adopted.
func TestAdopt(t *testing.T) {
	a := plainID(t)
	var o Oracle
	require.NoError(t, hear(&o, "begin enqueue 0 A; done enqueue 0 A; begin fetch 1 1; done fetch 1 A", a, a))
	require.Equal(t, 1, o.Acknowledged())
	found := map[pawl.ID]Known{a: {pawl.Ready, 0, 1, false}}
	require.NoError(t, o.Explain(found))
	o.Adopt(found)
	require.NoError(t, o.Explain(found))
	require.Error(t, o.Explain(map[pawl.ID]Known{a: {pawl.Ready, 0, 2, false}}), "no process died a second time")
}

// Rule: the story of a workload without faults is explained by the file at its end, with
// every verb in it.
func TestWorkloadReportsTheTruth(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	q, err := bolt.Open(path, Options())
	require.NoError(t, err)
	lines := make(chan string, 1<<16)
	emit := func(words ...any) { lines <- fmt.Sprintln(words...) }
	w := Workload{Seed: 1, Producers: 2, Steps: 80}
	require.NoError(t, w.Run(t.Context(), q, emit))
	ctx, cancel := context.WithCancel(t.Context())
	w = Workload{Seed: 1, Consumers: 2, Batch: 4, Steps: 8}
	require.NoError(t, w.Run(ctx, q, emit))
	cancel()
	close(lines)
	var o Oracle
	reported := make(map[string]bool)
	for line := range lines {
		reported[strings.Fields(line)[1]] = true
		require.NoError(t, o.Hear(strings.TrimSpace(line)))
	}
	for _, v := range Verbs {
		require.True(t, reported[v.Name], v.Name)
	}
	require.NoError(t, q.Close())
	q, err = bolt.Open(path, Options())
	require.NoError(t, err)
	found, err := Scan(t.Context(), q)
	require.NoError(t, err)
	require.NoError(t, o.Explain(found))
	require.NoError(t, q.Close())
}

// Rule: the leased jobs of a pool count together. Those of a queue with a lower limit also count separately, and
// those without a pool do not count.
func TestPoolsOfLeases(t *testing.T) {
	for _, test := range []struct {
		queues string
		wrong  string // "" for nothing
	}{
		{"b held b", ""},
		{"held held held", ""},
		{"held held b a a a a limited", ""},
		{"b held b held", `4 jobs of pool "shared" are leased, and it has a limit of 3`},
		{"b b b", "3 of them are of queue b, which has a limit of 2"},
	} {
		taken, err := make(pools), error(nil)
		for queue := range strings.FieldsSeq(test.queues) {
			require.NoError(t, err, test.queues)
			err = taken.add(queue)
		}
		if test.wrong == "" {
			require.NoError(t, err, test.queues)
		} else {
			require.ErrorContains(t, err, test.wrong, test.queues)
		}
	}
}

// Rule: a lease beyond the limit of a pool is refused, unless a lease that may have ended makes room for it.
func TestLeasesWithinThePool(t *testing.T) {
	ids := make([]pawl.ID, 0, 4)
	for len(ids) < cap(ids) {
		if id := pawl.NewID(time.Now()); JobOf(id).Queue == "held" && JobOf(id).Delay == 0 && JobOf(id).Key == "" {
			ids = append(ids, id)
		}
	}
	story := ""
	for _, id := range ids[:3] {
		story += fmt.Sprintf("begin enqueue 0 %v; done enqueue 0 %v; begin fetch 1 1; done fetch 1 %v; ", id, id, id)
	}
	last := fmt.Sprintf("begin enqueue 0 %v; done enqueue 0 %v; begin fetch 2 1; done fetch 2 %v", ids[3], ids[3], ids[3])
	require.ErrorContains(t, hear(new(Oracle), story+last, ids[0], ids[0]), `4 jobs of pool "shared" are leased`)
	require.NoError(t, hear(new(Oracle), story+"begin ack 1 A; "+last, ids[0], ids[0]))
}
