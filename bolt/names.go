package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The first byte of a key in bucketQueues. A number leads to the row of a queue or the name of
// a kind, and a name to its number. A queue and a kind lead to the row of a line.
const (
	queueByNumber byte = iota
	queueByName
	kindByNumber
	kindByName
	lineByNumbers
)

func numberKey(b []byte, n queueNumber) []byte {
	return binary.BigEndian.AppendUint32(append(b, queueByNumber), uint32(n))
}

func nameKey(b []byte, name string) []byte {
	return append(append(b, queueByName), name...)
}

func kindNumberKey(b []byte, n kindNumber) []byte {
	return binary.BigEndian.AppendUint32(append(b, kindByNumber), uint32(n))
}

func kindNameKey(b []byte, name string) []byte {
	return append(append(b, kindByName), name...)
}

func lineKey(b []byte, ln line) []byte { return appendLine(append(b, lineByNumbers), ln) }

// number returns the number of a queue. If the queue never had a job, ok is false.
func (s *store) number(name string) (n queueNumber, ok bool, err error) {
	number, ok, err := s.numberBy(queueByName, name)
	if err != nil {
		err = fmt.Errorf("queue %q: %w", name, err)
	}
	return queueNumber(number), ok, err
}

// kind returns the number of a kind. If the kind never had a job, ok is false.
func (s *store) kind(name string) (n kindNumber, ok bool, err error) {
	number, ok, err := s.numberBy(kindByName, name)
	if err != nil {
		err = fmt.Errorf("kind %q: %w", name, err)
	}
	return kindNumber(number), ok, err
}

// numberBy returns the number of a name, from the keys with the given first byte.
func (s *store) numberBy(what byte, name string) (n uint32, ok bool, err error) {
	key := append(append(make([]byte, 0, 1+len(name)), what), name...) // on the heap, so no longer than needed
	sealed := s.queues.Get(key)
	if sealed == nil {
		return 0, false, nil
	}
	b, err := unseal(key, sealed, 4)
	if err != nil {
		return 0, false, err
	}
	return binary.BigEndian.Uint32(b), true, nil
}

// line returns the line of a job. If its queue or its kind is not in the file, ok is false.
func (s *store) line(e *pawl.Envelope) (ln line, ok bool, err error) {
	if ln.queue, ok, err = s.number(e.Queue); err == nil && ok {
		ln.kind, ok, err = s.kind(e.Kind)
	}
	return ln, ok && err == nil, err
}

// kindName returns the name of a kind.
func (s *store) kindName(n kindNumber) (string, error) {
	var buf [5]byte
	key := kindNumberKey(buf[:0], n)
	sealed := s.queues.Get(key)
	if sealed == nil {
		return "", fmt.Errorf("%w: there is no kind of number %d", pawl.ErrCorrupt, n)
	}
	name, err := unseal(key, sealed, -1)
	if err != nil {
		return "", fmt.Errorf("kind of number %d: %w", n, err)
	}
	return string(name), nil
}

// queue reads the row of a queue.
func (s *store) queue(n queueNumber) (*queueRow, error) {
	var buf [5]byte
	key := numberKey(buf[:0], n)
	sealed := s.queues.Get(key)
	if sealed == nil {
		return nil, fmt.Errorf("%w: there is no queue of number %d", pawl.ErrCorrupt, n)
	}
	row, err := parseQueueRow(key, sealed)
	if err != nil {
		return nil, fmt.Errorf("queue of number %d: %w", n, err)
	}
	return row, nil
}

// lineRow reads the row of a line. If the line never had a job, ok is false.
func (s *store) lineRow(ln line) (row *lineRow, ok bool, err error) {
	var buf [1 + lineWidth]byte
	key := lineKey(buf[:0], ln)
	sealed := s.queues.Get(key)
	if sealed == nil {
		return nil, false, nil
	}
	row, err = parseLineRow(key, sealed)
	if err != nil {
		return nil, false, fmt.Errorf("kind %d of queue %d: %w", ln.kind, ln.queue, err)
	}
	return row, true, nil
}

// eachLine calls fn for every line of a queue, until fn fails.
func (s *store) eachLine(n queueNumber, fn func(line, *lineRow) error) error {
	prefix := lineKey(nil, line{queue: n})[:1+4]
	c := s.queues.Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix) && len(k) == 1+lineWidth; k, v = c.Next() {
		ln := lineAt(k[1:])
		row, err := parseLineRow(k, v)
		if err != nil {
			return fmt.Errorf("kind %d of queue %d: %w", ln.kind, ln.queue, err)
		}
		if err := fn(ln, row); err != nil {
			return err
		}
	}
	return nil
}

// countsOf returns how many jobs of a queue are in each state.
func (s *store) countsOf(n queueNumber) (counts pawl.Counts, err error) {
	err = s.eachLine(n, func(_ line, row *lineRow) error {
		driver.AddCounts(&counts, row.counts)
		return nil
	})
	return counts, err
}

// eachQueue calls fn for every queue in order of number, until fn fails.
func (s *store) eachQueue(fn func(queueNumber, *queueRow) error) error {
	c := s.queues.Cursor()
	for k, v := c.Seek([]byte{queueByNumber}); len(k) == 5 && k[0] == queueByNumber; k, v = c.Next() {
		row, err := parseQueueRow(k, v)
		if err != nil {
			return fmt.Errorf("queue of number %d: %w", binary.BigEndian.Uint32(k[1:]), err)
		}
		if err := fn(queueNumber(binary.BigEndian.Uint32(k[1:])), row); err != nil {
			return err
		}
	}
	return nil
}
