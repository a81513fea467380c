package bolt

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/pages"
	"github.com/gopawl/pawl/internal/withid"
)

// damagedKit is a sound file and the positions of everything in it.
type damagedKit struct {
	path     string // path of the file that is damaged repeatedly
	sound    []byte
	meta     pages.Meta
	jobs     map[pawl.ID]*pawl.Envelope
	records  map[pawl.ID]uint64 // the page of each record
	payloads map[pawl.ID]uint64
	states   map[pawl.ID]uint64         // the page of the row that says where the job is
	leaves   map[string]map[uint64]bool // leaf pages, by name of the bucket
	roots    map[string]uint64          // root pages of the trees of buckets
}

// newDamagedKit returns a queue of several hundred jobs in all states. Its file has a list of free
// pages if it was closed cleanly. Tests share what they only read.
func newDamagedKit(t *testing.T, cleanly bool) *damagedKit {
	t.Helper()
	madeKits.Lock()
	defer madeKits.Unlock()
	if madeKits.by[cleanly] == nil {
		madeKits.by[cleanly] = makeDamagedKit(t, cleanly)
	}
	k := *madeKits.by[cleanly]
	k.path = filepath.Join(memoryFolder(t), "jobs.db")
	return &k
}

var madeKits = struct {
	sync.Mutex
	by map[bool]*damagedKit // by whether the file was closed cleanly
}{by: make(map[bool]*damagedKit)}

func makeDamagedKit(t *testing.T, cleanly bool) *damagedKit {
	t.Helper()
	folder := memoryFolder(t)
	path := filepath.Join(folder, "jobs.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	fillDamaged(t, q)
	if !cleanly {
		require.NoError(t, copyFile(path, filepath.Join(folder, "killed.db")))
		path = filepath.Join(folder, "killed.db")
	}
	require.NoError(t, q.Close())
	k := &damagedKit{
		path: path, jobs: everyJob(t, path),
		records: make(map[pawl.ID]uint64), payloads: make(map[pawl.ID]uint64), states: make(map[pawl.ID]uint64),
		leaves: make(map[string]map[uint64]bool), roots: make(map[string]uint64),
	}
	k.sound, err = os.ReadFile(path)
	require.NoError(t, err)
	k.meta, err = pages.Newest(bytes.NewReader(k.sound))
	require.NoError(t, err)
	_, err = pages.Walk(t.Context(), bytes.NewReader(k.sound), int64(len(k.sound)), k.meta, pages.Visitor{Element: k.note})
	require.NoError(t, err)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		k.roots["app"] = uint64(tx.Bucket([]byte("app")).Root())
		root := tx.Bucket(bucketRoot)
		k.roots["pawl"] = uint64(root.Root())
		for _, name := range buckets {
			k.roots[string(name)] = uint64(root.Bucket(name).Root())
		}
		return nil
	}))
	require.Len(t, k.records, len(k.jobs))
	require.Len(t, k.states, len(k.jobs))
	return k
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

// fillDamaged gives a queue several hundred jobs.
func fillDamaged(t *testing.T, q *Queue) {
	t.Helper()
	ctx := t.Context()
	random := rand.New(rand.NewPCG(1, 2))
	enqueue := func(n int, kind string, change func(*pawl.Envelope)) {
		for range n {
			e := &pawl.Envelope{Kind: kind, Queue: kind, MaxRetries: 3, Payload: make([]byte, 40+random.IntN(200))}
			e.Payload[0] = byte(random.Uint32())
			if change != nil {
				change(e)
			}
			require.NoError(t, withid.Enqueue(ctx, q, e))
		}
	}
	each := func(n int, queue string, verb func(*pawl.Lease) error) {
		for _, l := range fetch(t, q, n, queue) {
			require.NoError(t, verb(l))
		}
	}
	enqueue(30, "done", func(e *pawl.Envelope) { e.IdempotencyKey = time.Now().String() })
	each(30, "done", func(l *pawl.Lease) error { return q.Settle(ctx, l.Ack()) })
	enqueue(150, "ready", nil)
	enqueue(30, "large", func(e *pawl.Envelope) {
		e.Payload = bytes.Repeat([]byte{byte(random.Uint32())}, 1500+random.IntN(9000))
	})
	enqueue(60, "delayed", func(e *pawl.Envelope) { e.Delay = time.Hour })
	enqueue(40, "keyed", func(e *pawl.Envelope) {
		e.UniqueKey, e.Deadline = time.Now().String(), time.Now().Add(time.Hour)
	})
	enqueue(20, "dead", nil)
	each(20, "dead", func(l *pawl.Lease) error { return q.Settle(ctx, l.Abandon(pawl.ReasonPermanent, errBoom)) })
	enqueue(20, "retried", nil)
	each(20, "retried", func(l *pawl.Lease) error { return q.Settle(ctx, l.Nack(time.Hour, errBoom)) })
	enqueue(10, "snoozed", nil)
	each(10, "snoozed", func(l *pawl.Lease) error { return q.Settle(ctx, l.Snooze(time.Hour)) })
	enqueue(10, "completed", func(e *pawl.Envelope) { e.Retain = time.Hour })
	each(10, "completed", func(l *pawl.Lease) error { return q.Settle(ctx, l.Ack()) })
	enqueue(20, "aside", func(e *pawl.Envelope) { e.IdempotencyKey = "one" })
	require.Len(t, fetch(t, q, 20, "aside"), 1)
	enqueue(10, "leased", nil)
	require.Len(t, fetch(t, q, 10, "leased"), 10)
	require.NoError(t, q.Pause(ctx, "ready"))
	require.NoError(t, q.Update(ctx, func(tx *bbolt.Tx) error {
		app, err := tx.CreateBucket([]byte("app"))
		for i := range 100 {
			if err == nil {
				err = app.Put([]byte{byte(i)}, make([]byte, 200))
			}
		}
		return err
	}))
}

