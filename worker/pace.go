package worker

import "time"

// pace decides how far ahead to fetch: if handlers are short, enough that no slot is
// idle during a commit; if they are long, nothing.
type pace struct {
	handler time.Duration // smoothed time of a handler
	settle  time.Duration // smoothed time of a settle, and so of a commit
}

// minWait keeps a worker from returning fetched jobs just because handlers take
// slightly different times.
const minWait = 100 * time.Millisecond

// maxAhead bounds the jobs that wait in a worker. None are fetched ahead while the
// payloads of the waiting ones have maxAheadBytes.
const (
	maxAhead      = 2048
	maxAheadBytes = 16 << 20
)

func (p *pace) ran(d time.Duration) { p.handler = smooth(p.handler, max(d, time.Microsecond)) }

// maxWait is how long jobs that were fetched ahead may wait while no slot becomes
// free.
func (p *pace) maxWait() time.Duration { return max(minWait, 2*p.settle) }

// overran records that no handler has returned for maxWait.
func (p *pace) overran() { p.handler = max(p.handler, p.maxWait()) }

func (p *pace) settled(d time.Duration) { p.settle = smooth(p.settle, d) }

// smooth is an exponential moving average in which the new value has a weight of one
// eighth.
func smooth(old, value time.Duration) time.Duration {
	if old == 0 {
		return value
	}
	return old + (value-old)/8
}

// ahead returns how many jobs all slots together finish during two commits: the
// current commit, and the commit of a fetch.
func (p *pace) ahead(slots int) int {
	if p.handler == 0 {
		return 0
	}
	return int(min(2*float64(slots)*float64(p.settle)/float64(p.handler), maxAhead))
}
