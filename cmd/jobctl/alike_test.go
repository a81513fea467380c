package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: errors that differ only in IDs, numbers and times share one line with the first of them
// and a count; JSON has each.
func TestErrorsThatAreAlike(t *testing.T) {
	build(t, func(f *file) {
		for n := range 30 {
			f.kill(pawl.Envelope{Queue: "email", Deadline: today.Add(-time.Duration(n+1) * time.Second)}, pawl.ReasonPermanent, "no")
		}
		f.kill(pawl.Envelope{Queue: "email", UniqueKey: "u"}, pawl.ReasonPermanent, "no")
		f.add(pawl.Envelope{Queue: "email", UniqueKey: "u"})
		f.goTo(today)
	})
	got := jobctl(t, words("--db app.db dead retry --all -y")...)
	require.Equal(t, exitConflict, got.code)
	require.Contains(t, got.stderr, "has passed, it would die again at once (and 29 alike)\n")
	require.Equal(t, 1, strings.Count(got.stderr, "has passed"))
	require.Equal(t, 1, strings.Count(got.stderr, "has its unique key"))
	require.Contains(t, got.stderr, id(1).String(), "an example")

	got = jobctl(t, words("--db app.db dead retry --all -y -o json")...)
	var v changeView
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &v))
	require.Len(t, v.Jobs, 31)
	for _, one := range v.Jobs {
		require.Contains(t, *one.Error, one.ID)
	}
}

// Rule: runs that do not match for the same reason are counted after the first; -v shows each.
func TestRunsThatDoNotFitAlike(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		var out bytes.Buffer
		a := &app{stdout: bufio.NewWriter(&out), flags: shared{output: "table", verbose: verbose}}
		v := &verification{app: a}
		for n := range 2500 {
			v.add(id(n+1).String(), fmt.Errorf("run %s: %w: step %d is missing", id(n+1), pawl.ErrCorrupt, n))
		}
		v.add(id(3000).String(), fmt.Errorf("run %s: %w: it has no journal", id(3000), pawl.ErrCorrupt))
		require.NoError(t, v.print())
		require.NoError(t, a.stdout.Flush())
		lines := strings.Count(out.String(), "\n")
		if verbose {
			require.Equal(t, 2*2501+1, lines)
			continue
		}
		require.Equal(t, 2*2+1+1, lines, out.String())
		require.Contains(t, out.String(), "  and 2499 runs like it; -v shows each\n")
	}
}
