package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
)

// inProcess sends requests to the hosts without a network.
type inProcess struct{ *web }

func (w inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	for _, s := range w.sites {
		if s.name == r.URL.Host {
			rec := httptest.NewRecorder()
			s.ServeHTTP(rec, r)
			return rec.Result(), nil
		}
	}
	return nil, io.EOF
}

// crawled returns the hosts after a crawl in virtual time.
func crawled(t *testing.T, slots int) *web {
	t.Helper()
	w := newWeb()
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(&memory.Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: polite}, Logger: hclog.NewNullLogger()})
		c := crawler{q, &http.Client{Transport: inProcess{w}}}
		require.NoError(t, c.crawl(t.Context(), slots, w.roots()...))
		require.NoError(t, q.Close())
	})
	return w
}

// Rule: each page is fetched once. No host gets a second request while one is under way, more requests in a second than
// its rate, or any while it is busy.
func TestIsPolite(t *testing.T) {
	for _, slots := range []int{1, 2, 8} {
		refused := 0
		for _, s := range crawled(t, slots).sites {
			require.Len(t, s.got, s.pages, s.name)
			require.Equal(t, s.pages, s.served(), s.name)
			require.Equal(t, 1, s.most, "requests of %s at once", s.name)
			require.LessOrEqual(t, s.mostIn(time.Second), 25, "requests of %s in a second", s.name)
			require.Zero(t, s.whileBusy, "requests of %s while it is busy", s.name)
			refused += s.refused
		}
		require.Equal(t, 2, refused, "hosts that were busy once")
	}
}

// Rule: with fewer slots than hosts, the hosts take turns: when a small one that is never busy gets its last
// request, the large one has got at most one more than it.
func TestHostsTakeTurns(t *testing.T) {
	sites := crawled(t, 1).sites
	for _, s := range sites[1:5] {
		last := s.arrived[len(s.arrived)-1]
		before := slices.IndexFunc(sites[0].arrived, last.Before)
		require.LessOrEqual(t, before, s.pages+1, "requests of the large host until the last one of %s", s.name)
	}
}

// Rule: while a host is busy, the others are asked.
func TestOthersGoOn(t *testing.T) {
	sites := crawled(t, 1).sites
	large, busy := sites[0], sites[len(sites)-1]
	require.True(t, slices.ContainsFunc(large.arrived, func(at time.Time) bool {
		return at.After(busy.busyUntil.Add(-time.Second)) && at.Before(busy.busyUntil)
	}))
}

// Rule: the program does the same over real servers, whatever the load of the machine, and prints it. A server may get
// one request more in a second than its rate, since the first one was on its way when it was counted.
func TestServers(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	require.Equal(t, 0, command(t.Context(), nil, &out, &errs), errs.String())
	for _, line := range []string{`large.test  50     1        (\d+) +1     0 `, `a.test      5      1        (\d+) +0     0 `, `e.test      5      1        (\d+) +1     0 `} {
		require.Regexp(t, `(?m)^`+line, out.String())
	}
	for _, found := range regexp.MustCompile(`(?m)^\S+ +\d+ +\d+ +(\d+)`).FindAllStringSubmatch(out.String(), -1) {
		require.Regexp(t, `^(\d|1\d|2[0-6])$`, found[1], "requests in a second")
	}
}

// Rule: invalid input gets a clear error and exit code 2.
func TestBadInput(t *testing.T) {
	for _, args := range [][]string{{"now"}, {"-j", "0"}, {"-x"}} {
		var out, errs bytes.Buffer
		require.Equal(t, 2, command(t.Context(), args, &out, &errs))
		require.NotEmpty(t, errs.String())
	}
	var out, errs bytes.Buffer
	require.Equal(t, 0, command(t.Context(), []string{"-h"}, &out, &errs))
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	require.Equal(t, 130, command(ctx, nil, &out, &errs))
}
