package workflows

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const trace = `4711  fsync(3)                         = 0
4711  fsync(-1)                        = -1 EBADF (Bad file descriptor)
4712  fdatasync(7 <unfinished ...>
4711  fsync(9)                         = 0
4712  <... fdatasync resumed>)         = 0
 712  fdatasync(7)                     = 0
4712  sync_file_range(7, 0, 4096, SYNC_FILE_RANGE_WRITE) = 0
4711  msync(0x7f0000000000, 4096, MS_SYNC) = 0
4711  fsync(-1)                        = -1 EBADF (Bad file descriptor)
4711  fsync(3)                         = 0
4711  +++ exited with 0 +++
`

// Each call between the marks counts once, also one that another interrupted.
func TestSyncsBetweenMarksCount(t *testing.T) {
	n, err := countSyncs(strings.NewReader(trace))
	require.NoError(t, err)
	require.Equal(t, 5, n)
}

// Without both marks there is no count, rather than one of something else.
func TestTraceWithoutMarksIsRefused(t *testing.T) {
	_, err := countSyncs(strings.NewReader("4711  fsync(3) = 0\n4711  fsync(-1) = -1 EBADF\n"))
	require.ErrorContains(t, err, "1 marks, not 2")
}
