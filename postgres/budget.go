package postgres

import "time"

// Limits on the due work of one transaction: the number of portions, and of jobs in a portion. A claim never has more
// jobs than a portion.
const (
	portions = 10
	portion  = 1000
)

// The limits shrink if the server is too slow for them. A transaction moves at most scheduler.budget jobs for each kind
// of due work. After a third of Options.Timeout it takes at most one more portion of each kind. If it does not succeed
// in time nevertheless, the next one has a smaller budget.

// portions returns how many portions the transaction may take for each kind of due work.
func (t *txn) portions() int { return max(1, t.q.budget/portion) }

// portion returns how many jobs a portion has.
func (t *txn) portion() int { return min(portion, t.q.budget) }

// hasTime reports whether there is time for more than one portion.
func (t *txn) hasTime() bool { return time.Since(t.mono) < t.q.opts.Timeout/3 }

// cutBudget makes the budget smaller than a portion, since due work took too long.
func (s *scheduler) cutBudget() { s.budget = max(1, min(s.budget, portion)/4) }

// raiseBudget makes the budget larger after a transaction that left due work although it had time.
func (t *txn) raiseBudget() {
	t.after = append(t.after, func() {
		if t.hasTime() {
			t.q.budget = min(2*t.q.budget, portions*portion)
		}
	})
}
