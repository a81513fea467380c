package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// family is one whose tries are a function.
func family(try func(*Try) error) *Family {
	return &Family{Name: "test", Unit: "tries", Parallel: 2, Prepare: func(*Env) (func(*Try) error, error) { return try, nil }}
}

// plan has time enough.
func plan(goal int) Plan { return Plan{Goal: goal, Seed: 100, Time: time.Hour} }

var errBroken = errors.New("broken")

// Rule: all tries are counted, each has a different seed, and none is left.
func TestTriesAreCounted(t *testing.T) {
	seeds := make(chan uint64, 100)
	var dir string
	f := family(func(t *Try) error {
		seeds <- t.Seed
		dir = filepath.Dir(t.Dir)
		return os.WriteFile(filepath.Join(t.Dir, "file"), nil, 0o600)
	})
	f.Parallel = 1
	r := f.Run(t.Context(), plan(20))
	require.Equal(t, 20, r.Tried)
	require.False(t, r.Failed())
	require.False(t, r.Short())
	require.NoDirExists(t, dir)
	for want := uint64(100); want < 120; want++ {
		require.Equal(t, want, <-seeds)
	}
}

// Rule: a try may count for many, and looks whether it is enough.
func TestTryThatCountsForMany(t *testing.T) {
	f := family(func(t *Try) error {
		for !t.Enough() {
			t.Count(7)
		}
		return nil
	})
	f.Parallel = 1
	require.Equal(t, 21, f.Run(t.Context(), plan(20)).Tried)
}

// Rule: an error is a violation that is reported with its seed, its files are kept, and its
// try does not count as tried. A panic is an error.
func TestViolations(t *testing.T) {
	for _, try := range []func(*Try) error{
		func(*Try) error { return errBroken },
		func(*Try) error { panic(errBroken) },
		func(t *Try) error { t.Violate(errBroken); t.Count(0); return nil },
	} {
		f := family(try)
		f.Parallel = 1
		r := f.Run(t.Context(), plan(1000))
		require.True(t, r.Failed())
		require.Zero(t, r.Tried)
		require.Equal(t, maxFirst, r.Violations, "a family that only fails is ended")
		require.Equal(t, uint64(100), r.First[0].Seed)
		require.ErrorContains(t, r.First[0].Err, "broken")
		require.DirExists(t, r.First[0].Dir)
		require.NoError(t, os.RemoveAll(filepath.Dir(r.First[0].Dir)))
	}
}

// Rule: a seed repeats one try.
func TestOneTry(t *testing.T) {
	var seeds []uint64
	p := plan(1000)
	p.Once, p.Seed = true, 42
	r := family(func(t *Try) error { seeds = append(seeds, t.Seed); return nil }).Run(t.Context(), p)
	require.Equal(t, []uint64{42}, seeds)
	require.Equal(t, 1, r.Tried)
	require.False(t, r.Short())
}

// Rule: what cannot be tried says why, and is never counted as tried.
func TestWhatCannotBeTried(t *testing.T) {
	f := family(func(*Try) error { panic("it is tried") })
	f.Missing = func() string { return "a tool" }
	r := f.Run(t.Context(), plan(10))
	require.Equal(t, "a tool", r.Missing)
	require.False(t, r.Failed())

	f = family(nil)
	f.Prepare = func(*Env) (func(*Try) error, error) { return nil, errBroken }
	r = f.Run(t.Context(), plan(10))
	require.True(t, r.Failed(), "what breaks on the way is no success")
	require.ErrorIs(t, r.First[0].Err, ErrUntried)
}

// Rule: when time is up a family ends, its result says that tries are left, and a try that
// was cut short is no violation.
func TestTimeIsUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	f := family(func(t *Try) error {
		if tries++; tries > 3 {
			cancel()
			return context.Canceled
		}
		return nil
	})
	f.Parallel = 1
	r := f.Run(ctx, plan(10))
	require.Equal(t, 3, r.Tried)
	require.True(t, r.Short())
	require.False(t, r.Failed())
}

// Rule: if only the first violation is asked for, the family ends with it, even during a try.
func TestFirst(t *testing.T) {
	f := family(func(t *Try) error {
		t.Violate(errBroken)
		if !t.Enough() {
			return errors.New("the try goes on")
		}
		return nil
	})
	f.Parallel = 1
	p := plan(10)
	p.First = true
	r := f.Run(t.Context(), p)
	require.Equal(t, 1, r.Violations)
	require.ErrorIs(t, r.First[0].Err, errBroken)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(filepath.Dir(r.First[0].Dir))) })
}

// Rule: time that is up while a family prepares itself is no violation; nothing was tried.
func TestTimeIsUpBeforehand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := family(nil)
	f.Prepare = func(*Env) (func(*Try) error, error) {
		cancel()
		return nil, errBroken
	}
	r := f.Run(ctx, plan(10))
	require.False(t, r.Failed())
	require.Zero(t, r.Tried)
}

// Rule: the setup of a family, which may build programs, takes none of the time of its tries.
func TestSetupTakesNoTimeOfTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := family(func(t *Try) error { return t.Ctx.Err() })
		f.Parallel = 1
		prepare := f.Prepare
		f.Prepare = func(env *Env) (func(*Try) error, error) {
			<-time.After(10 * time.Minute) // virtual
			return prepare(env)
		}
		p := plan(10)
		p.Time = time.Minute
		r := f.Run(t.Context(), p)
		require.Equal(t, 10, r.Tried)
		require.Equal(t, 10*time.Minute, r.Setup)
	})
}

// Rule: what a family prepared is cleaned up, the last first.
func TestCleanup(t *testing.T) {
	var order []int
	f := family(nil)
	f.Prepare = func(env *Env) (func(*Try) error, error) {
		env.Cleanup(func() { order = append(order, 1) })
		env.Cleanup(func() { order = append(order, 2) })
		require.DirExists(t, env.Dir)
		require.DirExists(t, env.Disk)
		return func(*Try) error { return nil }, nil
	}
	f.Run(t.Context(), plan(1))
	require.Equal(t, []int{2, 1}, order)
}

// Rule: the table names every family, what was tried against what was asked for, and what
// is missing; a violation comes with the command that repeats it.
func TestTable(t *testing.T) {
	kill := &Family{Name: "kill", Goals: "R2", Method: "SIGKILL", Unit: "cycles"}
	power := &Family{Name: "power", Goals: "R1", Method: "images", Unit: "images"}
	results := []Result{
		{Family: kill, Goal: 500, Tried: 1234, Violations: 7, Took: time.Minute, First: []Violation{{Seed: 9, Dir: "there", Err: errBroken}}},
		{Family: power, Goal: 25_000, Missing: "strace is not installed"},
	}
	var text strings.Builder
	Table(&text, results)
	require.Equal(t, strings.Join([]string{
		"family  goals         tried      asked for  violations                     rate",
		"kill    R2     1 234 cycles            500           7                1 234/min",
		"power   R1        not tried  25 000 images              strace is not installed",
		"",
	}, "\n"), text.String())

	text.Reset()
	Markdown(&text, results)
	require.Contains(t, text.String(), "| kill | R2 | SIGKILL | 1 234 cycles | 500 | 7 | 1 234/min |\n")

	text.Reset()
	Violations(&text, "torture", results)
	require.Contains(t, text.String(), "kill, seed 9: broken\n  repeat: torture -family kill -seed 9\n  its files: there\n")
	require.Contains(t, text.String(), "kill: 6 more")
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1 000", 1234567: "1 234 567", -1000: "-1 000"} {
		require.Equal(t, want, Thousands(n))
	}
}
