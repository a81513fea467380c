package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/pages"
	"github.com/gopawl/pawl/internal/withid"
)

// opener is Open or OpenReader.
type opener struct {
	name string
	open func(path string) error
}

var openers = []opener{
	{"Open", func(path string) error {
		q, err := Open(path, quiet())
		if err == nil {
			err = q.Close()
		}
		return err
	}},
	{"OpenReader", func(path string) error {
		r, err := OpenReader(path)
		if err == nil {
			err = r.Close()
		}
		return err
	}},
}

// soundFile makes a closed file with one ready job, one delayed job, one lease and one dead
// job.
func soundFile(t testing.TB) []byte {
	path := filepath.Join(t.TempDir(), "jobs.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	for _, kind := range []string{"dead", "leased", "ready"} {
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: kind, Payload: bytes.Repeat([]byte("x"), 3000)}))
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "delayed", Delay: time.Hour}))
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 2})
	require.NoError(t, err)
	require.NoError(t, q.Settle(t.Context(), leases[0].Abandon(pawl.ReasonPermanent, errors.New("boom"))))
	require.NoError(t, q.Close())
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

// withBolt changes a closed file through bbolt, as other code would.
func withBolt(t testing.TB, path string, change func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	require.NoError(t, err)
	require.NoError(t, db.Update(change))
	require.NoError(t, db.Close())
}

// snapshot returns the names in a folder and the content of files.
func snapshot(t testing.TB, folder string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range entries {
		b := []byte(e.Type().String())
		if e.Type().IsRegular() {
			b, err = os.ReadFile(filepath.Join(folder, e.Name()))
			require.NoError(t, err)
		}
		found[e.Name()] = string(b)
	}
	return found
}

func TestOpenOfWhatIsNoQueue(t *testing.T) {
	sound := soundFile(t)
	random := make([]byte, 64<<10)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	write := func(b []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, b, 0o600)) }
	}
	for _, test := range []struct {
		rule string
		make func(t *testing.T, path string)
		want error
		says string
	}{
		{rule: "a folder is no queue", want: ErrNotQueue, says: "it is a folder; name a file in it",
			make: func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }},
		{rule: "a pipe is no queue, and nobody waits for its other end", want: ErrNotQueue, says: "no regular file",
			make: makePipe},
		{rule: "an empty file is no queue", want: ErrNotQueue, says: "the file is empty; remove it to have it created anew", make: write(nil)},
		{rule: "a text is no queue", want: ErrNotQueue, says: "no bbolt file; was another path meant?", make: write([]byte("jobs: 1\n"))},
		{rule: "a long text is no queue", want: ErrNotQueue, says: "no bbolt file; was another path meant?",
			make: write(bytes.Repeat([]byte("jobs: 1\n"), 9999))},
		{rule: "random bytes are no queue", want: ErrNotQueue, says: "no bbolt file; was another path meant?", make: write(random)},
		{rule: "a bbolt file of another program is no queue", want: ErrNotQueue, says: "a bbolt file of another program",
			make: func(t *testing.T, path string) {
				withBolt(t, path, func(tx *bbolt.Tx) error {
					b, err := tx.CreateBucket([]byte("users"))
					if err != nil {
						return err
					}
					return b.Put([]byte("ann"), []byte("1"))
				})
			}},
		{rule: "a bbolt file without a bucket is no queue", want: ErrNotQueue, says: "a bbolt file of another program",
			make: func(t *testing.T, path string) { withBolt(t, path, func(*bbolt.Tx) error { return nil }) }},
		{rule: "a newer format is left to the newer build", want: pawl.ErrNewerFormat, says: "format 2, this build reads format 1",
			make: func(t *testing.T, path string) {
				write(sound)(t, path)
				withBolt(t, path, func(tx *bbolt.Tx) error {
					version := binary.BigEndian.AppendUint32(nil, formatVersion+1)
					return tx.Bucket(bucketRoot).Bucket(bucketMeta).Put(keyFormat, seal(keyFormat, version))
				})
			}},
		{rule: "a truncated file is not repaired", want: pawl.ErrCorrupt, says: "the file is truncated: it has 12345 bytes of",
			make: write(sound[:12345])},
		{rule: "a link that leads nowhere creates nothing", want: fs.ErrNotExist, says: "no such file",
			make: func(t *testing.T, path string) {
				require.NoError(t, os.Symlink(filepath.Join(filepath.Dir(path), "nowhere"), path))
			}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "jobs.db")
			test.make(t, path)
			before := snapshot(t, folder)
			for _, o := range openers {
				// The bubble fails if a goroutine is left in it.
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					err := o.open(path)
					require.ErrorIs(t, err, test.want, o.name)
					require.ErrorContains(t, err, test.says, o.name)
					require.ErrorContains(t, err, path, "the error names the file")
					require.Less(t, time.Since(began), time.Second, "nobody waits for what cannot be")
				})
				require.Equal(t, before, snapshot(t, folder), "%s changed something", o.name)
			}
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				lockFree(t, path)
			}
		})
	}
}

