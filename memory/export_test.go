package memory

// ForgetTurns does what a restart does to the turns and shares of queues.
func (q *Queue) ForgetTurns() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.turns, q.virtual = 0, 0
	for _, l := range q.lines {
		l.turn, l.finish, l.credit = 0, 0, 0
	}
}
