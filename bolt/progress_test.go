package bolt

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/pages"
	"github.com/gopawl/pawl/internal/withid"
)

// steps are the progress reports of an operation.
type steps struct{ done, total []int64 }

func (s *steps) watch(ctx context.Context) context.Context {
	*s = steps{}
	return driver.WithProgress(ctx, func(done, total int64) { s.done, s.total = append(s.done, done), append(s.total, total) })
}

// require that it began with nothing, never fell and never exceeded a constant total.
func (s *steps) require(t *testing.T, rule string, complete bool) {
	t.Helper()
	require.NotEmpty(t, s.done, rule)
	require.Zero(t, s.done[0], rule)
	for i, done := range s.done {
		require.Equal(t, s.total[0], s.total[i], rule)
		require.True(t, i == 0 || done >= s.done[i-1], "%s: %d after %d", rule, done, s.done[max(0, i-1)])
		require.LessOrEqual(t, done, s.total[i], rule)
	}
	last := s.done[len(s.done)-1]
	require.Equal(t, complete, last == s.total[0], "%s: %d of %d", rule, last, s.total[0])
}

// Rule: every long operation reports its progress often, from nothing to everything. A failed
// one never reports that everything is done, and without a function nothing is reported.
func TestProgress(t *testing.T) {
	folder := memoryFolder(t)
	q := openAt(t, folder+"/jobs.db", nil)
	for range 2 {
		require.NoError(t, withid.Enqueue(t.Context(), q, newBatch(3000)...))
	}
	for range 10 {
		add(t, q, func(e *pawl.Envelope) { e.Payload = make([]byte, 1<<20) })
	}
	damaged := filepath.Join(folder, "damaged.db")
	require.NoError(t, q.Backup(t.Context(), damaged))
	in := func(name string) string { return filepath.Join(t.TempDir(), name) }
	for _, test := range []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"Check", q.Check},
		{"Backup", func(ctx context.Context) error { return q.Backup(ctx, in("copy")) }},
		{"WriteBackup", func(ctx context.Context) error { _, err := q.WriteBackup(ctx, io.Discard); return err }},
		{"Compact", func(ctx context.Context) error { return q.Compact(ctx, in("copy")) }},
		{"Salvage", func(ctx context.Context) error { _, err := Salvage(ctx, damaged, in("copy")); return err }},
	} {
		var s steps
		require.NoError(t, test.do(s.watch(t.Context())), test.name)
		s.require(t, test.name, true)
		require.Greater(t, len(s.done), 4, "%s tells on the way", test.name)
		require.Less(t, len(s.done), 100, "%s does not tell each row", test.name)

		ctx, cancel := context.WithCancel(t.Context())
		calls := len(s.done)
		ctx = driver.WithProgress(s.watch(ctx), func(done, total int64) {
			s.done, s.total = append(s.done, done), append(s.total, total)
			if len(s.done) == calls/2 {
				cancel()
			}
		})
		require.ErrorIs(t, test.do(ctx), context.Canceled, test.name)
		s.require(t, test.name+", cancelled", false)

		require.PanicsWithValue(t, "theirs", func() {
			_ = test.do(driver.WithProgress(t.Context(), func(int64, int64) { panic("theirs") }))
		}, "a panic of the function is not taken for damage")
	}
	add(t, q, nil) // nothing is held
}

// Rule: a check with findings does not report that everything is done.
func TestProgressOfAFailedCheck(t *testing.T) {
	q, err := Open(t.TempDir()+"/jobs.db", quiet())
	require.NoError(t, err)
	defer q.Close()
	require.NoError(t, q.Pause(t.Context(), pawl.DefaultQueue))
	batch := newBatch(5)
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
	damageRecord(t, q, batch[2].ID, nil)
	var s steps
	require.ErrorIs(t, q.Check(s.watch(t.Context())), pawl.ErrCorrupt)
	s.require(t, "Check", false)
}

// failingWriter accepts a limited number of bytes.
type failingWriter struct {
	left int
	err  error
}

func (w *failingWriter) Write(b []byte) (int, error) {
	n := min(len(b), w.left)
	if w.left -= n; n < len(b) {
		return n, w.err
	}
	return n, nil
}

// Rule: WriteBackup writes what Backup does. It reports the length before the first byte. If it
// ends early, it returns the writer's error.
func TestWriteBackup(t *testing.T) {
	q, _, _ := prepared(t)
	var reported int64
	var buf bytes.Buffer
	n, err := q.WriteBackup(driver.WithProgress(t.Context(), func(done, total int64) {
		if reported = total; done == 0 {
			require.Zero(t, buf.Len())
		}
	}), &buf)
	require.NoError(t, err)
	require.EqualValues(t, buf.Len(), n)
	require.Equal(t, n, reported)
	path := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, q.Backup(t.Context(), path))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Len(t, content, buf.Len())
	m, err := pages.Newest(bytes.NewReader(buf.Bytes()))
	require.NoError(t, err)
	require.Equal(t, n, m.Bytes())
	written := filepath.Join(t.TempDir(), "written.db")
	require.NoError(t, os.WriteFile(written, buf.Bytes(), 0o600))
	checkFile(t, written)

	errTheirs := errors.New("theirs")
	for _, left := range []int{0, 1, 5000, buf.Len() - 1} {
		n, err := q.WriteBackup(t.Context(), &failingWriter{left, errTheirs})
		require.ErrorIs(t, err, errTheirs)
		require.NotErrorIs(t, err, ErrDisk)
		require.EqualValues(t, left, n)
		require.NoError(t, os.WriteFile(written, buf.Bytes()[:left], 0o600))
		_, err = OpenReader(written)
		require.Error(t, err, "a copy of %d bytes of %d is refused", left, buf.Len())
	}
}
