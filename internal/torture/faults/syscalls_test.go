package faults

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/torture/harness"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// A system call of each kind fails in one of its ways, and each promise is kept.
func TestSyscalls(t *testing.T) {
	if why := missingSupervision(); why != "" {
		t.Skip(why)
	}
	all, err := everyFault(t.Context(), fixedScript)
	require.NoError(t, err)
	require.Greater(t, len(all), faultsOfScript/2)
	require.LessOrEqual(t, len(all), faultsOfScript, "the family asks for all of them")
	byKind := make(map[string][]at)
	for _, a := range all {
		byKind[a.kind] = append(byKind[a.kind], a)
	}
	var chosen []at
	for n, kind := range slices.Sorted(maps.Keys(byKind)) {
		ways := len(faultsOf(kind))
		middle := len(byKind[kind]) / ways / 2 * ways
		chosen = append(chosen, byKind[kind][middle+n%ways])
	}
	require.GreaterOrEqual(t, len(chosen), 15)
	tryFamily(t, &harness.Family{Name: "syscalls", Prepare: func(*harness.Env) (func(*harness.Try) error, error) {
		return func(t *harness.Try) error { return faulty(t, fixedScript, chosen[t.Seed%uint64(len(chosen))]) }, nil
	}}, len(chosen))
}

// Seeds in a row try each fault once.
func TestPickPicksAll(t *testing.T) {
	for _, n := range []int{1, 2, 700, 1901, 2750} {
		all := make([]at, n)
		for i := range all {
			all[i].n = i
		}
		seen := make(map[int]bool)
		for seed := range n {
			seen[pick(all, uint64(seed+12345)).n] = true
		}
		require.Len(t, seen, n)
	}
}

// A sync of the queue's file, of its folder and of a new file fails, and so does a call by
// which the queue is opened again.
func TestSyncs(t *testing.T) {
	if why := missingSupervision(); why != "" {
		t.Skip(why)
	}
	every, err := everyFault(t.Context(), fixedScript)
	require.NoError(t, err)
	all := syncFaults(every)
	more, err := wayBackFaults(t.Context(), all)
	require.NoError(t, err)
	require.LessOrEqual(t, len(all)+len(more), syncsOfScript, "the family asks for all of them")
	chosen := []at{all[0], all[3], all[len(all)/2], all[len(all)/2+1], all[len(all)-1]}
	for n := 0; n < len(more); n += len(more) / 6 {
		chosen = append(chosen, more[n])
	}
	tryFamily(t, &harness.Family{Name: "syncs", Prepare: func(*harness.Env) (func(*harness.Try) error, error) {
		return func(t *harness.Try) error { return faulty(t, fixedScript, chosen[t.Seed%uint64(len(chosen))]) }, nil
	}}, len(chosen))
}

// What a run with a fault must not do is a violation.
func TestJudgeCanFail(t *testing.T) {
	sync := at{call: call{kind: "fdatasync", file: queueName}, fault: failing(syscall.EIO)}
	write := at{call: call{kind: "pwrite64", file: queueName}, fault: failing(syscall.EIO)}
	var u user
	u.rand = newRand(1)
	id := u.newID().String()
	for _, test := range []struct {
		rule string
		at   at
		ran  ran
		left string // a file beside the queue's
		says string // "" for no violation
	}{
		{rule: "nothing is wrong", at: write},
		{rule: "no panic", at: write, ran: ran{stderr: "panic: boom"}, says: "boom"},
		{rule: "the process ends well", at: write, ran: ran{ended: os.ErrInvalid}, says: "ended"},
		{rule: "what was acknowledged is there", at: write,
			ran: ran{lines: []string{"begin enqueue 0 " + id, "done enqueue 0 " + id}}, says: "is lost"},
		{rule: "no temporary file is left", at: write, left: ".pawl-new-1", says: "it left"},
		{rule: "but that which could not be removed", at: at{call: call{kind: "unlinkat"}, fault: failing(syscall.EIO)}, left: ".pawl-new-1"},
		{rule: "no mark is left", at: write, left: queueName + "-mark", says: "files remain"},
		{rule: "a backup that was made is there", at: write, ran: ran{lines: []string{"note " + backupDone}}, says: "the file is absent"},
		{rule: "a backup that was not made is not there", at: write, ran: ran{lines: []string{"note " + backupFailed}}, left: backupName, says: "the file exists"},
		{rule: "a backup is whole", at: write, left: backupName, says: "the backup"},
		{rule: "somebody hears of a failed sync", at: sync, says: "was not reported"},
		{rule: "by a poisoned queue", at: sync, ran: ran{lines: []string{"note " + poisoned}}},
		{rule: "by the next open", at: sync, ran: ran{calls: []call{{kind: "renameat", file: "copy", to: queueName}}}},
		{rule: "nothing is written behind a failed sync", at: sync,
			ran: ran{lines: []string{"note " + poisoned}, calls: []call{{kind: "pwrite64", file: queueName}}}, says: "was written to"},
		{rule: "but to another file in its place", at: sync,
			ran: ran{calls: []call{{kind: "renameat", file: "copy", to: queueName}, {kind: "pwrite64", file: queueName}}}},
		{rule: "a file that was not synced gets no name", at: at{call: call{kind: "fsync", file: ".pawl-new-1"}, fault: failing(syscall.EIO)},
			ran: ran{calls: []call{{kind: "linkat", file: ".pawl-new-1", to: queueName}}}, says: "got the name"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			dir := t.TempDir()
			if test.left != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, test.left), []byte("?"), 0o600))
			}
			test.ran.calls = append([]call{test.at.call}, test.ran.calls...)
			p := &injection{at: test.at}
			err := p.judge(t.Context(), dir, &test.ran)
			if test.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.says)
			}
		})
	}
}

// The family finds a violation if its workload does not keep a promise.
func TestFamilyCanFail(t *testing.T) {
	if why := missingSupervision(); why != "" {
		t.Skip(why)
	}
	f := &harness.Family{Name: "planted", Prepare: func(*harness.Env) (func(*harness.Try) error, error) {
		return func(t *harness.Try) error {
			p := &injection{at: at{call: call{kind: "openat", file: queueName}}, index: -1, again: -1}
			r, err := supervise(t.Ctx, t.Dir, p.kinds(), p.plan, "faults-planted", filepath.Join(t.Dir, queueName))
			if err != nil {
				return err
			}
			return p.judge(t.Ctx, t.Dir, &r)
		}, nil
	}}
	r := f.Run(t.Context(), harness.Plan{Goal: 1, Seed: 1})
	require.NotZero(t, r.Violations)
	require.ErrorContains(t, r.First[0].Err, "is lost")
	require.NoError(t, os.RemoveAll(filepath.Dir(r.First[0].Dir)))
}

// A child that says that it stored a job, and did not.
func init() {
	harness.Role("faults-planted", func(args harness.Args) error {
		u := newUser(1)
		s := &script{user: u, path: args[0]}
		s.open()
		id := s.newID()
		harness.Emit("begin enqueue 0", id)
		harness.Emit("done enqueue 0", id)
		s.close()
		return nil
	})
}
