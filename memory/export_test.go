package memory

import "time"

// ForgetTurns does what a restart does to the turns and shares of queues.
func (q *Queue) ForgetTurns() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.turns, q.virtual = 0, 0
	for _, l := range q.lines {
		l.turn, l.finish, l.credit = 0, 0, 0
	}
}

// Recover does what an engine does that finds the leases of a dead process when it opens its store.
func (q *Queue) Recover() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.begin()
	for _, j := range q.leased.jobs {
		j.expires = time.Now()
	}
	q.catchUp()
}
