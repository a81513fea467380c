package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/gopawl/pawl"
)

// statement is the result of an audit.
type statement struct {
	plan     plan
	balances map[string]int64
	sum      int64

	made, refused, waiting int // transfers
	fees, feesWaiting      int
}

// audit checks the books against the queue. At every moment, after every kill:
//
//   - no money was created or lost
//   - the balances are the sums of the journal entries
//   - each transfer is either once in the journal or once in the queue
//   - the same holds for the fee of each transfer that was made, and there are no other fees
//
// No worker may run meanwhile, because the books and the queue are read one after the other.
func audit(ctx context.Context, q reader) (*statement, error) {
	s := new(statement)
	replayed := map[string]int64{bank: 0}
	posted, open := make(map[step]int), make(map[step]int)
	err := q.view(ctx, func(b books) error {
		stored, err := b.plan()
		if err != nil {
			return err
		}
		if err := json.Unmarshal(stored, &s.plan); err != nil {
			return err
		}
		for i := range s.plan.Accounts {
			replayed[accountName(i)] = openingBalance
		}
		balances, journal, err := b.read()
		if err != nil {
			return err
		}
		s.balances = balances
		for _, cents := range balances {
			s.sum += cents
		}
		for _, e := range journal {
			replayed[e.From] -= e.Amount
			replayed[e.To] += e.Amount
			posted[step{e.Transfer, e.Fee}]++
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the books: %w", err)
	}
	for job, err := range q.Jobs(ctx, pawl.Filter{}) {
		if err != nil {
			return nil, err
		}
		if err := s.count(job, open); err != nil {
			return nil, err
		}
	}
	return s, s.verify(replayed, posted, open)
}

// step is a transfer or its fee.
type step struct {
	transfer int
	fee      bool
}

// count counts a job in the queue, live or dead.
func (s *statement) count(job *pawl.Envelope, open map[step]int) error {
	if job.Kind == chargeFee.Name() {
		fee, err := chargeFee.Job(job)
		if err != nil {
			return err
		}
		open[step{fee.Args.Number, true}]++
		s.feesWaiting++
		return nil
	}
	transfer, err := makeTransfer.Job(job)
	if err != nil {
		return err
	}
	open[step{transfer.Args.Number, false}]++
	if job.Death != nil && job.Death.Reason == pawl.ReasonPermanent {
		s.refused++
	} else {
		s.waiting++
	}
	return nil
}

// verify compares the books with the journal and the queue.
func (s *statement) verify(replayed map[string]int64, posted, open map[step]int) error {
	if want := int64(s.plan.Accounts) * openingBalance; s.sum != want {
		return fmt.Errorf("the books are wrong: all balances sum to %d, not %d", s.sum, want)
	}
	if !maps.Equal(s.balances, replayed) {
		return errors.New("the books are wrong: the balances are not the sums of the journal entries")
	}
	for n := 1; n <= s.plan.Transfers; n++ {
		transfer, fee := step{n, false}, step{n, true}
		if posted[transfer]+open[transfer] != 1 {
			return fmt.Errorf("the books are wrong: transfer %d was made %d times and is %d times in the queue",
				n, posted[transfer], open[transfer])
		}
		if posted[fee]+open[fee] != posted[transfer] {
			return fmt.Errorf("the books are wrong: transfer %d was made %d times, its fee charged %d times and is %d times in the queue",
				n, posted[transfer], posted[fee], open[fee])
		}
		s.made += posted[transfer]
		s.fees += posted[fee]
	}
	return nil
}

// print writes the statement, with the accounts if they are few.
func (s *statement) print(out io.Writer) {
	fmt.Fprintf(out, "made %d, refused %d, waiting %d; fees charged %d, waiting %d\n",
		s.made, s.refused, s.waiting, s.fees, s.feesWaiting)
	if len(s.balances) <= 21 {
		for _, name := range slices.Sorted(maps.Keys(s.balances)) {
			fmt.Fprintf(out, "  %-12s %10d\n", name, s.balances[name])
		}
	}
	fmt.Fprintf(out, "sum %d cents, as at the start\n", s.sum)
}
