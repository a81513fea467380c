package queuetest

import (
	"time"

	"github.com/gopawl/pawl"
)

// An Oracle knows what each operation does to a job. It is the model of the random
// walks, for tests that observe jobs in other ways, such as in the file of a killed
// process.
type Oracle struct{ model *model }

// NewOracle returns an Oracle without jobs for a queue with these settings.
func NewOracle(s Settings) *Oracle { return &Oracle{newModel(s)} }

// Put adds a job as its envelope describes it. A leased job gets a current lease.
func (o *Oracle) Put(e *pawl.Envelope) {
	j := &modelJob{Envelope: *copied(e)}
	if j.State == pawl.Leased {
		j.expires = o.model.now.Add(o.model.lease)
	}
	o.model.jobs = append(o.model.jobs, j)
	o.model.hold(j)
}

// Job returns a job as inspection must show it, or nil.
func (o *Oracle) Job(id pawl.ID) *pawl.Envelope {
	if j := o.model.find(id); j != nil {
		return copied(&j.Envelope)
	}
	return nil
}

// Enqueue stores a job whose unique key no other job has.
func (o *Oracle) Enqueue(e *pawl.Envelope) error {
	return o.model.enqueue([]*pawl.Envelope{accepted(e, o.model.now)}, []pawl.Enqueued{{ID: e.ID}})
}

// Settle ends the lease of a job. Verb is the name of a constructor of a settlement, in
// lower case.
func (o *Oracle) Settle(id pawl.ID, verb string, delay time.Duration, reason pawl.Reason) error {
	j := o.model.find(id)
	if j == nil || j.State != pawl.Leased {
		return pawl.ErrLeaseLost
	}
	o.model.settle(j, verb, pawl.Event{Delay: delay}, reason)
	return nil
}

// Retry makes a dead job ready.
func (o *Oracle) Retry(id pawl.ID, keepAttempts bool) error {
	return o.model.operate(pawl.VerbRetry, id, keepAttempts)
}

// Delete removes a dead or completed job.
func (o *Oracle) Delete(id pawl.ID) error { return o.model.operate(pawl.VerbDelete, id, false) }

// Restart ends the process: every lease counts a crash.
func (o *Oracle) Restart() { o.model.restart(true) }
