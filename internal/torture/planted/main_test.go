package planted

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/torture/crash"
	"github.com/gopawl/pawl/internal/torture/harness"
)

// liar finds nothing, however broken the queue is; doubter finds something where there is
// nothing. They are families of this test program only.
var (
	liar    = &harness.Family{Name: "liar", Unit: "tries", Prepare: trying(nil)}
	doubter = &harness.Family{Name: "doubter", Unit: "tries", Prepare: trying(errors.New("doubt"))}
	idle    = &harness.Family{Name: "idle", Unit: "tries", Missing: func() string { return "needs rest" }}
)

func trying(err error) func(*harness.Env) (func(*harness.Try) error, error) {
	return func(*harness.Env) (func(*harness.Try) error, error) {
		return func(*harness.Try) error { return err }, nil
	}
}

// family is what the tests run. It registers the role.
var family = Over([]*harness.Family{crash.Kill, liar, doubter, idle})

func TestMain(m *testing.M) {
	harness.Main()
	m.Run()
}

// plan is for one fault after the other.
func plan(t *testing.T, units int) harness.Plan {
	deadline, ok := t.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Minute)
	}
	return harness.Plan{Goal: units, Until: deadline}
}

// pick is some of the faults, by their names.
func pick(t *testing.T, names ...string) (some []Fault) {
	for _, name := range names {
		for _, f := range faults() {
			if f.Name == name {
				some = append(some, f)
			}
		}
	}
	require.Len(t, some, len(names))
	return some
}

// of is the family with these faults alone, in a program that has all of them.
func of(program string, faults []Fault) *harness.Family {
	f := *family
	f.PR, f.Missing = len(faults), nil
	f.Prepare = func(env *harness.Env) (func(*harness.Try) error, error) {
		p := planting{program, faults}
		return p.try, p.control(env)
	}
	return &f
}

// Every fault finds its place in the source as it is, and all of them build together. Of
// the program that they make two faults are found by kill in its first cycles; and one that
// a kill cannot show is not found, which is a violation.
func TestProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: it builds a program")
	}
	program, err := build(t.Context(), t.TempDir(), faults())
	require.NoError(t, err)

	some := pick(t, "an ack leaves the lease", "loses an attempt")
	for i := range some {
		some[i].By = []Hunt{{Family: "kill", Units: 20}}
	}
	result := of(program, some).Run(t.Context(), plan(t, len(some)))
	require.Empty(t, result.First)
	require.GreaterOrEqual(t, result.Tried, len(some), "two at a time, so that there may be one more")

	hidden := pick(t, "no sync")
	hidden[0].By = []Hunt{{Family: "kill", Units: 5}}
	result = of(program, hidden).Run(t.Context(), plan(t, 1))
	require.NotEmpty(t, result.First)
	require.ErrorContains(t, result.First[0].Err, `fault "no sync"`)
	require.ErrorContains(t, result.First[0].Err, "is not found by family kill, in 3 hunts: nothing in")
}

func TestFaultsAreDescribed(t *testing.T) {
	names := make(map[string]bool)
	for _, f := range faults() {
		require.False(t, names[f.Name], "two faults are named %q", f.Name)
		names[f.Name] = true
		require.NotEmpty(t, f.Breaks, f.Name)
		require.NotEmpty(t, f.Edits, f.Name)
		require.NotEmpty(t, f.By, "nobody has to find %q", f.Name)
	}
}

func TestRewritten(t *testing.T) {
	one := func(text, new string) []edit { return []edit{{Edit{Old: text, New: new}, "one"}} }
	for _, test := range []struct {
		rule  string
		edits []edit
		want  string // "" for an error
	}{
		{"the place is found once", one("b", "if PLANTED { b }"), `a if planted("one") { b } c c`},
		{"a place that is gone is an error", one("x", "PLANTED"), ""},
		{"a place that is there twice is an error", one("c", "PLANTED"), ""},
		{"a fault that would be in every process is an error", one("b", "B"), ""},
		{"places that overlap are an error", append(one("a b", "PLANTED"), edit{Edit{Old: "b c", New: "PLANTED"}, "two"}), ""},
		{"one place for two faults is an error", append(one("a b", "PLANTED"), edit{Edit{Old: "a", New: "PLANTED"}, "two"}), ""},
		{"the order of edits does not matter", append(one("b", "PLANTED"), edit{Edit{Old: "a", New: "PLANTED"}, "two"}), `planted("two") planted("one") c c`},
	} {
		got, err := rewritten("a b c c", test.edits)
		require.Equal(t, test.want, got, test.rule)
		require.Equal(t, test.want == "", err != nil, "%s: %v", test.rule, err)
	}
}

// What a family says is told apart: a violation, nothing, and that nothing was tried.
func TestVerdict(t *testing.T) {
	family := func(f *harness.Family, units int) string {
		result := f.Run(t.Context(), plan(t, units))
		return verdict(&result)
	}
	broken := &harness.Family{Name: "broken", Unit: "tries", Prepare: func(*harness.Env) (func(*harness.Try) error, error) {
		return nil, errors.New("no luck")
	}}
	require.Equal(t, "nothing in 3 tries", family(&harness.Family{Unit: "tries", Parallel: 1, Prepare: liar.Prepare}, 3))
	require.Equal(t, "found doubt", family(doubter, 3))
	require.Equal(t, "untried needs rest", family(idle, 3))
	require.Equal(t, "untried could not be tried: no luck", family(broken, 3))
	require.Equal(t, "untried 0 of 3 tries before time was up",
		verdict(&harness.Result{Family: liar, Goal: 3}))
}
