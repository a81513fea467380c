package driver

import (
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
)

// Named collects the jobs, and the unique keys to take, that the operations of a [Mutation] name. The
// zero value is for a mutation without operations.
type Named struct {
	jobs []pawl.ID
	keys []string
}

// Add adds the jobs and keys of one operation. It refuses what an earlier operation named, because
// the check of this operation did not see the effect of the earlier one. A key is its text with its
// scope.
func (n *Named) Add(jobs []pawl.ID, keys []string) error {
	for _, id := range jobs {
		if slices.Contains(n.jobs, id) {
			return &pawl.InvalidError{Field: "mutation", Reason: fmt.Sprintf("names job %s twice", id)}
		}
	}
	for _, key := range keys {
		if slices.Contains(n.keys, key) {
			return &pawl.InvalidError{Field: "mutation", Reason: "takes a unique key twice"}
		}
	}
	n.jobs, n.keys = append(n.jobs, jobs...), append(n.keys, keys...)
	return nil
}
