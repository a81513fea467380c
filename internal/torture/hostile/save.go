package hostile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// save salvages a file, and requires that a queue can continue with the
// result.
func (t *trial) save(path string) error {
	if t.err = t.write(path); t.err != nil {
		return t.err
	}
	readable := t.readable(path)
	if t.forged { // a forged record may say that the job ended long ago
		clear(readable)
	}
	to := filepath.Join(t.dir, "salvaged.db")
	_ = os.Remove(to)
	made := false
	t.do("Salvage", func() error {
		_, err := bolt.Salvage(t.ctx, path, to)
		made = err == nil
		return refused(err)
	})
	t.do("the file after a salvage", func() error { return t.untouched(path) })
	if !made {
		return t.err
	}
	var q *bolt.Queue
	t.do("Open of what was salvaged", func() (err error) {
		q, err = bolt.Open(to, options())
		return err
	})
	if q == nil {
		return t.err
	}
	t.do("Check of what was salvaged", func() error { return q.Check(t.ctx) })
	t.do("Jobs that were salvaged", func() error {
		err := t.list(q, pawl.Filter{}, judged(func(e *pawl.Envelope) error {
			delete(readable, e.ID)
			return t.asGiven(e)
		}))
		for id := range readable {
			return errors.Join(err, fmt.Errorf("job %s could be read, and is not there", id))
		}
		return err
	})
	t.salvaged = true
	t.lookAtRuns(q, true)
	t.do("Fetch of what was salvaged", func() error { return t.work(q) })
	t.steer(q)
	t.do("Check of what was salvaged and worked on", func() error { return q.Check(t.ctx) })
	t.do("Close of what was salvaged", q.Close)
	return t.err
}

// readable returns the jobs that a reader finds in a file.
func (t *trial) readable(path string) map[pawl.ID]bool {
	ids := make(map[pawl.ID]bool)
	t.do("Jobs before a salvage", func() error {
		r, err := bolt.OpenReader(path)
		if err != nil {
			return refused(err)
		}
		err = t.list(r, pawl.Filter{}, judged(func(e *pawl.Envelope) error {
			ids[e.ID] = true
			return t.asStored(e)
		}))
		return errors.Join(err, r.Close())
	})
	return ids
}
