package bolt

import (
	"slices"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// repairSequences copies the sequences of the buckets. They have no checksum, so it ignores
// impossible values, and it raises values that are too low for the stored rows.
func (s *salvor) repairSequences() error {
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

// ownSequences gives each job a unique sequence. Jobs from another file or an older tree may
// have numbers that were assigned again. Two jobs with one number would share the keys of rows,
// and the second job to use such a key would overwrite the row of the first. The first job that
// a row confirms keeps the number. The rows of the others then contradict their records, and
// the check of the rows detects that.
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
	again := make(map[uint64]bool) // value: one of the jobs with this number keeps it
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
			t.rewrite(&j)
			s.lost(bucketJobs) // the old record
		}
	})
}

// nextSequence returns a number that no job has, once ownSequences has visited all jobs.
func (s *salvor) nextSequence(t *txn) uint64 {
	seq := t.jobs.Sequence() + 1
	t.fail(t.jobs.SetSequence(seq))
	return seq
}

// eachRecord calls fn for each job, in transactions of limited size.
func (s *salvor) eachRecord(fn func(t *txn, j stored)) error {
	return s.eachKey(bucketJobs, nil, func(t *txn, _ *table, key []byte) {
		if j, err := t.record(pawl.ID(key)); err != nil {
			t.fail(err)
		} else {
			fn(t, j)
		}
	})
}
