//go:build linux && (amd64 || arm64)

package faults

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
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
			r, err := supervise(t.Context(), dir, func(n int, c call) fault {
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
	r, err := supervise(t.Context(), t.TempDir(), func(int, call) fault { return fault{} }, "no such role")
	require.NoError(t, err, "it is supervised, and then ends")
	require.Error(t, r.ended)
	require.Contains(t, r.stderr, "no such role")
}
