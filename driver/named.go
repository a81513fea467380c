package driver

import (
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
)

// Named are the jobs, and the unique keys to take, that the operations of a [Mutation] name. The zero
// value is of a mutation without operations.
type Named struct {
	jobs []pawl.ID
	keys []string
}

// Add adds those of one operation, which may share them. It refuses what an earlier operation named,
// since the check of this one did not see that one. A key is its text with its scope.
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
