package main

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl/bolt"
)

// rootPage returns the page where the tree of a bucket of the queue begins.
func rootPage(t *testing.T, path, bucket string) (page, pageSize int) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		page = int(tx.Bucket([]byte("pawl")).Bucket([]byte(bucket)).Root())
		return nil
	}))
	return page, db.Info().PageSize
}

// A sound file is copied unchanged, with exit code 0.
func TestSalvageOfASoundFile(t *testing.T) {
	build(t, everyState)
	before, err := os.ReadFile("app.db")
	require.NoError(t, err)
	require.Equal(t, outcomeOf{exitOK, "saved.db: 6 jobs\n       6 unchanged\n", ""}, jobctl(t, "db", "salvage", "app.db", "saved.db"))
	after, err := os.ReadFile("app.db")
	require.NoError(t, err)
	require.Equal(t, before, after)
	checkFile(t, "saved.db")
	for _, line := range []string{"stats -o json", "job list -o json", "dead list"} {
		was, is := jobctl(t, append(words(line), "--db", "app.db")...), jobctl(t, append(words(line), "--db", "saved.db")...)
		if line != "stats -o json" { // which names the file and its size
			require.Equal(t, was, is, line)
		}
		require.Equal(t, exitOK, is.code)
	}
}

// Damage is reported by page, and by the exit code.
func TestSalvageOfADamagedFile(t *testing.T) {
	build(t, large)
	page, size := rootPage(t, "app.db", "jobs")
	require.NotZero(t, page, "the bucket has pages of its own")
	b, err := os.ReadFile("app.db")
	require.NoError(t, err)
	clear(b[page*size:][:size])
	require.NoError(t, os.WriteFile("bad.db", b, 0o600))

	got := jobctl(t, "db", "salvage", "bad.db", "saved.db")
	require.Equal(t, exitDamaged, got.code, got.stderr)
	require.Contains(t, got.stderr, "error: bad.db is damaged; its sound data is in saved.db\n  Keep the damaged file")
	require.Contains(t, got.stdout, "found outside the tree, but confirmed by a row in it")
	require.Regexp(t, `PAGE +BUCKET +DAMAGE\n +\d+ +pawl/jobs +damaged pages: page \d+: `, got.stdout)
	checkFile(t, "saved.db")

	got = jobctl(t, "db", "salvage", "bad.db", "other.db", "-o", "json")
	require.Equal(t, exitDamaged, got.code)
	var v salvageView
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &v))
	require.Equal(t, "bad.db", v.From)
	require.Equal(t, "other.db", v.To)
	require.Equal(t, v.Jobs, v.Reattached)
	require.Positive(t, v.Jobs)
	require.Equal(t, 1, v.DamagedPages)
	require.EqualValues(t, page, v.Pages[0].Page)
	require.NotNil(t, v.MetaPage)
}

// Rule: damage to workflows is reported separately, with the command that reads the remaining
// runs.
func TestSalvageReportsRuns(t *testing.T) {
	build(t, workflows)
	db, err := bbolt.Open("app.db", 0o600, nil)
	require.NoError(t, err)
	size, root := db.Info().PageSize, 0
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		root = int(tx.Bucket([]byte(workflowRows)).Root())
		return nil
	}))
	require.NoError(t, db.Close())
	require.NotZero(t, root, "the bucket has pages of its own")
	b, err := os.ReadFile("app.db")
	require.NoError(t, err)
	clear(b[root*size:][:size])
	require.NoError(t, os.WriteFile("bad.db", b, 0o600))
	const note = "note: workflow runs, or parts of them, may be lost with the pages of pawl.workflow: 'jobctl --db saved.db wf verify' reads the rest\n"
	require.Contains(t, jobctl(t, "db", "salvage", "bad.db", "saved.db").stderr, note)
	require.NotContains(t, jobctl(t, "db", "salvage", "app.db", "sound.db").stderr, "workflow")
}

