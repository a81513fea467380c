package driver

import (
	"fmt"
	"iter"
	"slices"

	"github.com/gopawl/pawl"
)

// The tables of what jobs wait for, in docs/internals/format.md. Each pair of a job and a prerequisite that is
// not met yet has a row in both. So a job waits as long as it has rows.
var (
	afterSpace      = NewSpace("pawl.after")
	tableWaits      = afterSpace.Index("waits")      // by the job that waits
	tableDependents = afterSpace.Index("dependents") // by the job that it waits for
)

// The content of a row: what meets the prerequisite.
const (
	metBySuccess byte = iota
	metByEnd
)

// Prerequisite is a job that another one waits for.
type Prerequisite struct {
	ID    pawl.ID
	Any   bool       // any end will do, not only a success
	State pawl.State // of the prerequisite; "" if the queue does not hold it
}

// Met reports whether a job in a state meets the prerequisite. It stays met, whatever becomes of the job
// afterwards.
func (p Prerequisite) Met(state pawl.State) bool {
	return state == pawl.Completed || p.Any && state == pawl.Dead
}

// Waits reports whether a job has prerequisites.
func Waits(e *pawl.Envelope) bool { return len(e.After)+len(e.AfterAny) > 0 }

// PrerequisitesOf returns the prerequisites of a job, each once. A job in both After and AfterAny must succeed.
func PrerequisitesOf(e *pawl.Envelope) iter.Seq[Prerequisite] {
	return func(yield func(Prerequisite) bool) {
		if !Waits(e) {
			return
		}
		seen := make(map[pawl.ID]bool, len(e.After)+len(e.AfterAny))
		for i, id := range slices.Concat(e.After, e.AfterAny) {
			if seen[id] {
				continue
			}
			seen[id] = true
			if !yield(Prerequisite{ID: id, Any: i >= len(e.After)}) {
				return
			}
		}
	}
}

// CheckPrerequisites refuses a new job. It returns [pawl.ErrNotFound] if the job names a job that is not known,
// and [pawl.ErrConflict] if others already wait for its ID: they could wait for each other.
func CheckPrerequisites(e *pawl.Envelope, known, awaited func(pawl.ID) bool) error {
	if !Waits(e) {
		return nil
	}
	for p := range PrerequisitesOf(e) {
		if !known(p.ID) {
			return fmt.Errorf("job %s, which another one is to wait for: %w: it was never there, or it is done and has left no record; see pawl.Retain",
				p.ID, pawl.ErrNotFound)
		}
	}
	if awaited(e.ID) {
		return fmt.Errorf("job %s: %w: others wait for a job of this ID, so it cannot wait itself", e.ID, pawl.ErrConflict)
	}
	return nil
}

// Prerequisites keeps, for one transaction of a queue with the ability [pawl.Prerequisites], what jobs wait
// for. The queue calls Add before it gives a new job its place, Ended for each job that succeeded or died,
// Forget for each job that is removed, and Flush before it commits. The zero value is ready.
type Prerequisites struct {
	read, any bool // whether any job waits
	ended     []endedJob
}

type endedJob struct {
	id    pawl.ID
	state pawl.State
}

// Any reports whether any job waits for another.
func (p *Prerequisites) Any(r Reader) bool {
	if !p.read {
		p.read = true
		err := presentTable(r.Scan(tableDependents, Span{Limit: 1}, func(_, _ []byte) bool {
			p.any = true
			return false
		}))
		p.any = p.any || err != nil // if in doubt, look at each job
	}
	return p.any
}

// Add notes what a new job waits for, unless it is met.
func (p *Prerequisites) Add(w Writer, e *pawl.Envelope, state func(pawl.ID) pawl.State) error {
	for needed := range PrerequisitesOf(e) {
		if needed.Met(state(needed.ID)) {
			continue
		}
		if err := putPair(w, e.ID, needed); err != nil {
			return err
		}
		p.read, p.any = true, true
	}
	return nil
}

// Waits reports whether a job waits. In doubt it does.
func (p *Prerequisites) Waits(r Reader, id pawl.ID) bool { return p.has(r, tableWaits, id) }

// Awaited reports whether other jobs wait for a job. In doubt they do.
func (p *Prerequisites) Awaited(r Reader, id pawl.ID) bool { return p.has(r, tableDependents, id) }

func (p *Prerequisites) has(r Reader, t *Table, id pawl.ID) (found bool) {
	if !p.Any(r) {
		return false
	}
	err := presentTable(r.Scan(t, Span{Prefix: id[:], Limit: 1}, func(_, _ []byte) bool {
		found = true
		return false
	}))
	return found || err != nil
}

