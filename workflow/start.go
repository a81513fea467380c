package workflow

import (
	"bytes"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// start is the mutation that starts a run.
type start struct {
	engine *Engine
	row    runRow
	input  []byte                              // MessagePack
	stored []byte                              // as it is stored
	reread func(stored []byte) ([]byte, error) // re-encodes another input as the flow's type reads it
	job    *pawl.Envelope
	signal *send // signal for the run that has the ID after the start; nil for none

	limits openLimits // of its flow
	places places

	run pawl.ID // the run that has the ID now
	new bool

	known []pawl.ID // runs that earlier Checks found under the ID, and that the next Check may read
}

// Check looks for a run that already has the ID.
func (s *start) Check(ops driver.Ops) error {
	r := rowsOf(ops)
	known, err := r.find(s.row.Flow, s.row.ID)
	if err != nil {
		return err
	}
	s.new = known == pawl.ID{}
	if s.new {
		return s.begin(ops)
	}
	if !slices.Contains(s.known, known) {
		s.known = append(s.known, known)
	}
	if s.run = known; s.signal != nil {
		s.signal.run = known
		return s.signal.Check(ops)
	}
	row, err := r.mustRun(known)
	if err != nil {
		return err
	}
	same, err := s.sameInput(r, known, row)
	if err == nil && !same {
		err = ErrConflict
	}
	return err
}

// encode encodes the input and its fingerprint. The codec encodes both, since a short input could be guessed from
// its fingerprint.
func (s *start) encode(e *Engine) (err error) {
	s.engine = e
	if s.stored, err = e.fits("the input", s.input); err == nil {
		s.row.Fingerprint, err = e.encode("the fingerprint", fingerprint(s.input)) // without MessagePack, it could begin like an encoded value
	}
	return err
}

// begin begins a new run.
func (s *start) begin(ops driver.Ops) error {
	s.run = s.job.ID
	s.row.Created = ops.Now().UnixNano()
	if err := s.takePlaces(ops); err != nil {
		return err
	}
	if s.signal != nil {
		if err := s.signal.undeclared(&s.row); err != nil {
			return err
		}
		s.row.Signals, s.row.Unread = 1, 1
		s.signal.run, s.signal.row, s.signal.n = s.run, &s.row, 1
	}
	_, err := ops.Enqueue(s.job)
	return err
}

// takePlaces gives the run the places that it needs, or lets it wait in line. A run with a delay takes its places
// when it begins, and a run that a rate limits when a worker has it.
func (s *start) takePlaces(ops driver.Ops) error {
	s.places = places{limits: s.limits, now: ops.Now(), self: s.run}
	if s.row.Status == Sleeping {
		return nil
	}
	s.row.Status, s.row.Places, s.row.Line, s.row.Number, s.row.KeyNumber, s.job.NotBefore = Running, 0, 0, 0, 0, time.Time{} // Check may run again
	r := rowsOf(ops)
	all, err := s.places.take(ops, r, s.run, &s.row)
	if err == nil && !all {
		s.job.NotBefore = s.row.wakeBy(s.places.turn)
	}
	if err == nil {
		err = s.places.rouse(ops, r)
	}
	return err
}

// size returns roughly how many bytes the mutation writes.
func (s *start) size() int {
	if s.signal == nil {
		return len(s.stored)
	}
	return len(s.stored) + len(s.signal.payload)
}

// sameInput reports whether a run began with the given input. If the file still has the
// original input, it compares the inputs as the flow's type reads them. If the run has
// restarted, or its input is damaged, it compares fingerprints.
func (s *start) sameInput(r rows, run pawl.ID, row *runRow) (bool, error) {
	stored, err := r.input(run, row)
	if row.Restarts > 0 || err != nil {
		known, err := s.engine.fromStored(row.Fingerprint)
		if err != nil {
			return false, err
		}
		own, err := driver.EncodePayload(fingerprint(s.input))
		return bytes.Equal(known, own), err
	}
	input, err := s.engine.fromStored(stored)
	if err != nil || sameValue(input, s.input) {
		return err == nil, err
	}
	input, err = s.reread(input)
	return err == nil && sameValue(input, s.input), nil
}

// Apply writes the rows of the run.
func (s *start) Apply(tx driver.Writer) error {
	if !s.new {
		if s.signal == nil {
			return nil
		}
		return s.signal.Apply(tx)
	}
	r := rowsTo(tx)
	if err := r.put(tableIDs, idKey(s.row.Flow, s.row.ID), s.run[:]); err != nil {
		return err
	}
	if fitsRow(s.stored) {
		s.row.Input = s.stored
	} else if err := r.put(tableBlobs, seqKey(s.run, inputSeq), s.stored); err != nil {
		return err
	}
	if err := s.places.apply(r); err != nil {
		return err
	}
	if err := r.putFound(s.run, &s.row); err != nil {
		return err
	}
	if s.signal != nil {
		return s.signal.Apply(tx) // writes the row, too
	}
	return r.putRun(s.run, &s.row)
}
