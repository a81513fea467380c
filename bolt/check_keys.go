package bolt

import (
	"bytes"

	"github.com/gopawl/pawl"
)

// keys requires that the rows of unique keys, effects and times belong to the jobs that have
// them, and that no job waits for a missing row.
func (c *check) keys() {
	c.uniqueRows()
	c.values(c.expiry, 0, func(k, _ []byte) { c.expiryRow(k) })
	for key, id := range c.blocked {
		if !c.unblock[key] {
			c.wrong("job %s is blocked and nothing unblocks it", id)
		}
	}
	c.keyRows()
}

// expiryRow requires that a time matches what it belongs to.
func (c *check) expiryRow(k []byte) {
	if len(k) <= timeWidth+1 {
		c.wrong("row %x of %s is too short", k, c.expiry.name)
		return
	}
	switch of := k[timeWidth+1:]; k[timeWidth] {
	case endsLife:
		if !bytes.Equal(k, deadlineKey(nil, c.envelope(of).Envelope)) {
			c.wrong("deadline %x is that of no job", k)
		}
	case endsEffect:
		if row, _ := parseEffectRow(of, c.effects.Get(of)); row.done.Before(timeAt(k)) { // the row is later if the effect was done again
			c.wrong("row %x would end effect %q, which is not done until then", k, of)
		}
	case endsRest:
		if row, err := parseKeyRow(of, c.store.keys.Get(of)); err != nil || !row.wake.Equal(timeAt(k)) {
			c.wrong("row %x would look at key %q, which does not wait for that", k, of)
		}
	default:
		c.wrong("row %x of %s is the time of nothing", k, c.expiry.name)
	}
}

// values is like each, for rows whose value has a checksum.
func (c *check) values(b *table, width int, fn func(k, value []byte)) {
	c.each(b, func(k, v []byte) {
		if value, err := unseal(k, v, width); err != nil {
			c.wrong("row %x of %s: %w", k, b.name, err)
		} else {
			fn(k, value)
		}
	})
}

// envelope returns the record of a job, or an empty envelope if there is none.
func (c *check) envelope(id []byte) stored {
	if len(id) == len(pawl.ID{}) {
		if j, err := c.record(pawl.ID(id)); err == nil {
			return j
		}
	}
	return stored{Envelope: new(pawl.Envelope)}
}

func (c *check) uniqueRows() {
	c.values(c.unique, len(pawl.ID{}), func(k, v []byte) {
		j := c.envelope(v)
		if n, _, _ := c.number(j.Queue); j.UniqueKey == "" || !bytes.Equal(k, uniqueKey(nil, n, j.Envelope)) {
			c.wrong("unique key %q leads to job %s, whose key it is not", k, j.ID)
		}
	})
}

// effectRows reads which job holds each effect, and requires that it is leased.
func (c *check) effectRows() {
	c.values(c.effects, effectWidth, func(k, _ []byte) {
		row, _ := parseEffectRow(k, c.effects.Get(k))
		if row == (effectRow{}) {
			c.wrong("effect %q is neither leased nor done", k)
		}
		if row.holder != (pawl.ID{}) {
			c.holders[string(k)] = row.holder
			if c.leased.Get(row.holder[:]) == nil {
				c.wrong("effect %q is held by job %s, which is not leased", k, row.holder)
			}
		}
		if !row.done.IsZero() && c.expiry.Get(effectEndKey(nil, row.done, k)) == nil {
			c.wrong("effect %q would be done for ever", k)
		}
	})
}

// waiting requires that the deadline of a waiting job has a row in expiry. It records whether an effect blocks the
// job, since a ready job must exist then that can unblock it. A job whose unique key leads nowhere is not an error:
// another job, with its own choice of states, may have taken the key and be gone.
func (c *check) waiting(j stored, p place) {
	waits := p.state != pawl.Leased && p.state != pawl.Dead && p.state != pawl.Completed
	if waits && !j.Deadline.IsZero() && c.expiry.Get(deadlineKey(nil, j.Envelope)) == nil {
		c.wrong("nobody looks at the deadline of job %s", j.ID)
	}
	c.countKey(j, p)
	c.countBacklog(j, p)
	if j.IdempotencyKey == "" {
		return
	}
	effect := string(effectKey(nil, j.Envelope))
	switch {
	case p.state == pawl.Leased && c.holders[effect] != j.ID:
		c.wrong("job %s is leased, its effect is held by %s", j.ID, c.holders[effect])
	case p.state == pawl.Ready && bytes.Equal(p.key, heldKey(nil, []byte(effect), p.line, j.Envelope)):
		c.blocked[j.Queue+effect] = j.ID
		if _, held := c.holders[effect]; held {
			c.unblock[j.Queue+effect] = true
		}
	case p.state == pawl.Ready && p.table == c.ready:
		c.unblock[j.Queue+effect] = true
	}
}
