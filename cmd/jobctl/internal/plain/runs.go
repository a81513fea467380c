package plain

import (
	"fmt"
	"strings"

	"github.com/gopawl/pawl/workflow"
)

// Runs returns how many runs have which status: first those that need attention, then the rest.
// Both are "" if there are no runs.
func Runs(c workflow.Counts) (bad, others string) {
	type part struct {
		n    int
		word string
	}
	join := func(before bool, parts ...part) string {
		var texts []string
		for _, p := range parts {
			if p.n > 0 {
				texts = append(texts, fmt.Sprintf("%d %s", p.n, p.word))
			}
		}
		text := strings.Join(texts, ", ")
		if before && text != "" {
			text = ", " + text
		}
		return text
	}
	bad = join(false, part{c.Blocked, "blocked"}, part{c.Damaged, "damaged"}, part{c.Failed, "failed"}, part{c.Paused, "paused"})
	others = join(bad != "", part{c.Active, "active"}, part{c.Done, "done"}, part{c.Cancelled, "cancelled"}, part{c.Terminated, "terminated"})
	if c.More {
		others += ", and older ones"
	}
	return bad, others
}
