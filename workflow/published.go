package workflow

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/gopawl/pawl"
)

// The function of a run is called again at each wake and publishes its values again. A branch may have published
// a newer value under the same name in the meantime. So the file has, for each scope and name, the position of
// the last Publish that was written. A position is the number of the preceding call of the scope, and how often
// the scope has published under the name since that call. A Publish at or before that position writes nothing. If
// a new build drops a Publish, later values are still published. An Append to a stream has such a position too.
//
// A position is a row in table published. Its key is the run, an underscore, which no name
// begins with, the journal that the count belongs to, and a checksum of scope and name.

const (
	countMark = '_'
	countKey  = 1 + 1 + 16 // bytes of the key after the run
)

// callKey returns the key of a count, without the run: that of the values published under a name ('p'), or that of
// the items appended to a stream ('a').
func callKey(of byte, journal uint8, scope, name string) (key [countKey]byte) {
	key[0], key[1] = countMark, journal
	copy(key[2:], digest(of, []byte(scope), []byte{0}, []byte(name)))
	return key
}

// countPrefix returns the prefix of the keys of a journal's counts.
func countPrefix(run pawl.ID, journal uint8) []byte {
	return append(append(make([]byte, 0, 18), run[:]...), countMark, journal)
}

// isCount reports whether a row of table published is a count, by its key without the run.
func isCount(key []byte) bool { return len(key) > 0 && key[0] == countMark }

// readPublished reads the counts of a journal.
func (r rows) readPublished(run pawl.ID, journal uint8) (counts map[[countKey]byte]uint64, err error) {
	counts = make(map[[countKey]byte]uint64)
	err = r.each(tablePublished, countPrefix(run, journal), func(key, content []byte, damage error) error {
		if damage != nil {
			return damage
		}
		err := soundCount(key[len(run):], content)
		if err == nil {
			counts[[countKey]byte(key[len(run):])] = binary.BigEndian.Uint64(content)
		}
		return err
	})
	return counts, err
}

func soundCount(key, content []byte) error {
	if len(key) != countKey || key[1] > 1 || len(content) != 8 || binary.BigEndian.Uint64(content)>>32 > maxCarried {
		return fmt.Errorf("%w: key %x of table %s", pawl.ErrCorrupt, key, tablePublished)
	}
	return nil
}

func (r rows) putPublished(run pawl.ID, key [countKey]byte, n uint64) error {
	return r.put(tablePublished, append(bytes.Clone(run[:]), key[:]...), binary.BigEndian.AppendUint64(nil, n))
}

// tailPublished is a value that the function itself published after call number at of its tail.
type tailPublished struct {
	at     int
	key    [countKey]byte
	before uint64 // the position of the previous call with its name
}

// nextPublish returns the position of a call of Publish and whether it is new.
func (s *scope) nextPublish(name string) (key [countKey]byte, n uint64, fresh bool) {
	x := s.x
	x.mu.Lock()
	defer x.mu.Unlock()
	key = callKey('p', x.row.Journal, s.name, name)
	before, n, fresh := s.position(key)
	if s.name == "" && len(x.tail) > 0 {
		x.tailPublished = append(x.tailPublished, tailPublished{len(x.tail), key, before})
	}
	return key, n, fresh
}

// position returns the position of the call before one that is counted under a key, its own position, and whether it
// is new. The caller holds the lock.
func (s *scope) position(key [countKey]byte) (before, n uint64, fresh bool) {
	x := s.x
	before = x.publishes[key]
	if n = uint64(s.at) << 32; before >= n {
		n = before
	}
	n++
	x.publishes[key] = n
	return before, n, n > x.published[key] && !x.dry && s.at >= len(s.entries) && !s.abandoned
}

// untold removes the positions of the values that the function published after a call of its tail, since it will
// publish them again.
func (x *execution) untold(r rows, from int) error {
	done := make(map[[countKey]byte]bool)
	for _, t := range x.tailPublished {
		if t.at <= from || done[t.key] {
			continue
		}
		done[t.key] = true
		if err := r.putPublished(x.run, t.key, t.before); err != nil {
			return err
		}
	}
	return nil
}
