package postgres

import (
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// needs is what the calls of a transaction read before they are carried out.
type needs struct {
	ids  []pawl.ID
	keys [][]byte // unique keys, by name
	in   []string // groups

	named    []pawl.ID // the IDs of new jobs
	ordered  []string  // queues of new jobs with keys
	awaited  []pawl.ID // jobs for which the transaction has to find out whether others wait for them
	restores bool      // a new job may wait for a job that does not exist

	rows  []*driver.Needs // what the mutations declare
	alone bool            // a mutation has declared nothing
}

// member adds the group of a job.
func (n *needs) member(e *pawl.Envelope) {
	if e.Group != "" {
		n.in = append(n.in, e.Group)
	}
}

// newJob adds what a new job needs.
func (n *needs) newJob(e *pawl.Envelope) {
	n.member(e)
	if !e.ID.IsZero() {
		n.ids, n.named = append(n.ids, e.ID), append(n.named, e.ID)
	}
	if e.UniqueKey != "" {
		n.keys = append(n.keys, []byte(core.UniqueName(withQueue(e))))
	}
	if driver.Waits(e) {
		n.ids, n.awaited = slices.Concat(n.ids, e.After, e.AfterAny), append(n.awaited, e.ID)
	}
}

// groups returns the groups, each once.
func (n *needs) groups() map[string]bool {
	names := make(map[string]bool)
	for _, name := range n.in {
		names[name] = true
	}
	return names
}
