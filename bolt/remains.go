package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gopawl/pawl"
)

// If the record of a dead job is unreadable or missing, two things remain of the job: its row
// in failed, which only a scan of that bucket finds, and the other rows that lead to its ID.

// removeDamaged deletes a dead job whose record cannot be read, together with its row in failed
// and its other rows.
type removeDamaged struct {
	id      pawl.ID
	deadKey []byte // its key in failed
	more    []rowRef
	row     endedRow
}

// rowRef identifies a row of a bucket.
type rowRef struct{ bucket, key []byte }

func (op *removeDamaged) check(t *txn) (err error) {
	if _, err := t.record(op.id); err == nil {
		if _, _, err = t.find(op.id); err == nil {
			err = fmt.Errorf("job %s: %w: it was stored anew meanwhile", op.id, pawl.ErrConflict)
		}
		return err
	}
	sealed := t.failed.Get(op.deadKey)
	if sealed == nil {
		return fmt.Errorf("job %s: %w", op.id, pawl.ErrNotFound)
	}
	if op.row, err = parseEndedRow(op.deadKey, sealed); err != nil {
		return fmt.Errorf("job %s: %w", op.id, err)
	}
	return t.checkLine(op.row.line)
}

func (op *removeDamaged) apply(t *txn) {
	t.delete(t.failed, op.deadKey)
	t.counts(op.row.line).Dead--
	for _, row := range op.more {
		t.delete(t.table(row.bucket), row.key)
	}
	t.remove(op.id, op.row.flags)
	if n := op.row.line.queue; op.row.flags&hasKey != 0 && t.limitsOf(n).InOrder == pawl.OrderHold {
		t.recountKeys(n) // the lost record may have said that the job held its key
	}
	e := damaged(op.id, t.now)
	e.Queue = t.row(op.row.line.queue).name
	t.emit(pawl.Event{Type: pawl.EventDeleted, Job: e})
}

// queueOf returns the queue at the start of a key in ready or failed.
func queueOf(key []byte) queueNumber { return queueNumber(binary.BigEndian.Uint32(key)) }

// unreadable finds the row of a dead job whose record cannot be read or is missing. Cause says
// which. It scans all dead jobs. The key is nil if there is no such row.
func (r *reader) unreadable(ctx context.Context, id pawl.ID, cause error) (key []byte, row endedRow, err error) {
	switch {
	case errors.Is(cause, pawl.ErrCorrupt):
	case errors.Is(cause, pawl.ErrNotFound):
		orphan, err := r.orphans.has(ctx, r, id)
		if err != nil {
			return nil, row, fmt.Errorf("delete job %s: %w", id, err)
		}
		if !orphan {
			return nil, row, nil
		}
	default:
		return nil, row, nil
	}
	err = r.eachRow(ctx, bucketFailed, func(_ *store, k, v []byte) bool {
		found, err := parseEndedRow(k, v)
		if err == nil && found.id == id && len(k) > 4 {
			key, row = bytes.Clone(k), found
		}
		return key == nil
	})
	if err != nil {
		err = fmt.Errorf("delete job %s: %w", id, err)
	}
	return key, row, err
}

// deleteUnreadable deletes a dead job whose record cannot be read or is missing. Cause is the
// error of an ordinary delete. deleteUnreadable returns it if there is no such dead job.
func (q *Queue) deleteUnreadable(ctx context.Context, id pawl.ID, cause error) error {
	op := &removeDamaged{id: id}
	var err error
	if op.deadKey, op.row, err = q.unreadable(ctx, id, cause); err != nil {
		return err
	}
	if op.deadKey == nil {
		return cause
	}
	found := func(bucket, key []byte) bool {
		op.more = append(op.more, rowRef{bucket, bytes.Clone(key)})
		return false
	}
	if op.row.flags&hasMore != 0 {
		err = q.eachRow(ctx, bucketUnique, func(_ *store, k, v []byte) bool {
			holder, err := unseal(k, v, len(id))
			return err != nil || pawl.ID(holder) != id || found(bucketUnique, k)
		})
	}
	if err == nil && op.row.flags&hasMore != 0 {
		err = q.eachRow(ctx, bucketExpiry, func(_ *store, k, _ []byte) bool {
			life := append([]byte{endsLife}, id[:]...)
			return len(k) < timeWidth || !bytes.Equal(k[timeWidth:], life) || found(bucketExpiry, k)
		})
	}
	if err != nil {
		return fmt.Errorf("delete job %s: %w", id, err)
	}
	return q.do(ctx, op)
}

// eachRow calls fn for the rows of a bucket until fn returns false. It reads in short pages.
func (r *reader) eachRow(ctx context.Context, bucket []byte, fn func(s *store, k, v []byte) bool) error {
	var last []byte
	for more := true; more; {
		err := r.view(ctx, func(s *store) error {
			c := s.table(bucket).Cursor()
			k, v := c.Seek(last)
			if last != nil && bytes.Equal(k, last) {
				k, v = c.Next()
			}
			for n := 0; k != nil && n < pageRows; k, v = c.Next() {
				if n++; last != nil && bytes.Compare(k, last) <= 0 {
					return fmt.Errorf("%w: the keys of a page are out of order", pawl.ErrCorrupt)
				}
				last = append(last[:0], k...)
				if more = fn(s, k, v); !more {
					return nil
				}
			}
			more = k != nil
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// orphans are the dead jobs whose record is missing, as of the last scan of all dead jobs.
type orphans struct {
	mu     sync.Mutex // guards the fields below
	ids    map[pawl.ID]bool
	looked time.Time
}

// orphansLast is how long a scan stays valid. Only damage makes orphans.
const orphansLast = time.Second

// has reports whether a job without a record is an orphan.
func (o *orphans) has(ctx context.Context, r *reader, id pawl.ID) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.looked.IsZero() || time.Since(o.looked) >= orphansLast {
		ids := make(map[pawl.ID]bool)
		err := r.eachRow(ctx, bucketFailed, func(s *store, k, v []byte) bool {
			if row, err := parseEndedRow(k, v); err == nil && s.jobs.Get(row.id[:]) == nil {
				ids[row.id] = true
			}
			return true
		})
		if err != nil {
			return false, err
		}
		o.ids, o.looked = ids, time.Now()
	}
	return o.ids[id], nil
}
