package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/examples/internal/itself"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/race"
)

func TestMain(m *testing.M) { itself.Main(main, m.Run) }

// write writes a file of rows, one of which has no amount, and returns what the import of it must print.
func write(t *testing.T, path string, rows int) (report string) {
	t.Helper()
	var b bytes.Buffer
	total := 0
	for n := range rows - 1 {
		total += n
		fmt.Fprintf(&b, "name %d,%d\n", n%100, n)
	}
	b.WriteString("nobody,nothing\n")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	return fmt.Sprintf("%d rows imported, 1 failed, total %d, 1 summary\n", rows-1, total)
}

// namesIn returns how many names the database has, and requires that it is sound.
func namesIn(t *testing.T, db string) (names int) {
	t.Helper()
	q, err := bolt.Open(db, nil)
	require.NoError(t, err)
	require.NoError(t, q.Check(t.Context())) // the counts of the group too
	require.NoError(t, q.View(t.Context(), func(tx *bbolt.Tx) error {
		if b := tx.Bucket([]byte("amounts")); b != nil {
			names = b.Stats().KeyN
		}
		return nil
	}))
	require.NoError(t, q.Close())
	return names
}

// Rule: however often it is killed, the program imports each row once and writes one summary, and a further start
// changes nothing. PAWL_SLOW_TESTS=1 imports 10 000 rows.
func TestKilled(t *testing.T) {
	race.SkipLone(t)
	folder := memdir.New(t)
	csv, db := filepath.Join(folder, "rows.csv"), filepath.Join(folder, "import.db")
	rows := 1000
	if os.Getenv("PAWL_SLOW_TESTS") != "" {
		rows = 10_000
	}
	want := write(t, csv, rows)
	kills := 0
	for life := 30 * time.Millisecond; kills < 8; life += life / 4 {
		child := itself.Command(t.Context(), "-db", db, csv)
		require.NoError(t, child.Start())
		timer := time.AfterFunc(life, func() { _ = child.Process.Kill() })
		err := child.Wait()
		timer.Stop()
		if err == nil { // it was faster than the kill
			break
		}
		require.False(t, child.ProcessState.Exited(), "it ended by itself: %v", err)
		kills++
	}
	t.Logf("%d kills", kills)
	for range 2 {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), []string{"-db", db, csv}, &out))
		require.Equal(t, want, out.String())
	}
	require.Equal(t, 100, namesIn(t, db))
}

// Rule: files of one name in two folders are two imports, and a file that is missing is imported once it is there.
func TestFilesOfOneName(t *testing.T) {
	folder := memdir.New(t)
	db := filepath.Join(folder, "import.db")
	for n, name := range []string{"a", "b"} {
		csv := filepath.Join(folder, name, "rows.csv")
		var out bytes.Buffer
		require.ErrorIs(t, run(t.Context(), []string{"-db", db, csv}, &out), os.ErrNotExist)
		require.NoError(t, os.Mkdir(filepath.Dir(csv), 0o700))
		require.NoError(t, os.WriteFile(csv, []byte(name+",1\n"), 0o600))
		require.NoError(t, run(t.Context(), []string{"-db", db, csv}, &out))
		require.Equal(t, fmt.Sprintf("1 rows imported, 0 failed, total %d, 1 summary\n", n+1), out.String())
	}
}
