package admin

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Each line by itself gets the checks of [driver.CheckRestoredJob], so that all jobs are checked
// before any is stored. The exceptions depend on the target: its largest payload, and which IDs
// and keys are taken.

// envelopeToRestore returns the job of a line.
func envelopeToRestore(j *Job) (*pawl.Envelope, error) {
	if j.Delay != 0 || j.OnConflict != "" {
		return nil, invalid("job", "delay and on_conflict are for jobs that are enqueued; an export has not_before")
	}
	e, err := j.Envelope()
	if err != nil {
		return nil, err
	}
	return e, driver.CheckRestoredJob(e)
}

// effectToRestore returns the idempotency key of a line.
func effectToRestore(x *exportEffect) (driver.Effect, error) {
	e := driver.Effect{Kind: string(x.Kind), Key: string(x.Key), Until: x.Until.Time}
	return e, e.Validate()
}
