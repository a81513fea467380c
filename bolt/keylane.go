package bolt

import "bytes"

// keyLane counts the jobs of a key in one lane. The stored row counts leased and ready jobs together; [keyLeases]
// counts the leased ones. The row does not count blocked jobs, so it does not change when one of many blocked
// jobs replaces a job that is done.
type keyLane struct {
	at      laneAt
	ready   int
	leased  int // from the lane
	blocked bool
	mixed   bool             // with blocked jobs: a ready job may come after one of them
	count   *leaseCount      // where the process counts the leased jobs; nil if not looked up yet
	last    [orderWidth]byte // no ready job of the lane comes after it; meaningless without ready jobs, and with blocked jobs unless mixed
}

// laneAt is a lane of a line, as the first bytes of a key in bucketReady.
type laneAt [lanePrefix]byte

// trimmed returns the lanes that have jobs.
func trimmed(lanes []keyLane) []keyLane {
	kept := lanes[:0]
	for _, l := range lanes {
		if l.ready > 0 || l.leased > 0 || l.blocked {
			kept = append(kept, l)
		}
	}
	return kept
}

// lane returns the counts of the lane of a ready key.
func (r *keyRow) lane(ready []byte) *keyLane {
	at := laneAt(ready)
	for i := range r.lanes {
		if r.lanes[i].at == at {
			return &r.lanes[i]
		}
	}
	r.lanes = append(r.lanes, keyLane{at: at})
	return &r.lanes[len(r.lanes)-1]
}

// orderOf returns the order within the lane of a key in bucketReady, or of a blocked row's key.
func orderOf(key []byte) []byte { return key[len(key)-orderWidth:] }

// enter counts a job that enters ready under a key.
func (l *keyLane) enter(ready []byte) {
	l.ready++
	if order := orderOf(ready); l.ready == 1 || bytes.Compare(order, l.last[:]) > 0 {
		l.last = [orderWidth]byte(order)
	}
}

// leave counts a job that leaves ready.
func (l *keyLane) leave() {
	if l.ready = max(0, l.ready-1); l.ready == 0 {
		l.mixed = false
	}
}

// comesLast reports whether a job comes after all ready jobs of its lane: the first blocked one, or any job if none is blocked.
func (l *keyLane) comesLast(order []byte) bool {
	return l.ready == 0 || l.blocked && !l.mixed || bytes.Compare(order, l.last[:]) > 0
}

// block records a blocked job, given its order. No ready job comes after last.
func (l *keyLane) block(order, last []byte) {
	if l.ready > 0 && !l.mixed && bytes.Compare(order, last) < 0 {
		l.mixed, l.last = true, [orderWidth]byte(last)
	}
	l.blocked = true
}

// unblock records that a blocked job has left. Left says whether blocked jobs remain.
func (l *keyLane) unblock(order []byte, left bool) {
	if left {
		return
	}
	if !l.mixed {
		l.last = [orderWidth]byte(order) // which came after all ready jobs
	}
	l.blocked, l.mixed = false, false
}
