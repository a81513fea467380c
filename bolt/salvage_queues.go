package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// repairQueues ensures that each queue and each kind has both of its rows. If both are lost, it
// restores them under the number that rows in other buckets still name.
func (s *salvor) repairQueues() error {
	highest := uint32(0)
	err := s.eachKey(bucketQueues, nil, func(t *txn, b *table, key []byte) {
		highest = max(highest, s.repairName(t, b, key))
	})
	if err == nil && s.hurtAny(bucketQueues) {
		for _, bucket := range stateBuckets {
			err = s.eachKey(bucket, nil, func(t *txn, b *table, key []byte) {
				highest = max(highest, s.repairNumbers(t, b, key))
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

// repairName checks a row that names a queue or a kind, and returns its number. If two rows
// contradict each other, it removes the row that leads from the name.
func (s *salvor) repairName(t *txn, b *table, key []byte) (n uint32) {
	switch key[0] {
	case queueByNumber:
		n = binary.BigEndian.Uint32(key[1:])
		s.repairQueueName(t, queueNumber(n))
	case kindByNumber:
		n = binary.BigEndian.Uint32(key[1:])
		s.repairKindName(t, kindNumber(n))
	case queueByName:
		name := string(key[1:])
		number, _, _ := t.number(name)
		n = uint32(number)
		if row, err := t.rowOf(number); err != nil {
			t.newRow(number, name)
			s.hurt[string(bucketQueues)] = true
		} else if row.name != name {
			t.delete(b, key)
			s.lost(bucketQueues)
		}
	case kindByName:
		name := string(key[1:])
		number, _, _ := t.kind(name)
		n = uint32(number)
		if known, err := t.kindName(number); err != nil {
			t.nameKind(number, name)
			s.hurt[string(bucketQueues)] = true
		} else if known != name {
			t.delete(b, key)
			s.lost(bucketQueues)
		}
	}
	return n
}

// repairQueueName restores the row from the name of a queue to its number.
func (s *salvor) repairQueueName(t *txn, n queueNumber) {
	row, err := t.rowOf(n)
	if err != nil {
		t.fail(err)
		return
	}
	switch other, known, _ := t.number(row.name); {
	case !known:
		t.putNumber(nameKey(nil, row.name), uint32(n))
		s.hurt[string(bucketQueues)] = true
	case other != n:
		t.delete(t.queues, numberKey(nil, n))
		delete(t.rows, n)
		s.lost(bucketQueues)
	}
}

// repairKindName restores the row from the name of a kind to its number.
func (s *salvor) repairKindName(t *txn, n kindNumber) {
	name, err := t.kindName(n)
	if err != nil {
		t.fail(err)
		return
	}
	switch other, known, _ := t.kind(name); {
	case !known:
		t.putNumber(kindNameKey(nil, name), uint32(n))
		s.hurt[string(bucketQueues)] = true
	case other != n:
		t.delete(t.queues, kindNumberKey(nil, n))
		s.lost(bucketQueues)
	}
}

// repairNumbers handles numbers in a job's row that have no queue or no kind: it gives them to
// the queue and the kind that the job's record names. It returns the higher number.
func (s *salvor) repairNumbers(t *txn, b *table, key []byte) uint32 {
	id, ln, _, err := stateRowOf(b, key, b.Get(key))
	if err != nil || ln.queue > 1<<31 || ln.kind > 1<<31 {
		return 0
	}
	highest := max(uint32(ln.queue), uint32(ln.kind))
	j, err := t.record(id)
	if err != nil {
		return highest
	}
	if _, err := t.rowOf(ln.queue); err != nil {
		if _, known, _ := t.number(j.Queue); !known {
			t.newRow(ln.queue, j.Queue)
			t.putNumber(nameKey(nil, j.Queue), uint32(ln.queue))
			s.hurt[string(bucketQueues)] = true
		}
	}
	if _, err := t.kindName(ln.kind); err != nil {
		if _, known, _ := t.kind(j.Kind); !known {
			t.nameKind(ln.kind, j.Kind)
			s.hurt[string(bucketQueues)] = true
		}
	}
	return highest
}

// repairCounts recounts the jobs of each line.
func (s *salvor) repairCounts() error {
	counts := make(map[line]pawl.Counts)
	for _, bucket := range stateBuckets {
		err := s.eachKey(bucket, nil, func(t *txn, b *table, key []byte) {
			id, ln, state, err := stateRowOf(b, key, b.Get(key))
			if err != nil {
				t.fail(fmt.Errorf("row %x of bucket %s: %w", key, bucket, err))
				return
			}
			c := counts[ln]
			*driver.CountOf(&c, state)++
			if bytes.Equal(bucket, bucketDelayed) && state == pawl.Ready {
				c.Blocked++
			}
			if state == pawl.Dead {
				if j, err := t.record(id); err == nil && j.HoldsKey {
					c.Held++
				}
			}
			counts[ln] = c
			*driver.CountOf(&s.result.Counts, state)++
		})
		if err != nil {
			return err
		}
	}
	err := s.eachKey(bucketQueues, []byte{lineByNumbers}, func(t *txn, b *table, key []byte) {
		if key[0] != lineByNumbers {
			return
		}
		ln := lineAt(key[1:])
		_, queueErr := t.rowOf(ln.queue)
		if _, err := t.kindName(ln.kind); err != nil || queueErr != nil {
			t.delete(b, key)
			return
		}
		if row, _, err := t.lineRow(ln); err != nil || row.counts != counts[ln] {
			t.putLine(ln, counts[ln])
		}
		delete(counts, ln)
	})
	if err != nil || len(counts) == 0 {
		return err
	}
	return s.update(func(t *txn) {
		for ln, now := range counts {
			t.putLine(ln, now)
		}
	})
}

// putLine stores the counts of a line.
func (t *txn) putLine(ln line, counts pawl.Counts) {
	t.last.row = nil
	t.lines[ln], t.changed = &lineRow{counts: counts, touched: true}, true
	t.touched = append(t.touched, ln)
}
