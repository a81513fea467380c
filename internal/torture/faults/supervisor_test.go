//go:build linux && (amd64 || arm64)

package faults

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// needSupervision skips a test where system calls cannot be supervised.
func needSupervision(t *testing.T) {
	t.Helper()
	if why := missingSupervision(); why != "" {
		t.Skip(why)
	}
}

// Each fault happens to the call for which it is planned, and to no other.
func TestSupervise(t *testing.T) {
	needSupervision(t)
	for _, test := range []struct {
		rule  string
		fault fault // of the first write
		next  fault // of the second one
		says  string
		left  string
		calls []string
	}{
		{rule: "nothing happens", left: "nothing", calls: []string{"openat", "write", "close"}},
		{rule: "a call fails, and was not carried out", fault: failing(syscall.EIO), says: "input/output error", calls: []string{"openat", "write", "close"}},
		{rule: "a write is short, and the rest follows", fault: fault{part: true}, left: "nothing", calls: []string{"openat", "write", "write", "close"}},
		{rule: "a write is short, and the rest fails", fault: fault{part: true}, next: failing(syscall.ENOSPC), says: "no space left", left: "not",
			calls: []string{"openat", "write", "write", "close"}},
		{rule: "the process is killed before a call", fault: fault{kill: true}, calls: []string{"openat", "write"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "file")
			writes := 0
			r, err := supervise(t.Context(), dir, nil, func(n int, c call) fault {
				if c.kind != "write" {
					return fault{}
				}
				writes++
				return [...]fault{test.fault, test.next}[writes-1]
			}, "faults-nothing", file)
			require.NoError(t, err)
			require.Contains(t, r.stderr, test.says)
			require.Equal(t, test.fault != fault{part: true} && test.fault != fault{} || test.next != fault{}, r.ended != nil)
			left, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, test.left, string(left))
			var kinds []string
			for _, c := range r.calls {
				require.Equal(t, "file", c.file)
				kinds = append(kinds, c.kind)
			}
			require.Equal(t, test.calls, kinds)
		})
	}
}

// A child that does not come to be supervised is an error, not a run.
func TestSuperviseNobody(t *testing.T) {
	needSupervision(t)
	r, err := supervise(t.Context(), t.TempDir(), nil, func(int, call) fault { return fault{} }, "no such role")
	require.NoError(t, err, "it is supervised, and then ends")
	require.Error(t, r.ended)
	require.Contains(t, r.stderr, "no such role")
}

// A process that writes on after a failed sync is found: the calls that show it are supervised, too.
func TestSuperviseAfterSync(t *testing.T) {
	needSupervision(t)
	dir := t.TempDir()
	p := &injection{at: at{call: call{kind: "fsync", file: "file"}, fault: failing(syscall.EIO)}, index: -1, again: -1}
	r, err := supervise(t.Context(), dir, p.kinds(), p.plan, "faults-heedless", filepath.Join(dir, "file"))
	require.NoError(t, err)
	require.NoError(t, r.ended, r.stderr)
	require.ErrorContains(t, r.builtOn(p.index), "file was written to after its sync had failed")
}

func init() {
	harness.Role("faults-heedless", func(args harness.Args) error {
		f, err := os.Create(args[0])
		if err == nil {
			_, err = f.WriteString("a")
		}
		if err != nil || f.Sync() == nil {
			return errors.Join(err, errors.New("a sync that must fail succeeds"))
		}
		_, err = f.WriteString("b")
		return errors.Join(err, f.Close())
	})
}
