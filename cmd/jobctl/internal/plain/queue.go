package plain

import "github.com/gopawl/pawl"

// QueueState returns in a word whether jobs of a queue are run, or why not: it is paused, no app
// has the file, or the app has no worker for it.
func QueueState(q *pawl.QueueStats, live bool) string {
	switch {
	case q.Paused:
		return "PAUSED"
	case !live:
		return "stopped"
	case !q.Served:
		return "no worker"
	}
	return "served"
}
