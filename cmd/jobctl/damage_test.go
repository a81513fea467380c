package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl/internal/race"
)

// hangLimit ends a command that does not end by itself. The guarantee is 2 s; a busy machine may
// be slower through no fault of jobctl.
const hangLimit = time.Minute

// No damage to a file makes a reading command panic, hang, or return an undocumented exit code.
func TestReadingDamagedFileNeverCrashes(t *testing.T) { runDamages(t, "reading") }

// The same holds for a writing command.
func TestRetryingInDamagedFileNeverCrashes(t *testing.T) {
	runDamages(t, "retrying")
}

// runDamages runs commands on damaged files in separate processes: some faults cannot be
// recovered from.
func runDamages(t *testing.T, commands string) {
	t.Parallel()
	const processes = 2
	damages := race.Fewer(150)
	if testing.Short() {
		damages = 60
	}
	if n, err := strconv.Atoi(os.Getenv("JOBCTL_DAMAGES")); err == nil {
		damages = n
	}
	for p := range processes {
		t.Run(fmt.Sprintf("part %d", p), func(t *testing.T) {
			t.Parallel()
			for from := p; from < damages; { // a process that dies costs one damage, not the rest
				cmd := exec.Command(os.Args[0], "-test.run=^TestDamageProcess$", "-test.v")
				cmd.Env = append(os.Environ(), "GOTRACEBACK=all", fmt.Sprintf("JOBCTL_DAMAGE_PROCESS=%s %d %d %d", commands, from, processes, damages))
				out, err := cmd.CombinedOutput()
				if err == nil {
					return
				}
				last, what := lastCase(out)
				t.Errorf("%s\n%s", what, tail(out, what))
				if last < from {
					return
				}
				from = last + processes
			}
		})
	}
}

// lastCase finds what the process did before it crashed.
func lastCase(out []byte) (number int, what string) {
	number = -1
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "case "); ok {
			fmt.Sscan(rest, &number)
			what = lines.Text()
		}
	}
	return number, what
}

// tail returns the output of the process after its last case.
func tail(out []byte, what string) []byte {
	if at := bytes.LastIndex(out, []byte(what)); at >= 0 {
		out = out[at+len(what):]
	}
	return out[:min(len(out), 8000)]
}

// TestDamageProcess is the other process of runDamages.
func TestDamageProcess(t *testing.T) {
	var commands string
	var from, step, to int
	if n, _ := fmt.Sscan(os.Getenv("JOBCTL_DAMAGE_PROCESS"), &commands, &from, &step, &to); n != 4 {
		t.Skip("run by the tests above")
	}
	lines := reading()
	if commands == "retrying" {
		lines = retrying()
	}
	t.Chdir(t.TempDir())
	buildAt(t, "app.db", large)
	closed, crashed := inOrder(t, "app.db", false), inOrder(t, "app.db", true)
	for n := from; n < to; n += step {
		whole := closed
		if n/6%2 == 1 {
			whole = crashed
		}
		damaged, how := damageFile(whole, n)
		for _, line := range lines {
			fmt.Printf("case %d: %s: %s\n", n, how, line)
			_ = os.Remove("bad.db") // a new file, whatever became of the lock of the old one
			require.NoError(t, os.WriteFile("bad.db", damaged, 0o600))
			watch := time.AfterFunc(hangLimit, func() { panic("it hangs") })
			got := jobctl(t, append([]string{"--db", "bad.db"}, words(line)...)...)
			watch.Stop()
			if got.code < exitOK || got.code > exitConflict || got.code == exitUsage || got.code == exitLocked {
				t.Fatalf("exit %d: %s", got.code, got.stderr)
			}
			if got.code != exitOK && got.stderr == "" {
				t.Fatalf("exit %d without a word", got.code)
			}
		}
	}
}

// inOrder copies a queue file page by page in the same order every time, so that the n-th damage
// hits the same place in each run. The writer of a crashed file did not close it: the file has
// no list of free pages.
func inOrder(t *testing.T, path string, crashed bool) []byte {
	t.Helper()
	from, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	require.NoError(t, err)
	to, err := bbolt.Open("copy.db", 0o600, &bbolt.Options{FreelistType: bbolt.FreelistArrayType, NoFreelistSync: crashed})
	require.NoError(t, err)
	root := []byte("pawl")
	require.NoError(t, from.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(root).ForEachBucket(func(name []byte) error {
			source := tx.Bucket(root).Bucket(name)
			return to.Update(func(tx *bbolt.Tx) error { // one bucket a transaction: bbolt writes several in any order
				parent, err := tx.CreateBucketIfNotExists(root)
				if err != nil {
					return err
				}
				target, err := parent.CreateBucket(name)
				if err != nil {
					return err
				}
				if err := target.SetSequence(source.Sequence()); err != nil {
					return err
				}
				return source.ForEach(target.Put)
			})
		})
	}))
	require.NoError(t, from.Close())
	require.NoError(t, to.Close())
	copied, err := os.ReadFile("copy.db")
	require.NoError(t, err)
	require.NoError(t, os.Remove("copy.db"))
	return copied
}

// damageFile returns the n-th damage to a file: usually one flipped bit, otherwise a number over
// another number, or a page over another page.
func damageFile(whole []byte, n int) (damaged []byte, how string) {
	random := rand.New(rand.NewPCG(uint64(n), 1))
	damaged = bytes.Clone(whole)
	page := os.Getpagesize()
	switch n % 6 {
	case 0:
		at := random.IntN(len(whole)-8) &^ 7
		copy(damaged[at:], []byte{byte(random.IntN(40)), 0, 0, 0, 0, 0, 0, 0})
		return damaged, fmt.Sprintf("a small number at byte %d", at)
	case 1:
		from, to := random.IntN(len(whole)/page), 2+random.IntN(len(whole)/page-2)
		copy(damaged[to*page:(to+1)*page], whole[from*page:])
		return damaged, fmt.Sprintf("page %d over page %d", from, to)
	case 2:
		at := 2*page + random.IntN(len(whole)/page-2)*page + random.IntN(128) // where a page says what it is
		damaged[at] ^= 1 << random.IntN(8)
		return damaged, fmt.Sprintf("a flipped bit at the head of page %d, byte %d", at/page, at%page)
	}
	at := random.IntN(len(whole))
	damaged[at] ^= 1 << random.IntN(8)
	return damaged, fmt.Sprintf("a flipped bit in page %d, byte %d", at/page, at%page)
}
