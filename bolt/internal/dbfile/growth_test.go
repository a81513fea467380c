package dbfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// readerAt is a file as a function.
type readerAt func(b []byte, at int64) (int, error)

func (f readerAt) ReadAt(b []byte, at int64) (int, error) { return f(b, at) }

// Rule: stop returns when the last read has ended, and nothing is read after that.
func TestReadAheadIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		stop := readAhead(readerAt(func(b []byte, _ int64) (int, error) {
			reads.Add(1)
			<-time.After(time.Second)
			return len(b), nil // a file without an end
		}))
		<-time.After(2500 * time.Millisecond)
		began := time.Now()
		stop()
		require.Equal(t, 500*time.Millisecond, time.Since(began), "the read under way")
		require.EqualValues(t, 3, reads.Load())
		<-time.After(time.Hour)
		require.EqualValues(t, 3, reads.Load())
		stop()
	})
}

// Rule: the read-ahead goes from the beginning of the file to its end, and ends with the first
// error. Then stop need not wait.
func TestReadAheadEndsWithTheFile(t *testing.T) {
	const size = 5<<20 + 4096
	whole := bytes.NewReader(make([]byte, size))
	for _, test := range []struct {
		rule string
		end  int64
		err  error
	}{
		{"the end", size, io.EOF},
		{"cut while it was read", 2 << 20, io.EOF},
		{"a disk error", 3 << 20, errors.New("disk error")},
		{"closed meanwhile", 0, os.ErrClosed},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var read int64 // position of the last read; one goroutine writes
				stop := readAhead(readerAt(func(b []byte, at int64) (int, error) {
					if at != read {
						t.Errorf("reads at %d, and has read up to %d", at, read)
					}
					if at >= test.end {
						return 0, test.err
					}
					n, err := whole.ReadAt(b, at)
					read += int64(n)
					return n, err
				}))
				synctest.Wait()
				require.Equal(t, test.end, read)
				stop()
			})
		})
	}
}
