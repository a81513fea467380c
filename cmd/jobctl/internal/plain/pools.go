package plain

import (
	"fmt"
	"strings"

	"github.com/gopawl/pawl"
)

// Pool is a pool, and the queues that share it.
type Pool struct {
	Name   string
	Queues []*pawl.QueueStats // in their order; at least one
	Leased int                // jobs of all of them
	Most   int                // the highest number that one of them has for the pool
}

// Pools returns the pools of queues, in the order of their first queues.
func Pools(queues []pawl.QueueStats) (pools []*Pool) {
	named := make(map[string]*Pool)
	for i := range queues {
		q := &queues[i]
		limit := q.Limits.Pool
		if limit.Running == 0 {
			continue
		}
		p := named[limit.Name]
		if p == nil {
			p = &Pool{Name: limit.Name}
			named[limit.Name], pools = p, append(pools, p)
		}
		p.Queues, p.Leased, p.Most = append(p.Queues, q), p.Leased+q.Leased, max(p.Most, limit.Running)
	}
	return pools
}

// String returns how much of a pool is taken, and which queues share it. A number in parentheses is that of a queue
// with a lower one than others have.
func (p *Pool) String() string {
	names := make([]string, len(p.Queues))
	for i, q := range p.Queues {
		names[i] = Text(q.Name)
		if n := q.Limits.Pool.Running; n < p.Most {
			names[i] += fmt.Sprintf(" (%d)", n)
		}
	}
	return fmt.Sprintf("pool %s: %d of %d leased, queues %s", Text(p.Name), p.Leased, p.Most, strings.Join(names, ", "))
}
