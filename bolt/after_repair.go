package bolt

import (
	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// prerequisites requires that a ready job is blocked if and only if it has prerequisites, and that none of these
// is met.
func (c *check) prerequisites() {
	waits := make(map[pawl.ID]bool)
	err := driver.EachPrerequisite(c.others(), func(id pawl.ID, p driver.Prerequisite, damage error) bool {
		if damage != nil {
			c.wrong("what job %s waits for: %w", id, damage)
			return !c.done()
		}
		waits[id] = true
		if j, at, err := c.placed(p.ID); err == nil && p.Met(at.state) {
			c.wrong("job %s waits for job %s, which is %s", id, j.ID, at.state)
		}
		switch _, at, err := c.placed(id); {
		case err != nil:
			c.wrong("job %s waits for job %s: %w", id, p.ID, err)
		case at.state == pawl.Ready && !isAwait(at), at.state == pawl.Leased, at.state == pawl.Completed:
			c.wrong("job %s waits for job %s, and is %s, not blocked by it", id, p.ID, at.state)
		}
		return !c.done()
	})
	if err != nil {
		c.wrong("prerequisites: %w", err)
	}
	eachRow(c.delayed, []byte{waitsForJobs}, func(k, v []byte) {
		if row, err := parseDelayedRow(k, v); err == nil && !waits[row.id] {
			c.wrong("job %s is blocked by prerequisites, and has none", row.id)
		}
	})
}

// placed reads a job and finds its place.
func (s *store) placed(id pawl.ID) (j stored, at place, err error) {
	if j, err = s.listed(id); err == nil {
		at, err = s.where(j.Envelope)
	}
	return j, at, err
}

// isAwait reports whether a job is blocked by prerequisites.
func isAwait(at place) bool {
	return at.state == pawl.Ready && string(at.table.name) == string(bucketDelayed) && at.key[0] == waitsForJobs
}

// repairPrerequisites makes the rows of prerequisites agree with the states of jobs. Of the two rows of a
// prerequisite, one restores the other. A job that is blocked by prerequisites and has no such row becomes dead:
// it must not start too early.
func (s *salvor) repairPrerequisites() error {
	met := make(map[pawl.ID]bool) // jobs with a prerequisite that is met
	err := s.update(func(t *txn) {
		t.changed = true
		t.fail(driver.RepairPrerequisites(t.others(), func(id pawl.ID, p driver.Prerequisite) bool {
			if _, _, err := t.find(id); err != nil {
				return false
			}
			is := p.Met(t.stateOf(p.ID))
			met[id] = met[id] || is
			return !is
		}))
	})
	if err != nil {
		return err
	}
	return s.eachRecord(func(t *txn, j stored) {
		at, err := t.where(j.Envelope)
		switch waits := t.waits(j.ID); {
		case err != nil || at.state != pawl.Ready || isAwait(at) == waits:
		case waits:
			t.unplace(j, at)
			t.placeReady(j)
		case met[j.ID]:
			t.release(j.ID)
		default:
			t.unplace(j, at)
			s.makeDead(t, j, "what it waited for is lost: the file was damaged")
		}
	})
}
