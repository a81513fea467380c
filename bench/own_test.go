package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopawl/pawl/bench/system"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	os.Exit(m.Run())
}

var tinySize = size{
	limit: 50 * time.Millisecond, idle: 300 * time.Millisecond, million: 5000,
	backlog: []int{smallestBacklog, 100_000}, reader: 100 * time.Millisecond,
}

// ownMetrics are those of each case: on pawl, and on the ceiling.
var ownMetrics = map[string][2][]string{
	"backlog-10k":  {{"enqueue", "drain"}, {"enqueue", "drain"}},
	"backlog-100k": {{"enqueue", "drain", "enqueue-to-10k", "drain-to-10k"}, {"enqueue", "drain"}},
	"due":          {{"enqueue-p50", "enqueue-p99", "all-ready"}, {"lone-commit"}},
	"open": {{"clean-warm", "killed-unleased-warm", "killed-unleased-cold", "killed-warm", "killed-cold",
		"recovered", "heap"}, nil},
	"idle": {{"commits", "wake-ups", "switches", "cpu",
		"wake-ups-empty-program", "switches-empty-program", "cpu-empty-program"}, nil},
	"space":  {{"file", "jobs-reader", "file-reader"}, nil},
	"allocs": {{"allocs", "bytes"}, {"allocs", "bytes"}},
	"writes": {{"written"}, {"written"}},
}

func TestOwnCases(t *testing.T) {
	for _, c := range ownCases() {
		if !tinySize.has(&c) {
			continue
		}
		own := c.own
		if own == nil {
			own = func(tr *trial) error {
				return tr.onPawl(tr.dir, func(q *system.PawlQueue) error { return c.peers(tr, q) })
			}
		}
		want, ok := ownMetrics[c.name]
		if !ok {
			t.Errorf("case %s is not in the table of this test", c.name)
		}
		for i, run := range []func(*trial) error{own, c.ceiling} {
			if run == nil {
				continue
			}
			t.Run(c.name+"/"+[]string{"pawl", ceilingName}[i], func(t *testing.T) {
				tr := &trial{size: tinySize, ctx: context.Background(), dir: t.TempDir()}
				err := run(tr)
				if errors.Is(err, errors.ErrUnsupported) {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				var metrics []string
				for _, s := range tr.samples {
					metrics = append(metrics, s.metric)
					if s.value < 0 || s.unit == "" {
						t.Errorf("sample %+v", s)
					}
				}
				if !slices.Equal(metrics, want[i]) {
					t.Errorf("got %q, want %q", metrics, want[i])
				}
			})
		}
	}
}

// slowQueue does its jobs at their times.
type slowQueue struct {
	system.Queue
	at []time.Duration
}

func (q slowQueue) Work(ctx context.Context, _ int, do func([]byte)) error {
	for _, after := range q.at {
		select {
		case <-time.After(after):
			do(nil)
		case <-ctx.Done():
			return nil
		}
	}
	<-ctx.Done()
	return nil
}

// Rule: a drain ends at its limit, but not before its first job.
func TestDrainHasAJob(t *testing.T) {
	for _, test := range []struct {
		at   []time.Duration // each from the one before
		done int
		took time.Duration
	}{
		{[]time.Duration{time.Millisecond, time.Millisecond, time.Second}, 2, 2 * time.Millisecond},
		{[]time.Duration{time.Second, time.Second}, 1, time.Second},
		{nil, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := &trial{size: size{limit: 50 * time.Millisecond}, ctx: t.Context()}
			done, took, err := tr.drain(slowQueue{at: test.at}, 1, 9)
			if (err != nil) != (test.done == 0) {
				t.Error(err)
			}
			if done != test.done || took != test.took {
				t.Errorf("%d jobs in %v, want %d in %v", done, took, test.done, test.took)
			}
		})
	}
}

func TestRoomRefusesWhatTheDiskCannotHold(t *testing.T) {
	tr := &trial{dir: t.TempDir()}
	if _, err := freeSpace(tr.dir); err != nil {
		t.Skip(err)
	}
	if err := tr.room(1 << 50); err == nil {
		t.Error("there is room for 2^50 jobs")
	}
	if err := tr.room(1); err != nil {
		t.Error(err)
	}
}

func TestLastCommitCountsCommits(t *testing.T) {
	c, err := openCeiling(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	before, err := lastCommit(c.db.Path())
	if err != nil {
		t.Fatal(err)
	}
	const commits = 3
	for range commits {
		if err := c.step(1, 0, small); err != nil {
			t.Fatal(err)
		}
	}
	after, err := lastCommit(c.db.Path())
	if err != nil {
		t.Fatal(err)
	}
	if after-before != commits {
		t.Errorf("got %d commits, want %d", after-before, commits)
	}
}

func TestChildEndsWithItsParent(t *testing.T) {
	tr := &trial{ctx: t.Context()}
	p, err := tr.start(roleEmpty)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
}
