package workflow

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Publish stores a value under a name, for observers of a running run. It replaces the value
// previously published under the name. When the run continues after a wait or a crash, a Publish
// that was already durable does not write again, so an older value never replaces a newer one.
//
// [Reader.Published] reads the values. [Value] ties a name to a type, and can be watched.
//
// It returns [pawl.ErrInvalid] for a bad name, [ErrTooLarge] for a value of more than [MaxValue]
// bytes or for more than [MaxJournal] bytes under all names, and [ErrTooMany] for more than
// [MaxPublish] names. The journal does not store these errors, so return them.
func Publish(r *Run, name string, value any) error {
	s, x := r.s, r.x
	if err := validName("published name", name); err != nil {
		return err
	}
	content, err := x.encode("the published value", value)
	if err != nil {
		return err
	}
	s.spin()
	x.mu.Lock()
	err = s.mayCall()
	x.mu.Unlock()
	if err != nil {
		return err
	}
	key, n, fresh := s.nextPublish(name)
	if !fresh {
		return nil
	}
	x.mu.Lock()
	p := &publish{checkpoint{x.lease, x.take()}, x.run, name, content, key, n} // the value may depend on the backlog
	x.mu.Unlock()
	err = x.mutate(x.writing(), p, p.journal.bytes+len(content))
	switch {
	case errors.Is(err, ErrTooMany), errors.Is(err, ErrTooLarge):
		return fmt.Errorf("published name %q: %w", name, err)
	case err != nil:
		return x.stop(err)
	}
	x.engine.hub.published(x.run)
	return nil
}

// publish is the mutation that publishes a value.
type publish struct {
	checkpoint
	run     pawl.ID
	name    string
	content []byte
	key     [countKey]byte
	n       uint64 // position of the call
}

// Check requires the lease and enough room.
func (w *publish) Check(ops driver.Ops) error {
	if err := w.room(rowsOf(ops)); err != nil {
		return err
	}
	return w.checkpoint.Check(ops)
}

// room checks the size of what the run has published under other names. It reads no values.
func (w *publish) room(r rows) (err error) {
	own := runAnd(w.run, w.name)
	names, size := 1, len(w.content)
	count := func(key, value []byte) bool {
		if isCount(key[len(w.run):]) {
			return false
		}
		if !bytes.Equal(key, own) {
			names++
			size += len(value)
		}
		switch {
		case names > MaxPublish:
			err = fmt.Errorf("there are %d others: %w", MaxPublish, ErrTooMany)
		case size > MaxJournal:
			err = fmt.Errorf("all values have more than %d bytes: %w", MaxJournal, ErrTooLarge)
		}
		return err == nil
	}
	behind := append(bytes.Clone(w.run[:]), countMark+1) // after the counts
	for _, from := range [...][]byte{nil, behind} {
		if failed := present(r.Scan(tablePublished, driver.Span{Prefix: w.run[:], From: from}, count)); err != nil || failed != nil {
			return errors.Join(err, failed)
		}
	}
	return nil
}

// Apply stores the value and counts the call.
func (w *publish) Apply(tx driver.Writer) error {
	if err := w.checkpoint.Apply(tx); err != nil {
		return err
	}
	r := rowsTo(tx)
	if err := r.putPublished(w.run, w.key, w.n); err != nil {
		return err
	}
	return r.put(tablePublished, runAnd(w.run, w.name), w.content)
}
