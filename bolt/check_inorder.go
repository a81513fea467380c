package bolt

import (
	"slices"

	"github.com/gopawl/pawl"
)

// inOrder records a job of a key whose jobs run in order.
func (s *keyScan) inOrder(j stored, p place, c *check) {
	switch {
	case j.HoldsKey:
		s.holders = append(s.holders, j.ID)
	case p.state == pawl.Leased:
		s.running = append(s.running, j.ID)
	}
	switch {
	case p.state != pawl.Ready:
	case p.table == c.delayed && p.key[0] == waitsForTurn:
		if turn := turnOf(j.Envelope); s.waiting == 0 || turn.before(&s.first) {
			s.first = turn
		}
		s.waiting++
	default:
		s.ready = append(s.ready, j.ID)
	}
}

// keyOrder requires that a key with ready jobs has a head, that only the head can be fetched, and
// that the head is the job that holds the key or else the first that became due.
func (c *check) keyOrder(key []byte, row *keyRow, found *keyScan) {
	if row.waiting != found.waiting {
		c.wrong("key %q counts %d jobs that wait for their turn, a scan finds %d", key, row.waiting, found.waiting)
	}
	if row.head == nil {
		if len(found.holders)+len(found.ready) > 0 || found.waiting > 0 && found.leased == 0 {
			c.wrong("key %q has no job whose turn it is, a scan finds that %v hold it, that %v are ready, and that %d wait for their turn",
				key, found.holders, found.ready, found.waiting)
		}
		return
	}
	head := []pawl.ID{row.head.id}
	if slices.Contains(found.running, row.head.id) {
		found.holders = append(found.holders, row.head.id)
	}
	if !row.isHeld() {
		if len(found.holders) > 0 || !slices.Equal(found.ready, head) {
			c.wrong("job %s has the turn of key %q, a scan finds that %v hold it, and that %v are ready", row.head.id, key, found.holders, found.ready)
		}
		if found.waiting > 0 && found.first.before(&row.head.turn) {
			c.wrong("job %s has the turn of key %q, and another became due before it", row.head.id, key)
		}
		return
	}
	if !slices.Equal(found.holders, head) {
		c.wrong("job %s holds key %q, a scan finds that %v do", row.head.id, key, found.holders)
	}
	if len(found.ready) > 0 && !slices.Equal(found.ready, head) {
		c.wrong("job %s holds key %q, a scan finds that %v are ready", row.head.id, key, found.ready)
	}
}
