package workflow_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/workflow"
)

// BenchmarkListByAttribute looks for ten of 100,000 runs, by an attribute and by an ID that begins alike.
func BenchmarkListByAttribute(b *testing.B) {
	q, err := bolt.Open(filepath.Join(memdir.New(b), "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(b, err)
	defer q.Close()
	e := workflow.Open(q, &workflow.Options{Logger: hclog.NewNullLogger()})
	f := workflow.Define("f", func(*workflow.Run, int) (int, error) { return 0, nil })
	const all = 100_000
	var wait sync.WaitGroup
	for part := range 64 {
		wait.Go(func() {
			for n := part; n < all; n += 64 {
				_, err := f.Start(context.Background(), e, fmt.Sprint(n), n, workflow.Attributes(map[string]string{"customer": fmt.Sprint(n / 10), "region": "eu", "plan": "pro"}))
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	for _, filter := range []workflow.Filter{
		{Attributes: map[string]string{"customer": "5000"}}, {Prefix: "9999"},
	} {
		b.Run("", func(b *testing.B) {
			for range b.N {
				found, pages := 0, 0
				for after, more := "", true; more; more = after != "" && found < 100 {
					page, err := e.List(b.Context(), filter, after, 100)
					require.NoError(b, err)
					found, after = found+len(page.Runs), page.Next
					pages++
				}
				b.ReportMetric(float64(found), "found")
				b.ReportMetric(float64(pages), "lists")
			}
		})
	}
}