// Forget removes what a job waits for, when the job leaves the queue.
func (p *Prerequisites) Forget(w Writer, id pawl.ID) error {
	if !p.Waits(w, id) {
		return nil
	}
	var pairs [][2]pawl.ID
	err := eachPair(w, tableWaits, id, func(needed pawl.ID, _ byte, _ error) { pairs = append(pairs, [2]pawl.ID{id, needed}) })
	for i := 0; i < len(pairs) && err == nil; i++ {
		err = deletePair(w, pairs[i][0], pairs[i][1])
	}
	return err
}

// Ended notes that a job has succeeded or is dead, and reports whether there is something to flush.
func (p *Prerequisites) Ended(r Reader, id pawl.ID, state pawl.State) bool {
	if !p.Any(r) {
		return false
	}
	p.ended = append(p.ended, endedJob{id, state})
	return true
}

// Pending reports whether there is something to flush.
func (p *Prerequisites) Pending() bool { return len(p.ended) > 0 }

// Flush calls release with each job that no longer waits for any job. It calls skipped for each damaged row.
func (p *Prerequisites) Flush(w Writer, release func(pawl.ID), skipped func(error)) error {
	for len(p.ended) > 0 {
		ended := p.ended[0]
		p.ended = p.ended[1:]
		if err := p.flush(w, ended, release, skipped); err != nil {
			return err
		}
	}
	return nil
}

func (p *Prerequisites) flush(w Writer, ended endedJob, release func(pawl.ID), skipped func(error)) error {
	var met []pawl.ID
	err := eachPair(w, tableDependents, ended.id, func(waits pawl.ID, how byte, damage error) {
		switch {
		case damage != nil:
			skipped(damage)
		case Prerequisite{Any: how == metByEnd}.Met(ended.state):
			met = append(met, waits)
		}
	})
	if err != nil {
		return err
	}
	for _, id := range met {
		if err := deletePair(w, id, ended.id); err != nil {
			return err
		}
		if !p.Waits(w, id) {
			release(id)
		}
	}
	return nil
}

// ReadPrerequisites returns what a job waits for.
func ReadPrerequisites(r Reader, id pawl.ID) (all []Prerequisite, err error) {
	var damaged error
	err = eachPair(r, tableWaits, id, func(needed pawl.ID, how byte, damage error) {
		if damage != nil {
			damaged = damage
		}
		all = append(all, Prerequisite{ID: needed, Any: how == metByEnd})
	})
	if err == nil {
		err = damaged
	}
	return all, err
}

// Dependents returns the jobs that wait for the success of a job, directly or through other jobs: the nearest
// first, and without dead ones. Direct finds the jobs that wait directly for some jobs. [pawl.ErrBatchTooLarge]
// means that there are more than [pawl.MaxBatchJobs].
func Dependents(id pawl.ID, direct func(needed []pawl.ID, found func(id pawl.ID, state pawl.State)) error) (all []pawl.ID, err error) {
	known := map[pawl.ID]bool{id: true}
	for level := []pawl.ID{id}; len(level) > 0 && err == nil; {
		var next []pawl.ID
		err = direct(level, func(id pawl.ID, state pawl.State) {
			if known[id] {
				return
			}
			known[id] = true
			next = append(next, id)
			if state != pawl.Dead {
				all = append(all, id)
			}
		})
		if len(known) > pawl.MaxBatchJobs+1 {
			return nil, fmt.Errorf("jobs that wait for job %s: %w: there are more than %d; select them by a filter instead", id, pawl.ErrBatchTooLarge, pawl.MaxBatchJobs)
		}
		level = next
	}
	return all, err
}

// ReadDependents returns the jobs that wait directly for the success of a job.
func ReadDependents(r Reader, id pawl.ID) (all []pawl.ID, err error) {
	err = eachPair(r, tableDependents, id, func(waits pawl.ID, how byte, damage error) {
		if damage == nil && how == metBySuccess {
			all = append(all, waits)
		}
	})
	return all, err
}

// SetPrerequisites writes into an envelope what its job waits for.
func SetPrerequisites(e *pawl.Envelope, all []Prerequisite) {
	e.After, e.AfterAny = nil, nil
	for _, p := range all {
		if p.Any {
			e.AfterAny = append(e.AfterAny, p.ID)
		} else {
			e.After = append(e.After, p.ID)
		}
	}
}

