package bolt

import (
	"bytes"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/pages"
)

// copyUnreached copies records, payloads and histories that no tree leads to, if the tree lacks
// them. It searches only if something is lost.
func (s *salvor) copyUnreached(walked *pages.Walked) error {
	if s.hurtAny(bucketJobs) {
		if err := s.eachUnreached(walked, s.unreachedRecord); err != nil {
			return err
		}
	}
	if s.hurtAny(bucketJobs, bucketPayloads, bucketHistory) {
		return s.eachUnreached(walked, s.unreachedBelonging)
	}
	return nil
}

// eachUnreached calls fn for every element outside the tree that looks like part of a job, in
// transactions of limited size.
func (s *salvor) eachUnreached(walked *pages.Walked, fn func(t *txn, key, value []byte)) error {
	type row struct{ key, value []byte }
	var rows []row
	bytes := 0
	flush := func() error {
		err := s.update(func(t *txn) {
			for _, r := range rows {
				fn(t, r.key, r.value)
			}
		})
		rows, bytes = rows[:0], 0
		return err
	}
	err := walked.Unreached(func(e pages.Element) error {
		if len(e.Key) != 16 && len(e.Key) != 20 || e.Size > maxSalvagedRow {
			return nil
		}
		value, err := e.Value()
		if err != nil {
			return nil // damage of a page outside the tree
		}
		if !partOfJob(e.Key, value) {
			return nil
		}
		rows = append(rows, row{slices.Clone(e.Key), slices.Clone(value)})
		if bytes += len(e.Key) + len(value); bytes < compactBytes {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// partOfJob reports whether a row is a sound record, payload, or entry of a history.
func partOfJob(key, value []byte) bool {
	return soundRow(bucketJobs, key, value) == nil || soundRow(bucketPayloads, key, value) == nil || soundRow(bucketHistory, key, value) == nil
}

// unreachedRecord keeps a record whose job is not in the tree. Of several records it keeps the one
// that a row in the tree confirms, or else the newest.
func (s *salvor) unreachedRecord(t *txn, key, value []byte) {
	j, err := soundRecord(key, value)
	if err != nil {
		return
	}
	if old, err := t.record(j.ID); err == nil {
		if !s.unreached[j.ID] {
			return
		}
		if was, is := s.vouched(t, old), s.vouched(t, j); was && !is || was == is && !newer(j, old) {
			return
		}
	}
	s.unreached[j.ID] = true
	t.put(t.jobs, key, value)
}

// vouched reports whether a sound row says where the job of a record is.
func (s *salvor) vouched(t *txn, j stored) bool {
	p, err := t.where(j.Envelope)
	if err != nil {
		return false
	}
	id, _, _, err := stateRowOf(p.table, p.key, p.table.Get(p.key))
	return err == nil && id == j.ID
}

// newer reports whether a is a later record of its job than b. The counters of a job only rise,
// except attempts and crashes, which a retry resets.
func newer(a, b stored) bool {
	switch {
	case a.Seq != b.Seq:
		return a.Seq > b.Seq
	case a.Failures != b.Failures:
		return a.Failures > b.Failures
	case !a.NotBefore.Equal(b.NotBefore):
		return a.NotBefore.After(b.NotBefore)
	case a.Attempts != b.Attempts:
		return a.Attempts > b.Attempts
	case a.Crashes != b.Crashes:
		return a.Crashes > b.Crashes
	}
	return (a.Death != nil || !a.Completed.IsZero()) && b.Death == nil && b.Completed.IsZero()
}

// unreachedBelonging keeps a payload or a history entry that a job lacks.
func (s *salvor) unreachedBelonging(t *txn, key, value []byte) {
	id := pawl.ID(key[:16])
	j, err := t.record(id)
	if err != nil {
		return
	}
	switch {
	case soundRow(bucketPayloads, key, value) == nil:
		if j.apart != 0 && j.apart == len(value)-sealWidth && t.payloads.Get(key) == nil {
			t.put(t.payloads, key, bytes.Clone(value))
			s.unreachedPayloads[id] = true
		}
	case soundRow(bucketHistory, key, value) == nil:
		if kept(int(historyNumber(key)), j.Failures-j.recent.n) && t.history.Get(key) == nil {
			t.put(t.history, key, bytes.Clone(value))
		}
	}
}
