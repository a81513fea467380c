package crash

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/torture/harness"
)

// A file that killed processes have used has everything that was acknowledged. Every file
// that ever gets its name is whole.
func TestFamilies(t *testing.T) {
	for f, goal := range map[*harness.Family]int{Kill: 10, Admin: 12} {
		t.Run(f.Name, func(t *testing.T) {
			r := f.Run(t.Context(), harness.Plan{Goal: goal, Seed: 1})
			for _, v := range r.First {
				t.Errorf("seed %d: %v", v.Seed, v.Err)
			}
			require.GreaterOrEqual(t, r.Tried, goal)
		})
	}
}

// What a kill must not leave is a violation.
func TestSceneCanFail(t *testing.T) {
	for _, test := range []struct {
		rule   string
		doctor func(t *testing.T, dir, path string, want contents)
		says   string
	}{
		{"nothing is wrong", func(*testing.T, string, string, contents) {}, ""},
		{"a job is lost", func(_ *testing.T, _, _ string, want contents) { want[pawl.ID{1}] = aJob{kind: "k"} }, "is lost"},
		{"there is a job too many", func(_ *testing.T, _, _ string, want contents) {
			for id := range want {
				delete(want, id)
				return
			}
		}, "should be"},
		{"a crash was counted twice", func(_ *testing.T, _, _ string, want contents) {
			for id, job := range want {
				job.crashes++
				want[id] = job
				return
			}
		}, "crashes:"},
		{"the file is gone", func(t *testing.T, _, path string, _ contents) { require.NoError(t, os.Remove(path)) }, "is lost"},
		{"a copy is not whole", func(t *testing.T, _, path string, _ contents) {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path+compacted, b[:len(b)/2], 0o600))
		}, "compacted"},
		{"temporary files pile up", func(t *testing.T, dir, _ string, _ contents) {
			for n := range 9 {
				require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(".pawl-new-", n)), nil, 0o600))
			}
		}, "temporary files"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			f := &harness.Family{Name: "planted", Prepare: func(*harness.Env) (func(*harness.Try) error, error) {
				return func(try *harness.Try) error {
					path := filepath.Join(try.Dir, "jobs.db")
					if err := mixedFile(path); err != nil {
						return err
					}
					want, err := read(try.Ctx, path)
					if err != nil {
						return err
					}
					s := &scene{name: "compaction", want: maps.Clone(want), others: []string{compacted}}
					test.doctor(t, try.Dir, path, s.want)
					return s.check(try, path, nil, 1)
				}, nil
			}}
			r := f.Run(t.Context(), harness.Plan{Goal: 1, Seed: 1, Once: true})
			if test.says == "" {
				require.Zero(t, r.Violations)
				return
			}
			require.Equal(t, 1, r.Violations)
			require.ErrorContains(t, r.First[0].Err, test.says)
			require.NoError(t, os.RemoveAll(filepath.Dir(r.First[0].Dir)))
		})
	}
}