// note records the page of an element.
func (k *damagedKit) note(path [][]byte, e pages.Element) error {
	if len(path) != 2 {
		return nil
	}
	value, err := e.Value()
	if err != nil {
		return err
	}
	name := string(path[1])
	if k.leaves[name] == nil {
		k.leaves[name] = make(map[uint64]bool)
	}
	k.leaves[name][e.Page] = true
	switch name {
	case "jobs":
		k.records[pawl.ID(e.Key)] = e.Page
	case "payloads":
		k.payloads[pawl.ID(e.Key)] = e.Page
	case "leased":
		k.states[pawl.ID(e.Key)] = e.Page
	case "ready", "delayed", "failed", "completed":
		k.states[pawl.ID(value[:16])] = e.Page
	}
	return nil
}

// run returns the bytes of a page with its overflow.
func (k *damagedKit) run(b []byte, page uint64) []byte {
	size := uint64(k.meta.PageSize)
	overflow := uint64(b[page*size+12]) | uint64(b[page*size+13])<<8
	return b[page*size : min((page+1+overflow)*size, uint64(len(b)))]
}

// page returns the bytes of one page.
func (k *damagedKit) page(b []byte, page uint64) []byte {
	size := uint64(k.meta.PageSize)
	return b[page*size : (page+1)*size]
}

// intact reports whether a page of the sound file is unchanged in b.
func (k *damagedKit) intact(b []byte, page uint64) bool {
	want := k.run(k.sound, page)
	at := page * uint64(k.meta.PageSize)
	return uint64(len(b)) >= at+uint64(len(want)) && bytes.Equal(b[at:][:len(want)], want)
}

// salvage damages the file, salvages it, and requires that every job with untouched bytes is in
// the new file.
func (k *damagedKit) salvage(t *testing.T, damage func(b []byte) []byte) (map[pawl.ID]*pawl.Envelope, Salvaged) {
	t.Helper()
	b := damage(bytes.Clone(k.sound))
	require.NoError(t, os.WriteFile(k.path, b, 0o600))
	to, result := salvageTo(t, k.path)
	found := everyJob(t, to)
	for id, page := range k.records {
		if !k.intact(b, page) {
			continue
		}
		want, got := k.jobs[id], found[id]
		require.NotNil(t, got, "job %s (%s), whose record is sound on page %d, is lost", id, want.Kind, page)
		require.Equal(t, want.Kind, got.Kind)
		require.Equal(t, want.Queue, got.Queue)
		require.Equal(t, want.Seq, got.Seq)
		if apart, ok := k.payloads[id]; !ok || k.intact(b, apart) {
			require.True(t, bytes.Equal(want.Payload, got.Payload), "job %s (%s) has another payload: %d bytes of %d", id, want.Kind, len(got.Payload), len(want.Payload))
		}
	}
	require.Equal(t, len(found), result.Kept+result.Placed+result.Reattached+result.Unreached+result.NoRecord+result.NoPayload, "%+v", result)
	k.drain(t, to)
	return found, result
}

// drain runs every job of a salvaged file that can run.
func (k *damagedKit) drain(t *testing.T, path string) {
	t.Helper()
	q, err := Open(path, quiet())
	require.NoError(t, err)
	defer q.Close()
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	for _, row := range stats.Queues {
		require.NoError(t, q.Resume(t.Context(), row.Name))
		for {
			leases := fetch(t, q, 500, row.Name)
			if len(leases) == 0 {
				break
			}
			require.NoError(t, q.Settle(t.Context(), acksOf(leases)...))
		}
		require.Zero(t, countsOf(t, q, row.Name).Ready, row.Name)
	}
	checkNow(t, q)
}
