// Package race knows whether the race detector is at work, under which tests take several
// times as long.
package race

// Fewer is how many of n repetitions a test makes: a quarter of them, and one at least, under the
// race detector, which finds no more races in the others.
func Fewer(n int) int {
	if enabled {
		return max(1, n/4)
	}
	return n
}
