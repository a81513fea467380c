package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/pages"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/withid"
)

// tornCopies are plain copies of one active file: the first pages are older than the others.
func tornCopies(t *testing.T) map[string][]byte {
	t.Helper()
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q := openAt(t, path, nil)
	work := func() []byte {
		require.NoError(t, withid.Enqueue(t.Context(), q, batchOf(200, func(_ int, e *pawl.Envelope) { e.Payload = make([]byte, 300) })...))
		for _, l := range fetch(t, q, 50) {
			require.NoError(t, q.Settle(t.Context(), l.Ack()))
		}
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		return b
	}
	before, after := work(), work()
	m, err := pages.Newest(bytes.NewReader(before))
	require.NoError(t, err)
	copies := make(map[string][]byte)
	for n := 2; n < int(m.Pages); n += max(3, 8/race.Fewer(8)) { // one goroutine salvages them all
		at := n * int(m.PageSize)
		copies[fmt.Sprintf("from page %d on", n)] = append(bytes.Clone(before[:at]), after[at:]...)
	}
	copies["cut"] = before[:len(before)/3]
	copies["another root"] = withAnotherRoot(before, m)
	return copies
}

// withAnotherRoot makes a file whose root page has become an empty leaf of another bucket.
func withAnotherRoot(b []byte, m pages.Meta) []byte {
	b = bytes.Clone(b)
	root := b[int(m.Root)*int(m.PageSize):]
	const isLeaf = 2
	binary.NativeEndian.PutUint16(root[8:], isLeaf)
	binary.NativeEndian.PutUint16(root[10:], 0) // elements
	return b
}

// Rule: a plain copy of an active file opens only if it happens to be sound. Otherwise the
// error asks whether it was copied from a running app, and Salvage saves jobs from every such
// copy.
func TestTornCopyOfARunningApp(t *testing.T) {
	foreign := 0
	for rule, torn := range tornCopies(t) {
		path := filepath.Join(memoryFolder(t), "torn.db")
		require.NoError(t, os.WriteFile(path, torn, 0o600))
		r, err := OpenReader(path)
		if err == nil {
			require.NoError(t, r.Close())
			continue
		}
		require.True(t, errors.Is(err, pawl.ErrCorrupt) || errors.Is(err, ErrNotQueue), "%s: %v", rule, err)
		if errors.Is(err, ErrNotQueue) || strings.Contains(err.Error(), "the pages of the file are damaged") {
			require.ErrorContains(t, err, "copied from a running app", rule)
		}
		if errors.Is(err, ErrNotQueue) {
			foreign++
		}
		saved := path + ".saved"
		result, err := Salvage(t.Context(), path, saved)
		require.NoError(t, err, rule)
		require.NotZero(t, result.Kept+result.Placed+result.Reattached+result.Unreached, "%s: %+v", rule, result)
		checkFile(t, saved)
	}
	require.Positive(t, foreign, "of some copies the root is a page of another kind")
}
