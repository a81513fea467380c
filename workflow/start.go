package workflow

import (
	"bytes"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// start is the mutation that starts a run.
type start struct {
	row    runRow
	input  []byte
	reread func(stored []byte) ([]byte, error) // re-encodes another input as the flow's type reads it
	job    *pawl.Envelope

	run pawl.ID // the run that has the ID now
	new bool

	known []pawl.ID // runs that an earlier Check found under the ID, which another Check may read
}

// Check finds the run that already has the ID.
func (s *start) Check(ops driver.Ops) error {
	r := rowsOf(ops)
	known, err := r.find(s.row.Flow, s.row.ID)
	if err != nil {
		return err
	}
	s.new = known == pawl.ID{}
	if s.new {
		s.run = s.job.ID
		s.row.Created = ops.Now().UnixNano()
		_, err := ops.Enqueue(s.job)
		return err
	}
	if !slices.Contains(s.known, known) {
		s.known = append(s.known, known)
	}
	row, err := r.mustRun(known)
	if err != nil {
		return err
	}
	if !s.sameInput(r, known, row) {
		return ErrConflict
	}
	s.run = known
	return nil
}

// sameInput reports whether a run began with the given input. If the file still has the
// original input, it compares the inputs as the flow's type reads them. If the run has
// restarted, or its input is damaged, it compares fingerprints.
func (s *start) sameInput(r rows, run pawl.ID, row *runRow) bool {
	stored, err := r.blob(run, inputSeq)
	if row.Restarts > 0 || err != nil {
		return bytes.Equal(row.Input, s.row.Input)
	}
	if sameValue(stored, s.input) {
		return true
	}
	stored, err = s.reread(stored)
	return err == nil && sameValue(stored, s.input)
}

// Apply writes the rows of the run.
func (s *start) Apply(tx driver.Writer) error {
	if !s.new {
		return nil
	}
	r := rowsTo(tx)
	if err := r.put(tableIDs, idKey(s.row.Flow, s.row.ID), s.run[:]); err != nil {
		return err
	}
	if err := r.put(tableBlobs, seqKey(s.run, inputSeq), s.input); err != nil {
		return err
	}
	return r.putRun(s.run, &s.row)
}
