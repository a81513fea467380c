package bolt

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/pages"
)

// Offsets in a bbolt meta page that tests change.
const (
	metaAt    = 16
	metaPages = metaAt + 40
	metaTxid  = metaAt + 48
	metaSum   = metaAt + 56
)

// sign gives a meta page the checksum of its content.
func sign(b []byte) {
	h := fnv.New64a()
	h.Write(b[metaAt:metaSum])
	binary.NativeEndian.PutUint64(b[metaSum:], h.Sum64())
}

// A power failure may tear the meta page that was being written. The other one leads to the
// state before that commit, which is complete.
func TestTornMetaPageOfAQueue(t *testing.T) {
	sound := soundFile(t)
	m, err := pages.Newest(bytes.NewReader(sound))
	require.NoError(t, err)
	for _, torn := range []uint32{0, m.PageSize} {
		b := bytes.Clone(sound)
		b[torn+metaTxid] ^= 1
		path := filepath.Join(t.TempDir(), "jobs.db")
		require.NoError(t, os.WriteFile(path, b, 0o600))
		q := openAt(t, path, nil)
		require.Equal(t, pawl.Counts{Ready: 2, Delayed: 1, Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
		add(t, q, nil)
	}
}