// Rule: a check and a salvage fail over a row of a run that does not match its checksum, and the salvaged file still has that
// row: without it, the run would repeat the step.
func TestDamagedStep(t *testing.T) {
	build(t, workflows)
	db, err := bbolt.Open("app.db", 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		steps := tx.Bucket([]byte(workflowRows)).Bucket([]byte("steps"))
		key, value := steps.Cursor().First()
		value = bytes.Clone(value)
		value[len(value)/2]++
		return steps.Put(bytes.Clone(key), value)
	}))
	require.NoError(t, db.Close())
	for _, path := range []string{"app.db", "saved.db"} {
		got := jobctl(t, "--db", path, "db", "check")
		if path == "app.db" {
			require.Equal(t, exitDamaged, got.code, got.stdout)
			got = jobctl(t, "db", "salvage", path, "saved.db")
			require.Contains(t, got.stdout, "1 rows of bucket pawl.workflow/steps were damaged or contradict others\n")
			require.Contains(t, got.stderr, "note: damaged rows of pawl.workflow were copied as they are: 'jobctl --db saved.db db check' lists them\n")
		}
		require.Equal(t, exitDamaged, got.code, got.stderr)
		require.Contains(t, got.stderr, "error: ")
	}
}

// The error for a file that cannot be salvaged has the reason and the remedy.
func TestSalvageRefuses(t *testing.T) {
	build(t, everyState)
	require.NoError(t, os.WriteFile("text", bytes.Repeat([]byte("jobs: 1\n"), 999), 0o600))
	require.NoError(t, os.WriteFile("exists", nil, 0o600))
	for line, want := range map[string]outcomeOf{
		"db salvage app.db":             {exitUsage, "", "error: name a damaged file and a new one: salvage FROM TO\n  See 'jobctl db salvage --help'.\n"},
		"db salvage app.db a b":         {exitUsage, "", "error: name a damaged file and a new one: salvage FROM TO\n  See 'jobctl db salvage --help'.\n"},
		"db salvage app.db exists":      {exitError, "", "error: exists exists already\n  Name a new file: no file is overwritten.\n"},
		"db salvage text saved.db":      {exitError, "", "error: salvage text: not a pawl queue: it is no bbolt file; was another path meant?\n  Check --db: it must name a file that pawl created. If it is the SQLite database of an app, start the app, with\n  package admin in it.\n"},
		"db salvage nowhere saved.db":   {exitError, "", "error: salvage nowhere: stat nowhere: no such file or directory\n  Check both names; the folder of the new file must exist.\n"},
		"db salvage app.db no/saved.db": {exitError, "", "error: salvage app.db: create the file in folder no: no such file or directory; make the folder first\n  Check both names; the folder of the new file must exist.\n"},
	} {
		require.Equal(t, want, jobctl(t, words(line)...), line)
		require.False(t, exists("saved.db"), line)
	}
}

// A file that a queue has open is not salvaged.
func TestSalvageOfALockedFile(t *testing.T) {
	build(t, everyState)
	q, err := bolt.Open("app.db", &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	defer q.Close()
	got := jobctl(t, "db", "salvage", "app.db", "saved.db")
	if runtime.GOOS == "linux" {
		require.Equal(t, exitLocked, got.code)
		require.Contains(t, got.stderr, "error: app.db is locked")
		require.False(t, exists("saved.db"))
	}
}

// Names from the damaged file are escaped.
func TestSalvageEscapes(t *testing.T) {
	build(t, nil)
	db, err := bbolt.Open("app.db", 0o600, nil)
	require.NoError(t, err)
	name := []byte("app\x1b[31m")
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket(name)
		for i := range 200 {
			if err == nil {
				err = b.Put([]byte{byte(i)}, make([]byte, 100))
			}
		}
		return err
	}))
	root := 0
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		root = int(tx.Bucket(name).Root()) * db.Info().PageSize
		return nil
	}))
	require.NoError(t, db.Close())
	b, err := os.ReadFile("app.db")
	require.NoError(t, err)
	b[root] ^= 0xff
	require.NoError(t, os.WriteFile("bad.db", b, 0o600))
	for _, line := range []string{"db salvage bad.db one.db", "db salvage bad.db two.db -o json", "db salvage bad.db three.db -o jsonl"} {
		got := jobctl(t, words(line)...)
		require.Equal(t, exitDamaged, got.code, got.stderr)
		require.NotContains(t, got.stdout+got.stderr, "\x1b")
		require.Contains(t, got.stdout, "[31m")
	}
}
