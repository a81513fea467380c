package bolt

import (
	"slices"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// mendSequences takes over the sequences of the buckets. They have no checksum, so what
// cannot be is left out; those that are too low are raised by what is stored.
func (s *salvor) mendSequences() error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		for name, sequence := range s.sequences {
			if sequence >= maxSalvagedSeq || name == string(bucketQueues) && sequence > 1<<31 {
				continue
			}
			if err := tx.Bucket(bucketRoot).Bucket([]byte(name)).SetSequence(sequence); err != nil {
				return err
			}
		}
		return nil
	})
}

// ownSequences gives each job a sequence that no other has: those of another file, or of an
// older tree, may have numbers that were given out again. Two jobs of one number would have
// one place between them, and the second to come there would be the end of the first. The
// first for which a row vouches keeps the number; the row of another is found to contradict
// its record when rows are looked at.
func (s *salvor) ownSequences() error {
	var taken []uint64
	err := s.eachRecord(func(_ *txn, j stored) { taken = append(taken, j.Seq) })
	if err != nil || len(taken) == 0 {
		return err
	}
	slices.Sort(taken)
	err = s.update(func(t *txn) {
		if highest := taken[len(taken)-1]; highest > t.jobs.Sequence() {
			t.changed = true
			t.fail(t.jobs.SetSequence(highest))
		}
	})
	if err != nil {
		return err
	}
	again := make(map[uint64]bool) // whether one of those that have the number keeps it
	for i, seq := range taken[1:] {
		if seq == taken[i] {
			again[seq] = false
		}
	}
	if len(again) == 0 {
		return nil
	}
	return s.eachRecord(func(t *txn, j stored) {
		kept, several := again[j.Seq]
		switch {
		case !several:
		case !kept && s.vouched(t, j):
			again[j.Seq] = true
		default:
			j.Seq = s.nextSequence(t)
			t.rewrite(j)
			s.lost(bucketJobs) // as it was
		}
	})
}

// nextSequence is a number that no job has, once ownSequences has looked at all of them.
func (s *salvor) nextSequence(t *txn) uint64 {
	seq := t.jobs.Sequence() + 1
	t.fail(t.jobs.SetSequence(seq))
	return seq
}

// eachRecord calls fn for each job, in transactions of a bounded size.
func (s *salvor) eachRecord(fn func(t *txn, j stored)) error {
	return s.eachKey(bucketJobs, nil, func(t *txn, _ *table, key []byte) {
		if j, err := t.record(pawl.ID(key)); err != nil {
			t.fail(err)
		} else {
			fn(t, j)
		}
	})
}
