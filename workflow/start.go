package workflow

import (
	"bytes"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// start is the rider that begins a run.
type start struct {
	row   runRow
	input []byte
	job   *pawl.Envelope

	run pawl.ID // of the one that has the ID now
	new bool
}

// Check finds the run that has the ID already.
func (s *start) Check(p *bolt.Plan) error {
	r := rowsOf(p.Tx())
	known, err := r.find(s.row.Flow, s.row.ID)
	if err != nil {
		return err
	}
	s.new = known == pawl.ID{}
	if s.new {
		s.run = s.job.ID
		s.row.Created = p.Now().UnixNano()
		return p.Enqueue(s.job)
	}
	row, err := r.mustRun(known)
	if err != nil {
		return err
	}
	if !bytes.Equal(row.Input, s.row.Input) {
		return ErrConflict
	}
	s.run = known
	return nil
}

// Apply writes the rows of the run.
func (s *start) Apply(tx *bbolt.Tx) error {
	if !s.new {
		return nil
	}
	r, err := makeRows(tx)
	if err != nil {
		return err
	}
	if err := r.put(bucketIDs, idKey(s.row.Flow, s.row.ID), s.run[:]); err != nil {
		return err
	}
	if err := r.put(bucketBlobs, seqKey(s.run, inputSeq), s.input); err != nil {
		return err
	}
	return r.putRun(s.run, &s.row)
}
