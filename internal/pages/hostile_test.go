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
				err := check(t, file)
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

// FuzzCheck looks for a damage at which a check or a walk panics, or that passes the check and
// that bbolt then stumbles over. The file is a sound one, damaged as class and seed say, or not
// at all, and then changed by the bytes: each change is an offset (3) and what is put there (3).
// So the fuzzer need not carry a whole file with it.
func FuzzCheck(f *testing.F) {
	sound := map[bool][]byte{true: sample(f, true), false: sample(f, false)}
	path := filepath.Join(folder(f), "fuzzed.db")
	for freelist := range sound {
		f.Add(freelist, uint8(mutations), uint64(0), []byte{})
		for class := range mutations {
			f.Add(freelist, uint8(class), uint64(1), []byte{})
		}
		for page := range len(sound[freelist]) / pageSize {
			at := page * pageSize // the head of a page, and its first element
			f.Add(freelist, uint8(mutations), uint64(page), []byte{byte(at >> 16), byte(at >> 8), 8, 2, 0, 1, byte(at >> 16), byte(at >> 8), 16, 255, 255, 0})
		}
	}
	f.Fuzz(func(t *testing.T, freelist bool, class uint8, seed uint64, changes []byte) {
		file := bytes.Clone(sound[freelist])
		if class := int(class) % (mutations + 1); class < mutations {
			file = mutate(rand.New(rand.NewPCG(seed, uint64(class))), file, class)
		}
		for ; len(changes) >= 6 && len(file) > 3; changes = changes[6:] {
			at := int(changes[0])<<16 | int(changes[1])<<8 | int(changes[2])
			copy(file[at%(len(file)-3):], changes[3:6])
		}
		err := check(t, file)
		if err != nil {
			require.True(t, errors.Is(err, pages.ErrDamaged) || errors.Is(err, pages.ErrForeign), "%v", err)
			walkAll(t, file)
			return
		}
		require.NoError(t, os.WriteFile(path, file, 0o600))
		require.NoError(t, exercise(path, true))
	})
}
