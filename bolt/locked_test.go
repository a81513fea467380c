package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/kills"
	"github.com/gopawl/pawl/internal/withid"
)

// holdRole opens the given file and closes it when the test closes the pipe.
func holdRole(args []string) error {
	q, err := Open(args[0], quiet())
	if err != nil {
		return err
	}
	kills.Say("open")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return q.Close()
}

func TestSecondProcessLearnsWhoHoldsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	holder := kills.Start(t, "hold", path)
	require.Equal(t, "open", holder.Line(t))

	const limit = 200 * time.Millisecond
	began := time.Now()
	_, err := Open(path, &Options{LockTimeout: limit})
	took := time.Since(began)
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, "stop it, or open another file")
	if runtime.GOOS == "linux" {
		name, readErr := os.ReadFile(fmt.Sprintf("/proc/%d/comm", holder.Cmd.Process.Pid))
		require.NoError(t, readErr)
		require.ErrorContains(t, err, fmt.Sprintf("(pid %d, %s)", holder.Cmd.Process.Pid, strings.TrimSpace(string(name))))
	}
	require.Greater(t, took, limit/2, "it waits for the other process to finish")
	require.Less(t, took, time.Minute)

	require.NoError(t, holder.Stdin.Close())
	openAt(t, path, nil) // waits until the holder has released it
}

func TestOneFileOneOwner(t *testing.T) {
	asQueue := func(path string) (io.Closer, error) { return Open(path, quiet()) }
	asReader := func(path string) (io.Closer, error) { return OpenReader(path) }
	for _, test := range []struct {
		rule          string
		first, second func(string) (io.Closer, error)
		want          error
		timeout       time.Duration
	}{
		{"two queues", asQueue, asQueue, ErrLocked, time.Second},
		{"a reader beside a queue", asQueue, asReader, ErrLocked, readerTimeout},
		{"a queue beside a reader", asReader, asQueue, ErrLocked, time.Second},
		{"two readers", asReader, asReader, nil, 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "jobs.db")
				require.NoError(t, openers[0].open(path))
				first, err := test.first(path)
				require.NoError(t, err)
				began := time.Now()
				second, err := test.second(path)
				require.ErrorIs(t, err, test.want)
				if err == nil {
					require.NoError(t, second.Close())
				} else {
					require.InDelta(t, test.timeout, time.Since(began), float64(100*time.Millisecond))
				}
				require.NoError(t, first.Close())

				second, err = test.second(path)
				require.NoError(t, err, "the refusal left nothing behind")
				require.NoError(t, second.Close())
				checkFile(t, path)
			})
		})
	}
}

// A reader reads everything and changes no byte: the next owner of the file decides about its
// leases.
func TestReaderChangesNothing(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "jobs.db")
	require.NoError(t, os.WriteFile(path, soundFile(t), 0o400))
	before := snapshot(t, folder)
	for range 2 {
		r, err := OpenReader(path)
		require.NoError(t, err)
		stats, err := r.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, pawl.Counts{Ready: 1, Delayed: 1, Leased: 1, Dead: 1}, stats.Queues[0].Counts)
		kinds := make(map[pawl.State]string)
		for job, err := range r.Jobs(t.Context(), pawl.Filter{}) {
			require.NoError(t, err)
			one, err := r.Job(t.Context(), job.ID)
			require.NoError(t, err)
			require.Equal(t, job, one)
			kinds[job.State] = job.Kind
		}
		require.Equal(t, map[pawl.State]string{
			pawl.Ready: "ready", pawl.Delayed: "delayed", pawl.Leased: "leased", pawl.Dead: "dead",
		}, kinds)
		require.NoError(t, r.Close())
		_, err = r.Stats(t.Context())
		require.ErrorIs(t, err, pawl.ErrClosed)
	}
	require.Equal(t, before, snapshot(t, folder))
}

// createRole opens each file that the test names, stores a job in it and closes it.
func createRole([]string) error {
	return readReports(func(words []string) error {
		id, err := createAndStore(words[0])
		kills.Say(id, err)
		return nil
	})
}

// createAndStore returns the ID of a job that the file at path certainly has, or ErrLocked.
func createAndStore(path string) (pawl.ID, error) {
	o := quiet()
	o.LockTimeout = time.Duration(1 + rand.IntN(int(60*time.Millisecond)))
	q, err := Open(path, o)
	if err != nil {
		return pawl.ID{}, err
	}
	job := &pawl.Envelope{Kind: "k"}
	err = withid.Enqueue(context.Background(), q, job)
	return job.ID, errors.Join(err, q.Close())
}

func TestManyCreateOneFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	check := func(t *testing.T, path string, stored []string) {
		require.NotEmpty(t, stored, "somebody was first")
		q := openAt(t, path, nil)
		require.Equal(t, len(stored), countsOf(t, q, pawl.DefaultQueue).Ready)
		for _, id := range stored {
			parsed, err := pawl.ParseID(id)
			require.NoError(t, err)
			require.NotNil(t, find(t, q, parsed), "an acknowledged job is gone")
		}
	}
	t.Run("goroutines", func(t *testing.T) {
		for round := range 20 {
			path := filepath.Join(folder, fmt.Sprintf("goroutines-%d.db", round))
			var stored []string
			var mu sync.Mutex
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					id, err := createAndStore(path)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						stored = append(stored, id.String())
					} else if !errors.Is(err, ErrLocked) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			check(t, path, stored)
		}
	})
	t.Run("processes", func(t *testing.T) {
		children := []*kills.Child{kills.Start(t, "create"), kills.Start(t, "create"), kills.Start(t, "create")}
		for round := range 20 {
			path := filepath.Join(folder, fmt.Sprintf("processes-%d.db", round))
			for _, c := range children {
				c.Say(t, path)
			}
			var stored []string
			for _, c := range children {
				id, err, _ := strings.Cut(c.Line(t), " ")
				if err == "<nil>" {
					stored = append(stored, id)
				} else {
					require.Contains(t, err, ErrLocked.Error())
				}
			}
			check(t, path, stored)
		}
	})
	require.Len(t, snapshot(t, folder), 40, "one file each, and nothing temporary")
}