func putPair(w Writer, id pawl.ID, needed Prerequisite) error {
	how := []byte{metBySuccess}
	if needed.Any {
		how[0] = metByEnd
	}
	if err := putHalf(w, tableWaits, id, needed.ID, how); err != nil {
		return err
	}
	return putHalf(w, tableDependents, needed.ID, id, how)
}

func putHalf(w Writer, t *Table, of, other pawl.ID, how []byte) error {
	key := pairKey(of, other)
	return w.Put(t, key, Seal(t, key, how))
}

func deletePair(w Writer, id, needed pawl.ID) error {
	if err := w.Delete(tableWaits, pairKey(id, needed)); err != nil {
		return err
	}
	return w.Delete(tableDependents, pairKey(needed, id))
}

func pairKey(of, other pawl.ID) []byte { return append(of[:len(of):len(of)], other[:]...) }

// eachPair calls fn for the rows of a job in one of the tables.
func eachPair(r Reader, t *Table, of pawl.ID, fn func(other pawl.ID, how byte, damage error)) error {
	return presentTable(r.Scan(t, Span{Prefix: of[:]}, func(key, value []byte) bool {
		if _, other, how, err := parsePair(t, key, value); len(key) == 2*len(of) {
			fn(other, how, err)
		}
		return true
	}))
}

func parsePair(t *Table, key, value []byte) (of, other pawl.ID, how byte, err error) {
	if len(key) != 2*len(of) {
		return of, other, 0, fmt.Errorf("%w: table %s has the key %x", pawl.ErrCorrupt, t, key)
	}
	of, other = pawl.ID(key[:len(of)]), pawl.ID(key[len(of):])
	content, err := Unseal(t, key, value)
	if err == nil && (len(content) != 1 || content[0] > metByEnd) {
		err = fmt.Errorf("table %s, key %x: %w: it says %x", t, key, pawl.ErrCorrupt, content)
	}
	if err != nil {
		return of, other, 0, err
	}
	return of, other, content[0], nil
}

// EachPrerequisite calls fn for each pair of a job that waits and what it waits for, until fn returns false.
// Damage comes with an error: a row that cannot be read, or one whose counterpart is missing or different.
func EachPrerequisite(r Reader, fn func(id pawl.ID, p Prerequisite, damage error) bool) error {
	goesOn := true
	visit := func(t, counter *Table) func(key, value []byte) bool {
		return func(key, value []byte) bool {
			of, other, how, err := parsePair(t, key, value)
			if err == nil {
				opposite := pairKey(other, of)
				stored, getErr := r.Get(counter, opposite)
				_, _, theirs, parseErr := parsePair(counter, opposite, stored)
				switch {
				case getErr != nil:
					err = getErr
				case parseErr != nil || theirs != how:
					err = fmt.Errorf("table %s, key %x: %w: the row of table %s differs", t, key, pawl.ErrCorrupt, counter)
				}
			}
			if t == tableDependents {
				if err == nil {
					return true // the other table had it
				}
				of, other = other, of
			}
			goesOn = fn(of, Prerequisite{ID: other, Any: how == metByEnd}, err)
			return goesOn
		}
	}
	err := presentTable(r.Scan(tableWaits, Span{}, visit(tableWaits, tableDependents)))
	if err == nil && goesOn {
		err = presentTable(r.Scan(tableDependents, Span{}, visit(tableDependents, tableWaits)))
	}
	return err
}

// RepairPrerequisites repairs the rows of a damaged store. It writes a missing counterpart of a row again. It
// removes rows that cannot be read, and rows that keep refuses.
func RepairPrerequisites(w Writer, keep func(id pawl.ID, p Prerequisite) bool) error {
	type pair struct{ id, needed pawl.ID }
	sound := make(map[pair]Prerequisite)
	type row struct {
		table *Table
		key   []byte
	}
	var damaged []row
	for _, t := range []*Table{tableWaits, tableDependents} {
		err := presentTable(w.Scan(t, Span{}, func(key, value []byte) bool {
			of, other, how, err := parsePair(t, key, value)
			if err != nil {
				damaged = append(damaged, row{t, slices.Clone(key)})
				return true
			}
			if t == tableDependents {
				of, other = other, of
			}
			sound[pair{of, other}] = Prerequisite{ID: other, Any: how == metByEnd}
			return true
		}))
		if err != nil {
			return err
		}
	}
	for _, d := range damaged {
		if err := w.Delete(d.table, d.key); err != nil {
			return err
		}
	}
	for at, p := range sound {
		err := deletePair(w, at.id, at.needed)
		if err == nil && keep(at.id, p) {
			err = putPair(w, at.id, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
