package plain

import (
	"fmt"

	"github.com/gopawl/pawl"
)

// QueueState returns in a word whether jobs of a queue are run, or why not: it is paused, it rests, no app
// has the file, or the app has no worker for it.
func QueueState(q *pawl.QueueStats, live bool) string {
	switch {
	case q.Paused:
		return "PAUSED"
	case !q.Rests.IsZero():
		return "rests"
	case !live:
		return "stopped"
	case !q.Served:
		return "no worker"
	}
	return "served"
}

// Backlog returns how many jobs of a queue wait and how many may, or "" if their number is not bounded. Full
// says that an enqueue is refused.
func Backlog(q *pawl.QueueStats) (text string, full bool) {
	waiting, bound := q.Ready+q.Delayed, q.Limits.MaxWaiting
	if bound == 0 {
		return "", false
	}
	return fmt.Sprintf("%d of at most %d", waiting, bound), waiting >= bound
}
