package worker

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: the stack that is kept of a panic begins where it was raised, so that even a
// short text says where.
func TestStackBeginsAtThePanic(t *testing.T) {
	var stack string
	func() {
		defer func() {
			_ = recover()
			stack = stackOfPanic(string(debug.Stack()))
		}()
		panicker()
	}()
	lines := strings.Split(stack, "\n")
	require.Contains(t, lines[0], "goroutine")
	require.Contains(t, lines[1], "worker.panicker")

	require.Equal(t, "no panic\nin here", stackOfPanic("no panic\nin here"))
}

//go:noinline
func panicker() { panic("here") }
