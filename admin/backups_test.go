package admin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// filler writes that many bytes to w, and reports the result.
func filler(n int, result chan<- error) func(context.Context, io.Writer) error {
	return func(_ context.Context, w io.Writer) error {
		block := make([]byte, 64<<10)
		for n := n; n > 0; n -= len(block) {
			if _, err := w.Write(block[:min(n, len(block))]); err != nil {
				result <- err
				return err
			}
		}
		result <- nil
		return nil
	}
}

// A backup whose client stalls, or reads too slowly to ever finish, is aborted: it keeps pages
// of the file from being reused.
func TestBackupForSlowClientIsGivenUp(t *testing.T) {
	for _, test := range []struct {
		rule   string
		every  time.Duration // between two reads of 64 KiB; 0 means none
		within time.Duration
	}{
		{"a client that reads nothing", 0, stall},
		{"a client that reads 13 KiB a second", 5 * time.Second, stall + 6*time.Second},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				result := make(chan error, 1)
				conn := newPiped(t, &scripted{backup: filler(1<<30, result)}, 4).connect()
				defer conn.Close()
				began := time.Now()
				sendRaw(t, conn, "GET "+pathBackup)
				if test.every > 0 {
					go func() {
						block := make([]byte, 64<<10)
						for {
							if _, err := io.ReadFull(conn, block); err != nil {
								return
							}
							<-time.After(test.every)
						}
					}()
				}
				require.Error(t, <-result)
				require.LessOrEqual(t, time.Since(began), test.within)
			})
		})
	}
}

// A complete backup is distinguishable from a truncated one, wherever it was cut.
func TestBackupThatWasCutIsNoBackup(t *testing.T) {
	broke := errors.New("the disk broke")
	for _, test := range []struct {
		rule  string
		bytes int
		err   error
	}{
		{"an empty copy", 0, nil},
		{"a whole copy", 300_000, nil},
		{"an error before the first byte", 0, broke},
		{"an error after some bytes", 10, broke},
		{"an error after many bytes", 300_000, broke},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				content := bytes.Repeat([]byte("jobs."), test.bytes/5)
				a := &scripted{backup: func(_ context.Context, w io.Writer) error {
					_, err := w.Write(content)
					return errors.Join(err, test.err)
				}}
				var got bytes.Buffer
				err := newPiped(t, a, 4).client().Backup(t.Context(), &got)
				if test.err == nil {
					require.NoError(t, err)
					require.Equal(t, len(content), got.Len())
					return
				}
				require.Error(t, err)
				if test.bytes == 0 {
					require.ErrorContains(t, err, broke.Error())
					return
				}
				// A client that does not know the trailer, such as curl, notices too.
				conn := newPiped(t, a, 4).connect()
				defer conn.Close()
				sendRaw(t, conn, "GET "+pathBackup)
				response, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err == nil {
					_, err = io.Copy(io.Discard, response.Body)
				}
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			})
		})
	}
}

// An error of the caller's writer is returned to the caller.
func TestBackupReturnsTheErrorOfItsWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		result := make(chan error, 1)
		r, w := io.Pipe()
		full := errors.New("no room")
		require.NoError(t, r.CloseWithError(full))
		err := newPiped(t, &scripted{backup: filler(1<<20, result)}, 4).client().Backup(t.Context(), w)
		require.Equal(t, full, err)
		<-result
	})
}
