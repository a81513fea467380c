package bolt

import (
	"bytes"
	"encoding/binary"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// repairTraces makes a dead job for each job that left only a payload or a history.
func (s *salvor) repairTraces() error {
	err := s.eachKey(bucketPayloads, nil, func(t *txn, b *table, key []byte) {
		if j, err := t.record(pawl.ID(key)); err != nil {
			s.makeLostDead(t, pawl.ID(key), line{})
		} else if j.apart == 0 {
			t.delete(b, key)
			s.lost(bucketPayloads)
		}
	})
	if err != nil {
		return err
	}
	return s.eachKey(bucketHistory, nil, func(t *txn, b *table, key []byte) {
		id := pawl.ID(key[:16])
		j, err := t.record(id)
		if err != nil {
			s.makeLostDead(t, id, line{})
		} else if !kept(int(historyNumber(key)), j.Failures-j.recent.n) {
			t.delete(b, key)
			s.lost(bucketHistory)
		}
	})
}

// repairJobs repairs each job: it must have a row for its state, its payload, and its history.
func (s *salvor) repairJobs() error { return s.eachRecord(s.repairJob) }

func (s *salvor) repairJob(t *txn, j stored) {
	s.repairHistory(t, j)
	p, err := t.where(j.Envelope)
	placed := err == nil
	cause, count := "", &s.result.Kept
	if s.unreached[j.ID] && placed {
		count = &s.result.Reattached
	} else if !placed {
		count = &s.result.Placed
	}
	if s.unreached[j.ID] && !placed {
		cause, count = "found outside the tree of a damaged file: it may have been done already", &s.result.Unreached
	}
	if wrong := s.repairPayload(t, &j); wrong != "" {
		if cause == "" {
			cause, count = wrong, &s.result.NoPayload
		} else {
			cause += "; " + wrong
		}
	}
	if s.wasMadeDead(j, placed) {
		count = nil
	}
	if count != nil {
		*count++
	}
	switch {
	case cause != "":
		if placed {
			t.unplace(j, p)
		}
		s.makeDead(t, j, cause)
	case !placed:
		s.placeByRecord(t, j)
	default:
		s.repairBelongings(t, j, p)
	}
}

// wasMadeDead reports whether this salvage made the job dead and counted it.
func (s *salvor) wasMadeDead(j stored, placed bool) bool {
	return placed && j.Kind == unknownKind && j.Death != nil && j.Death.At.Equal(s.now)
}

// placeByRecord gives a job without a row the row that follows from its record.
func (s *salvor) placeByRecord(t *txn, j stored) {
	switch {
	case j.Death != nil:
		t.placeDead(j)
	case !j.Completed.IsZero():
		t.placeCompleted(j)
	default:
		t.place(j)
	}
	if p, err := t.where(j.Envelope); err == nil {
		s.repairBelongings(t, j, p)
	}
}

// repairPayload checks that the payload exists, and makes it empty if it does not. It returns a
// description of the damage.
func (s *salvor) repairPayload(t *txn, j *stored) string {
	if j.apart == 0 {
		return ""
	}
	payload, err := t.payload(j.ID)
	switch {
	case err != nil || len(payload) != j.apart:
		t.delete(t.payloads, j.ID[:])
		j.apart, j.Payload = 0, nil
		return "its payload is lost: the file was damaged"
	case s.unreachedPayloads[j.ID]:
		return "its payload was found outside the tree of a damaged file: it may be that of another job of this ID"
	}
	return ""
}

func historyNumber(key []byte) uint32 { return binary.BigEndian.Uint32(key[16:]) }

// kept reports whether the history of a job with that many failures has an entry of number n.
func kept(n, failures int) bool {
	return n < failures && (n < pawl.HistoryKeepHead || n >= failures-pawl.HistoryKeepTail)
}

// repairHistory replaces each lost entry by an entry that says so.
func (s *salvor) repairHistory(t *txn, j stored) {
	rows := j.Failures - j.recent.n
	if rows == 0 {
		return
	}
	there := make(map[uint32]bool)
	c := t.history.Cursor()
	for k, _ := c.Seek(j.ID[:]); bytes.HasPrefix(k, j.ID[:]); k, _ = c.Next() {
		there[historyNumber(k)] = true
	}
	repair := func(n int) {
		if there[uint32(n)] {
			return
		}
		key := historyKey(nil, j.ID, n)
		lost := driver.NewFailure(n+1, j.Created, "this entry is lost: the file was damaged")
		t.put(t.history, key, seal(key, appendFailure(nil, lost)))
		s.result.History++
	}
	for n := 0; n < min(rows, pawl.HistoryKeepHead); n++ {
		repair(n)
	}
	for n := max(pawl.HistoryKeepHead, rows-pawl.HistoryKeepTail); n < rows; n++ {
		repair(n)
	}
}
