package worker

import "time"

// pace says how far ahead to fetch: enough that no slot runs dry during a commit
// when handlers are short, nothing when they are long.
type pace struct {
	handler time.Duration // smoothed time of a handler
	settle  time.Duration // smoothed time of a settle, thus of a commit
}

// minWait keeps jobs that are a little unequal from going back and forth.
const minWait = 100 * time.Millisecond

// maxAhead bounds the jobs that wait in a worker: no more are fetched ahead, and none
// while the payloads of those that wait have maxAheadBytes.
const (
	maxAhead      = 2048
	maxAheadBytes = 16 << 20
)

func (p *pace) ran(d time.Duration) { p.handler = smooth(p.handler, max(d, time.Microsecond)) }

// maxWait is how long jobs that were fetched ahead may see no slot come free.
func (p *pace) maxWait() time.Duration { return max(minWait, 2*p.settle) }

// overran notes that no handler has returned for that long.
func (p *pace) overran() { p.handler = max(p.handler, p.maxWait()) }

func (p *pace) settled(d time.Duration) { p.settle = smooth(p.settle, d) }

// smooth is an exponential moving average that gives the new value an eighth.
func smooth(old, value time.Duration) time.Duration {
	if old == 0 {
		return value
	}
	return old + (value-old)/8
}

// ahead is how many jobs all slots together finish in two commits: one that is
// under way, and one that fetches.
func (p *pace) ahead(slots int) int {
	if p.handler == 0 {
		return 0
	}
	return int(min(2*float64(slots)*float64(p.settle)/float64(p.handler), maxAhead))
}
