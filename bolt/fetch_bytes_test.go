package bolt

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// batchOf makes jobs of the kinds 0, 1, 2 and so on, modified by change.
func batchOf(n int, change func(i int, e *pawl.Envelope)) []*pawl.Envelope {
	jobs := make([]*pawl.Envelope, n)
	for i := range jobs {
		jobs[i] = &pawl.Envelope{Kind: fmt.Sprint(i), MaxRetries: 3}
		change(i, jobs[i])
	}
	return jobs
}

// fetchAll fetches up to limit jobs at a time until there are none, and returns the kinds of
// each fetch. It requires that the remaining jobs are ready.
func fetchAll(t *testing.T, q *Queue, jobs, limit int, payload []byte) (fetches [][]string) {
	t.Helper()
	for left := jobs; left > 0; {
		leases := fetch(t, q, limit)
		require.NotEmpty(t, leases, "%d jobs are left", left)
		var kinds []string
		for _, l := range leases {
			kinds = append(kinds, l.Kind)
			require.True(t, bytes.Equal(payload, l.Payload), "the payload of job %s", l.Kind)
		}
		fetches = append(fetches, kinds)
		left -= len(leases)
		require.Equal(t, pawl.Counts{Ready: left, Leased: jobs - left}, countsOf(t, q, pawl.DefaultQueue))
	}
	require.Empty(t, fetch(t, q, limit))
	return fetches
}

// numbers returns the numbers from first to last as texts.
func numbers(first, last int) (texts []string) {
	for i := first; i <= last; i++ {
		texts = append(texts, fmt.Sprint(i))
	}
	return texts
}

// Rule: one fetch copies at most maxFetchBytes, not counting the last job. The remaining jobs
// stay ready and come in order with the next fetches.
func TestFetchOfLargePayloadsIsBounded(t *testing.T) {
	const mebibyte = 1 << 20
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
	payload := bytes.Repeat([]byte("x"), mebibyte)
	require.NoError(t, withid.Enqueue(t.Context(), q, batchOf(20, func(_ int, e *pawl.Envelope) { e.Payload = payload })...))
	require.Equal(t, [][]string{numbers(0, 7), numbers(8, 15), numbers(16, 19)}, fetchAll(t, q, 20, 100, payload),
		"8 jobs are the first to have %d bytes", maxFetchBytes)
}

// Rule: a request below the limit gets as many jobs as it asks for.
func TestFetchBelowTheBoundIsAsLargeAsAsked(t *testing.T) {
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
	payload := bytes.Repeat([]byte("x"), 64<<10)
	require.NoError(t, withid.Enqueue(t.Context(), q, batchOf(127, func(_ int, e *pawl.Envelope) { e.Payload = payload })...))
	require.Equal(t, [][]string{numbers(0, 126)}, fetchAll(t, q, 127, 1000, payload))
}

// Rule: records count like payloads, since they are copied too.
func TestFetchOfLargeRecordsIsBounded(t *testing.T) {
	const jobs = 1300
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
	header := string(bytes.Repeat([]byte("h"), 8000))
	require.NoError(t, withid.Enqueue(t.Context(), q, batchOf(jobs, func(_ int, e *pawl.Envelope) {
		e.Headers = map[string]string{"h": header}
	})...))
	fetches := fetchAll(t, q, jobs, jobs, nil)
	require.Len(t, fetches, 2)
	require.InDelta(t, maxFetchBytes/len(header), len(fetches[0]), 40)
	require.Equal(t, numbers(0, jobs-1), slices.Concat(fetches...))
}

// Rule: a job of any size is fetched, also behind smaller jobs.
func TestFetchOfAJobBeyondTheBound(t *testing.T) {
	const huge = maxFetchBytes + 1<<20
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), &Options{MaxPayload: huge})
	large := map[int]bool{0: true, 1: true, 4: true}
	require.NoError(t, withid.Enqueue(t.Context(), q, batchOf(7, func(i int, e *pawl.Envelope) {
		if large[i] {
			e.Payload = bytes.Repeat([]byte("x"), huge)
		}
	})...))
	for _, want := range [][]string{{"0"}, {"1"}, {"2", "3", "4"}, {"5", "6"}} {
		leases := fetch(t, q, 100)
		var kinds []string
		for _, l := range leases {
			kinds = append(kinds, l.Kind)
			if large[int(l.Kind[0]-'0')] {
				require.Len(t, l.Payload, huge)
			}
		}
		require.Equal(t, want, kinds)
	}
	require.Empty(t, fetch(t, q, 100))
}

// Rule: a fetch that was limited takes the turns of the jobs that it has, and no others. The
// next fetch continues where it ended.
func TestBoundedFetchesKeepTheTurns(t *testing.T) {
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
	queues := []string{"a", "b", "c"}
	require.NoError(t, withid.Enqueue(t.Context(), q, batchOf(30, func(i int, e *pawl.Envelope) {
		e.Queue, e.Payload = queues[i/10], bytes.Repeat([]byte("x"), 1<<20)
	})...))
	counts := make(map[string]int)
	for range 3 {
		leases := fetch(t, q, 100, queues...)
		require.Len(t, leases, 8)
		for _, l := range leases {
			counts[l.Queue]++
		}
	}
	require.Equal(t, map[string]int{"a": 8, "b": 8, "c": 8}, counts)
}

// Rule: the limit applies separately to each fetch of a commit.
func TestBoundIsOfOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		got := make(chan int, 2)
		for range 2 {
			go func() {
				leases, _ := q.Fetch(ctx, pawl.Request{Max: 100})
				got <- len(leases)
			}()
		}
		synctest.Wait()
		require.NoError(t, withid.Enqueue(t.Context(), q, batchOf(16, func(_ int, e *pawl.Envelope) {
			e.Payload = bytes.Repeat([]byte("x"), 1<<20)
		})...))
		require.Equal(t, []int{8, 8}, []int{<-got, <-got})
	})
}
