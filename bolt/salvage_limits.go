package bolt

// hasQueue reports whether a queue has a row.
func (t *txn) hasQueue(n queueNumber) bool {
	_, err := t.rowOf(n)
	return err == nil
}

// repairLimits restores the rows of keys from the jobs of each queue that limits keys. Sound rows keep
// how far a rate is used up. repairLimits unblocks the jobs that have room now, and those whose queue
// has lost its limits.
func (s *salvor) repairLimits() error {
	err := s.eachKey(bucketKeys, nil, func(t *txn, b *table, key []byte) {
		if len(key) < 5 || !t.hasQueue(queueOf(key)) {
			t.delete(b, key)
		}
	})
	if err != nil {
		return err
	}
	var queues []queueNumber
	err = s.update(func(t *txn) {
		t.fail(t.eachQueue(func(n queueNumber, _ *queueRow) error {
			queues = append(queues, n)
			return nil
		}))
	})
	for i := 0; i < len(queues) && err == nil; i++ {
		err = s.update(func(t *txn) {
			t.keyless = false
			t.recountKeys(queues[i])
		})
	}
	return err
}
