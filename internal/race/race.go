// Package race reduces the work of tests under the race detector, which makes them several times as
// slow.
package race

import "testing"

// Fewer returns how many of n repetitions a test should make: under the race detector an eighth, at
// least 1, because it rarely finds more races in the others.
func Fewer(n int) int {
	if enabled {
		return max(1, n/8)
	}
	return n
}

// SkipBuilt skips a test under the race detector if the programs that it builds do the work. The detector
// is not in them, so it would find nothing more than the test finds without it.
func SkipBuilt(t testing.TB) {
	t.Helper()
	skip(t, "the programs that this test builds do not have it")
}

// SkipLone skips a test under the race detector if one goroutine does the work, or if a smaller test meets the same
// code from as many goroutines. The detector would find nothing more than the test finds without it.
func SkipLone(t testing.TB) {
	t.Helper()
	skip(t, "one goroutine does the work, or a smaller test has the same races")
}

func skip(t testing.TB, why string) {
	t.Helper()
	if enabled {
		t.Skip("not under the race detector: " + why)
	}
}
