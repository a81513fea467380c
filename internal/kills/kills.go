// Package kills says how often the tests that kill processes do so.
package kills

import (
	"os"
	"strconv"
	"testing"
)

// Count returns how often a test kills: n times, or as often as PAWL_KILLS says.
func Count(t testing.TB, n int) int {
	t.Helper()
	text := os.Getenv("PAWL_KILLS")
	if text == "" {
		return n
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("PAWL_KILLS=%q is no number of kills", text)
	}
	return n
}
