package workflow

import (
	"context"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// put is one row to write, encoded outside the transaction.
type put struct {
	bucket, key, value []byte
	of                 *entry // that was left for whoever writes next, nil for any other row
}

// journal is entries to write.
type journal struct {
	entries []*entry
	puts    []put
	bytes   int
	err     error
}

// take is what is to be written of the journal: the entries given, and those that were left
// for later. The caller holds the lock.
func (x *execution) take(entries ...*entry) (j journal) {
	left := len(x.unsaved)
	j.entries = append(x.unsaved, entries...)
	x.unsaved, x.slept = nil, false
	for i, e := range j.entries {
		if j.add(x.run, e); i < left && j.err == nil {
			j.puts[len(j.puts)-1].of = e
		}
	}
	return j
}

// putBack leaves to who writes next what was not written. The caller holds the lock.
func (x *execution) putBack(j journal) {
	x.unsaved = append(j.entries, x.unsaved...)
	x.slept = true // one of them may be
}

func (j *journal) add(run pawl.ID, e *entry) {
	row := *e
	key := seqKey(run, e.seq)
	if row.Apart = e.Apart || len(e.Result) > maxInline; row.Apart {
		if e.Result != nil {
			j.put(bucketBlobs, key, e.Result)
		}
		row.Result = nil
	}
	content, err := pawl.EncodePayload(&row)
	if err != nil {
		j.err = err
		return
	}
	j.put(bucketSteps, key, content)
}

func (j *journal) put(bucket, key, content []byte) {
	j.puts = append(j.puts, put{bucket: bucket, key: key, value: seal(bucket, key, content)})
	j.bytes += len(key) + len(content)
}

func (j *journal) apply(r rows) error {
	if j.err != nil {
		return j.err
	}
	for _, p := range j.puts {
		b := r.bucket(p.bucket)
		if b == nil {
			return errNoBucket
		}
		if p.of != nil && r.further(p.key, p.of) {
			continue
		}
		if err := writable(b.Put(p.key, p.value)); err != nil {
			return err
		}
	}
	return nil
}

// further reports whether the journal has a later state of an entry. Who takes along what
// another scope left may come to write after that one, which went on meanwhile.
func (r rows) further(key []byte, e *entry) bool {
	content, err := r.get(bucketSteps, key)
	if content == nil || err != nil {
		return false
	}
	known, err := parseEntry(key, content)
	return err == nil && e.State == EntryPending && (known.State != EntryPending || known.Attempts > e.Attempts)
}

// writing is the context of what is written for the run: what a step has done is written
// although the worker stops.
func (x *execution) writing() context.Context { return context.WithoutCancel(x.ctx) }

// checkpoint is the rider that writes entries while the run goes on.
type checkpoint struct {
	lease   *pawl.Lease
	journal journal
}

// Check requires the lease.
func (c *checkpoint) Check(p *bolt.Plan) error { return p.Hold(c.lease) }

// Apply writes the entries.
func (c *checkpoint) Apply(tx *bbolt.Tx) error { return c.journal.apply(rowsOf(tx)) }

// save writes entries. After an error nobody knows what the file has, so the run stops.
func (x *execution) save(entries ...*entry) error {
	x.mu.Lock()
	c := &checkpoint{x.lease, x.take(entries...)}
	x.mu.Unlock()
	err := c.journal.err
	if err == nil {
		err = x.engine.queue.Join(x.writing(), c, c.journal.bytes)
	}
	if err != nil {
		return x.stop(err)
	}
	return nil
}

// later leaves an entry for the next rider, as it can be told again after a crash.
func (x *execution) later(e *entry) {
	row := *e // the entry goes on, and whoever writes next writes this
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := slices.IndexFunc(x.unsaved, func(u *entry) bool { return u.seq == e.seq }); i >= 0 {
		x.unsaved[i] = &row
		return
	}
	x.unsaved = append(x.unsaved, &row)
}
