package bolt

// keyCache keeps the rows of keys that the last transactions of the scheduler used, so that a busy
// key is not read and parsed by each of them. The scheduler's goroutine owns it.
//
// The rows are valid in one transaction only: the one right after the scheduler's last commit with
// the cache. An app's own transaction in between may change rows of keys. The gap in the
// transaction IDs shows that.
type keyCache struct {
	rows map[string]*keyRow
	last int // the ID of that last transaction
}

// maxCachedKeys limits the rows that stay in memory between transactions, at about 300 bytes each.
const maxCachedKeys = 4096

// give hands the rows to a transaction.
func (c *keyCache) give(t *txn, id int) {
	if id != c.last+1 || c.rows == nil {
		c.rows = make(map[string]*keyRow)
	}
	c.last, t.keyRows = id-1, c.rows
}

// keep takes back the rows from a transaction that ended without an error.
func (c *keyCache) keep(t *txn) {
	switch {
	case len(c.rows) > maxCachedKeys, !t.changed && len(t.usedKeys) > 0: // its changes to the rows are not stored
		c.forget()
	case t.changed:
		c.last++
	}
}

// forget drops all rows.
func (c *keyCache) forget() { *c = keyCache{} }

// useKey lists the row of a key among those that the transaction writes at its end.
func (t *txn) useKey(r *keyRow) {
	if !r.used {
		r.used, t.usedKeys = true, append(t.usedKeys, r)
	}
}

// usedKey returns the row of a key that the transaction uses already, or nil.
func (t *txn) usedKey(key []byte) *keyRow {
	if r := t.keyRows[string(key)]; r != nil && r.used {
		return r
	}
	return nil
}
