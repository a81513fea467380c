// Package race reduces repetitions in tests under the race detector, which makes them several times as
// slow.
package race

// Fewer returns how many of n repetitions a test should make: under the race detector an eighth, at
// least 1, because it rarely finds more races in the others.
func Fewer(n int) int {
	if enabled {
		return max(1, n/8)
	}
	return n
}
