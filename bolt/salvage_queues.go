package bolt

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// mendQueues sees to it that each queue has both of its rows, and gives a queue that has
// lost both its number again, which rows in other buckets still name.
func (s *salvor) mendQueues() error {
	highest := queueNumber(0)
	err := s.eachKey(bucketQueues, nil, func(t *txn, b *table, key []byte) {
		if key[0] == queueByNumber {
			n := queueNumber(binary.BigEndian.Uint32(key[1:]))
			highest = max(highest, n)
			s.mendQueueName(t, n)
			return
		}
		name := string(key[1:])
		n, _, _ := t.number(name)
		highest = max(highest, n)
		if row, err := t.rowOf(n); err != nil {
			t.newRow(n, name)
			s.hurt[string(bucketQueues)] = true
		} else if row.name != name {
			t.delete(b, key)
			s.lost(bucketQueues)
		}
	})
	if err == nil && s.hurtAny(bucketQueues) {
		for _, bucket := range stateBuckets {
			err = s.eachKey(bucket, nil, func(t *txn, b *table, key []byte) {
				highest = max(highest, s.mendNumber(t, b, key))
			})
			if err != nil {
				return err
			}
		}
	}
	if err != nil {
		return err
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketRoot).Bucket(bucketQueues)
		if b.Sequence() >= uint64(highest) {
			return nil
		}
		return b.SetSequence(uint64(highest))
	})
}

// mendQueueName leads from the name of a queue to its number.
func (s *salvor) mendQueueName(t *txn, n queueNumber) {
	row, err := t.rowOf(n)
	if err != nil {
		t.fail(err)
		return
	}
	switch other, known, _ := t.number(row.name); {
	case !known:
		s.putNumber(t, row.name, n)
	case other != n:
		t.delete(t.queues, numberKey(nil, n))
		delete(t.rows, n)
		s.lost(bucketQueues)
	}
}

func (s *salvor) putNumber(t *txn, name string, n queueNumber) {
	key := nameKey(nil, name)
	t.put(t.queues, key, seal(key, binary.BigEndian.AppendUint32(nil, uint32(n))))
	s.hurt[string(bucketQueues)] = true
}

// mendNumber gives a number that a row of a job names, and that has no queue, to the queue
// that the job's record names.
func (s *salvor) mendNumber(t *txn, b *table, key []byte) queueNumber {
	id, n, _, err := stateRowOf(b, key, b.Get(key))
	if err != nil || n > 1<<31 {
		return 0
	}
	if _, err := t.rowOf(n); err == nil {
		return n
	}
	j, err := t.record(id)
	if err != nil {
		return n
	}
	if _, known, _ := t.number(j.Queue); !known {
		t.newRow(n, j.Queue)
		s.putNumber(t, j.Queue, n)
	}
	return n
}

// mendCounts counts the jobs of each queue anew.
func (s *salvor) mendCounts() error {
	counts := make(map[queueNumber]*pawl.Counts)
	for _, bucket := range stateBuckets {
		err := s.eachKey(bucket, nil, func(t *txn, b *table, key []byte) {
			_, n, state, err := stateRowOf(b, key, b.Get(key))
			if err != nil {
				t.fail(fmt.Errorf("row %x of bucket %s: %w", key, bucket, err))
				return
			}
			if counts[n] == nil {
				counts[n] = new(pawl.Counts)
			}
			*counts[n].Of(state)++
			*s.result.Counts.Of(state)++
		})
		if err != nil {
			return err
		}
	}
	return s.eachKey(bucketQueues, []byte{queueByNumber}, func(t *txn, _ *table, key []byte) {
		if key[0] != queueByNumber {
			return
		}
		n := queueNumber(binary.BigEndian.Uint32(key[1:]))
		now := counts[n]
		if now == nil {
			now = new(pawl.Counts)
		}
		if row := t.row(n); row.counts != *now {
			row.counts, t.changed = *now, true
		}
	})
}