func TestOpenWithoutAPlace(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	before := snapshot(t, folder)
	for _, test := range []struct {
		rule, path string
		want       error
		says       string
	}{
		{"a missing folder is not made", filepath.Join(folder, "a", "jobs.db"), fs.ErrNotExist, "make the folder first"},
		{"a file is no folder", filepath.Join(file, "jobs.db"), syscall.ENOTDIR, "not a directory"},
		{"a path that ends as a folder names no file", filepath.Join(folder, "new") + "/", fs.ErrNotExist, "make the folder first"},
		{"a path is required", "", pawl.ErrInvalid, "invalid path: is empty"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			_, err := Open(test.path, quiet())
			require.ErrorIs(t, err, test.want)
			require.ErrorContains(t, err, test.says)
			require.NotContains(t, err.Error(), ".pawl-new", "the temporary name means nothing to the reader")
			require.Equal(t, before, snapshot(t, folder))
		})
	}
}

func TestOpenReaderNeverCreates(t *testing.T) {
	folder := t.TempDir()
	for _, path := range []string{filepath.Join(folder, "jobs.db"), filepath.Join(folder, "a", "jobs.db"), ""} {
		_, err := OpenReader(path)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	require.Empty(t, snapshot(t, folder))
}

// A truncated file, for example from an interrupted copy, returns an error at every length, and
// is sound again once it is complete.
func TestTruncatedFile(t *testing.T) {
	sound := soundFile(t)
	m, err := pages.Newest(bytes.NewReader(sound))
	require.NoError(t, err)
	need := int(m.Pages) * int(m.PageSize)
	require.Less(t, need, len(sound), "the file has spare pages at its end")

	var lengths []int
	for n := range 200 {
		lengths = append(lengths, n)
	}
	for end := int(m.PageSize); end <= need; end += int(m.PageSize) {
		lengths = append(lengths, end-1, end, end+1)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		lengths = append(lengths, random.IntN(need))
	}
	path := filepath.Join(t.TempDir(), "jobs.db")
	for _, n := range lengths {
		require.NoError(t, os.WriteFile(path, sound[:n], 0o600))
		for _, o := range openers {
			err := o.open(path)
			switch {
			case n >= need:
				require.NoError(t, err, "%s: nothing is missing at %d bytes", o.name, n)
			case n < metaAt+4: // nothing shows what it was
				require.ErrorIs(t, err, ErrNotQueue, "%s at %d bytes", o.name, n)
			default:
				require.ErrorIs(t, err, pawl.ErrCorrupt, "%s at %d bytes", o.name, n)
				require.ErrorContains(t, err, "restore a backup", "%s at %d bytes", o.name, n)
			}
			if n < need {
				b, err := os.ReadFile(path)
				require.NoError(t, err)
				require.True(t, bytes.Equal(sound[:n], b), "%s changed the file at %d bytes", o.name, n)
			}
		}
	}
	require.NoError(t, os.WriteFile(path, sound, 0o600))
	q := openAt(t, path, nil)
	require.Equal(t, pawl.Counts{Ready: 2, Delayed: 1, Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
}

// A user who can put a link there chooses the file that is written to.
func TestOpenThroughALink(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "jobs.db"), filepath.Join(folder, "link.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	id := add(t, q, nil).ID
	require.NoError(t, q.Close())
	require.NoError(t, os.Symlink("jobs.db", link))

	_, err = Open(link, quiet())
	require.ErrorIs(t, err, ErrInsecure)
	require.ErrorContains(t, err, "it is a symbolic link to jobs.db; name that file itself")
	r, err := OpenReader(link)
	require.NoError(t, err, "reading does no harm")
	require.NoError(t, r.Close())

	synctest.Test(t, func(t *testing.T) {
		q := openAt(t, link, &Options{Insecure: true})
		require.NotNil(t, find(t, q, id), "it is the same file")
		_, err = OpenReader(path)
		require.ErrorIs(t, err, ErrLocked, "and the same lock")
	})
}

func TestNewFileIsTheOwnersOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	openAt(t, path, nil)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
	require.Len(t, snapshot(t, filepath.Dir(path)), 1, "nothing else is left in the folder")
}

func TestNewFileMayHaveTheLongestName(t *testing.T) {
	openAt(t, filepath.Join(t.TempDir(), string(bytes.Repeat([]byte("n"), 255))), nil)
}

func TestBadOptions(t *testing.T) {
	folder := t.TempDir()
	for field, bad := range map[string][]Options{
		"Lease":       {{Lease: -1}, {Lease: time.Second - 1}, {Lease: math.MinInt64}},
		"MaxCrashes":  {{MaxCrashes: -2}, {MaxCrashes: math.MinInt}},
		"MaxPayload":  {{MaxPayload: -1}, {MaxPayload: pawl.MaxBatchBytes + 1}},
		"LockTimeout": {{LockTimeout: -1}},
	} {
		for _, o := range bad {
			o.Logger = quiet().Logger
			_, err := Open(filepath.Join(folder, "jobs.db"), &o)
			require.ErrorIs(t, err, pawl.ErrInvalid, "%+v", o)
			require.ErrorContains(t, err, field)
		}
	}
	require.Empty(t, snapshot(t, folder), "bad options create no file")
	for _, good := range []Options{
		{}, {Lease: time.Second}, {MaxCrashes: NoMaxCrashes}, {MaxCrashes: 1}, {MaxPayload: 1},
		{MaxPayload: pawl.MaxBatchBytes}, {LockTimeout: 1}, {Lease: math.MaxInt64},
	} {
		openTest(t, &good)
	}
}
