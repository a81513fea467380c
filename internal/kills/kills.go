// Package kills has tests that kill processes, for every engine, and what other such tests need.
package kills

import (
	"os"
	"strconv"
	"testing"
)

// variable says how often tests kill.
const variable = "PAWL_KILLS"

// Many reports whether the environment says how often tests kill.
func Many() bool { return os.Getenv(variable) != "" }

// Count returns how often a test kills: n times, or as often as PAWL_KILLS says.
func Count(t testing.TB, n int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return n
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("PAWL_KILLS=%q is no number of kills", text)
	}
	return n
}
