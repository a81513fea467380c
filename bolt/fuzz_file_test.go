package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/pages"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/withid"
)

// FuzzFile looks for damage to a queue's file at which a reader panics, does not end, or
// returns an error that no caller can match. The bytes are changes to a sound file: each has
// an offset (3 bytes) in the pages in use and new content (3 bytes).
func FuzzFile(f *testing.F) {
	path := filepath.Join(f.TempDir(), "sound.db")
	q, err := Open(path, &Options{Logger: hclog.NewNullLogger()})
	require.NoError(f, err)
	for n := range 20 {
		require.NoError(f, withid.Enqueue(context.Background(), q, &pawl.Envelope{
			Kind: "k", Payload: bytes.Repeat([]byte{byte(n)}, 100*n), Retain: time.Hour, UniqueKey: string(rune('a' + n)),
		}))
	}
	leases, err := q.Fetch(context.Background(), pawl.Request{Max: 3})
	require.NoError(f, err)
	require.NoError(f, q.Settle(context.Background(), leases[0].Ack()))
	require.NoError(f, q.Settle(context.Background(), leases[1].Abandon(pawl.ReasonPermanent, errors.New("boom"))))
	require.NoError(f, q.Close())
	sound, err := os.ReadFile(path)
	require.NoError(f, err)

	meta, err := pages.Newest(bytes.NewReader(sound))
	require.NoError(f, err)
	used := int(meta.Pages) * os.Getpagesize() // nothing reads the rest

	f.Add([]byte{})
	f.Add([]byte{0, 0, 24, 0, 0, 0})
	f.Add([]byte{0, 0x30, 10, 0xff, 0xff, 0xff, 0, 0x20, 8, 2, 0, 0})
	for page := range race.Fewer(int(meta.Pages)) {
		at := page * os.Getpagesize()
		f.Add([]byte{byte(at >> 16), byte(at >> 8), 12, 1, 2, 3})
	}

	// Reading changes nothing, so each file is the previous one with its changes undone.
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, file.Close()) })
	f.Fuzz(func(t *testing.T, changes []byte) {
		var places []int
		defer func() {
			for _, at := range places {
				_, err := file.WriteAt(sound[at:at+3], int64(at))
				require.NoError(t, err)
			}
		}()
		for ; len(changes) >= 6; changes = changes[6:] {
			at := int(binary.BigEndian.Uint32(append([]byte{0}, changes[:3]...))) % (used - 3)
			_, err := file.WriteAt(changes[3:6], int64(at))
			require.NoError(t, err)
			places = append(places, at)
		}
		readAll(t, path)
	})
}

// readAll reads everything in a file and requires that a caller can match every error.
func readAll(t *testing.T, path string) {
	t.Helper()
	matched := func(err error) {
		t.Helper()
		if err != nil && !errors.Is(err, pawl.ErrCorrupt) && !errors.Is(err, ErrNotQueue) && !errors.Is(err, pawl.ErrNewerFormat) && !errors.Is(err, ErrOlderFormat) {
			t.Fatalf("an error that nobody can match: %v", err)
		}
	}
	r, err := OpenReader(path)
	matched(err)
	if err != nil {
		return
	}
	ctx := context.Background()
	_, err = r.Stats(ctx)
	matched(err)
	for _, state := range append(pawl.States(), "") {
		n := 0
		for e, err := range r.Jobs(ctx, pawl.Filter{State: state}) {
			matched(err)
			if n++; n > 1000 {
				t.Fatal("a list of 20 jobs has no end")
			}
			if err == nil && state != "" && e.State != state {
				t.Fatalf("a list of %s jobs has one that is %s", state, e.State)
			}
		}
	}
	matched(r.Check(ctx))
	require.NoError(t, r.Close())
}
