package main

import (
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// buffer is what several handlers print into.
type buffer struct {
	sync.Mutex
	strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Builder.Write(p)
}

// Rule: it ends by itself, and tells of each job what became of it.
func TestPrintsWhatHappened(t *testing.T) {
	var out buffer
	require.NoError(t, run(t.Context(), &out))
	for _, line := range []string{
		`enqueued  \S+  ada@example.com`,
		`attempt 1 \S+  ada@example.com: sent`,
		`attempt 1 \S+  busy@example.com: mailbox is busy`,
		`attempt 2 \S+  busy@example.com: sent`,
		`attempt 1 \S+  nobody: address has no @`,
		`dead      \S+  permanent, attempts: 1, address has no @`,
	} {
		require.Regexp(t, regexp.MustCompile("(?m)^"+line+"$"), out.String())
	}
	require.Equal(t, 8, strings.Count(out.String(), "\n"))
}
