package pages_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/pages"
	"github.com/gopawl/pawl/internal/race"
)

// Whatever the bytes of a file, a check ends without a panic, and bbolt does so too with
// each file that passes.
func TestCheckOfMutations(t *testing.T) {
	path := filepath.Join(folder(t), "mutant.db")
	for _, freelist := range []bool{true, false} {
		sound := sample(t, freelist)
		passed := 0
		seeds := race.Fewer(80)
		for class := range mutations {
			for seed := range uint64(seeds) {
				r := rand.New(rand.NewPCG(seed, uint64(class)))
				file := mutate(r, bytes.Clone(sound), class)
				if r.IntN(3) == 0 {
					file = mutate(r, file, r.IntN(mutations-5)) // none that changes the length
				}
				shape := check(t, file, pages.Shape)
				err := check(t, file, pages.Full)
				if shape != nil {
					require.Error(t, err, "class %d, seed %d: Full refuses what Shape refuses: %v", class, seed, shape)
				}
				if err != nil {
					require.True(t, errors.Is(err, pages.ErrDamaged) || errors.Is(err, pages.ErrForeign), "%v", err)
					continue
				}
				passed++
				require.NoError(t, os.WriteFile(path, file, 0o600))
				require.NoError(t, exercise(path, seed%2 == 0), "class %d, seed %d, freelist %v", class, seed, freelist)
			}
		}
		require.Greater(t, passed, mutations*seeds/20, "hardly any file passed")
		require.Less(t, passed, mutations*seeds*19/20, "hardly any file was refused")
		t.Logf("freelist %v: %d of %d files passed", freelist, passed, mutations*seeds)
	}
}

func FuzzCheck(f *testing.F) {
	for _, freelist := range []bool{true, false} {
		sound := sample(f, freelist)
		f.Add(sound)
		for class := range mutations {
			f.Add(mutate(rand.New(rand.NewPCG(1, uint64(class))), bytes.Clone(sound), class))
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		err := check(t, file, pages.Full)
		if err != nil {
			require.True(t, errors.Is(err, pages.ErrDamaged) || errors.Is(err, pages.ErrForeign), "%v", err)
			walkAll(t, file)
			return
		}
		require.NoError(t, check(t, file, pages.Shape))
		path := filepath.Join(folder(t), "fuzzed.db")
		require.NoError(t, os.WriteFile(path, file, 0o600))
		require.NoError(t, exercise(path, true))
	})
}
