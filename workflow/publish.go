package workflow

import (
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Publish stores a value under a name, for whoever looks at the run while it goes on: see
// [Reader.Published]. It replaces what was published under the name before. What a run
// publishes again on its way back to where it was is not written.
func Publish(r *Run, name string, value any) error {
	s, x := r.s, r.x
	if err := validName("published name", name); err != nil {
		return err
	}
	content, err := encode("the published value", value)
	if err != nil {
		return err
	}
	x.mu.Lock()
	err = s.mayCall()
	again := x.dry || s.at < len(s.entries) || s.abandoned
	x.mu.Unlock()
	if err != nil || again {
		return err
	}
	if err := x.engine.queue.Join(x.writing(), &publish{x.lease, x.run, name, content}, len(content)); err != nil {
		return x.stop(err)
	}
	return nil
}

// publish is the rider that publishes a value.
type publish struct {
	lease   *pawl.Lease
	run     pawl.ID
	name    string
	content []byte
}

// Check requires the lease.
func (w *publish) Check(p *bolt.Plan) error { return p.Hold(w.lease) }

// Apply stores the value.
func (w *publish) Apply(tx *bbolt.Tx) error {
	return rowsOf(tx).put(bucketPublished, runAnd(w.run, w.name), w.content)
}
