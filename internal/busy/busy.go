// Package busy has what keeps tests from failing on a machine that is busy.
package busy

import "time"

// Lease returns how long leases last in a test that is not about their end: an hour, because a busy machine
// may take longer than the default for what a test does with a lease. In the virtual time of a bubble it is
// 0, which is the default.
func Lease() time.Duration {
	if time.Now().Year() < 2020 { // every bubble begins in 2000
		return 0
	}
	return time.Hour
}
