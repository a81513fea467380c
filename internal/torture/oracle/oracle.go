package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/queuetest"
)

// Known is what a check knows about a job.
type Known struct {
	State             pawl.State // "" for a job that is gone
	Attempts, Crashes int
	Holds             bool // it holds its key, whose jobs run in order
}

// begun is an operation without a certain answer.
type begun struct {
	verb string
	ids  []pawl.ID
}

// leaseOf is what a lease counts for: a queue and a key; see keyOf.
type leaseOf struct{ queue, key string }

// Oracle follows a story. The zero value is that of an empty file.
type Oracle struct {
	jobs     map[pawl.ID]Known // jobs after the acknowledged operations
	leased   map[pawl.ID]leaseOf
	holders  map[string]pawl.ID // the job that holds a key
	under    map[pawl.ID]*begun // the operation that may have changed a job
	doing    map[int]*begun     // the operation of each goroutine
	fetching map[int]int        // the jobs that a goroutine's fetch may have leased
	answered int
}

// Acknowledged returns the number of acknowledged operations.
func (o *Oracle) Acknowledged() int { return o.answered }

// Hear processes the next line of the story.
func (o *Oracle) Hear(line string) error {
	if o.jobs == nil {
		o.Adopt(make(map[pawl.ID]Known))
	}
	words := strings.Fields(line)
	if len(words) < 3 {
		return fmt.Errorf("the story has the line %q", line)
	}
	what, verb := words[0], words[1]
	goroutine, err := strconv.Atoi(words[2])
	if err != nil {
		return fmt.Errorf("the story has the line %q", line)
	}
	switch {
	case verb == "fetch" && what == "begin":
		o.fetching[goroutine], err = strconv.Atoi(words[3])
		return err
	case what == "unknown": // the operation stays in progress
		return nil
	}
	ids, err := parseIDs(words[3:])
	switch {
	case err != nil:
		return err
	case verb == "fetch":
		return o.fetched(goroutine, ids)
	case what == "begin":
		b := &begun{verb, ids}
		o.doing[goroutine] = b
		for _, id := range ids {
			o.under[id] = b
		}
		return nil
	}
	if what == "done" {
		o.answered++
	}
	for _, id := range ids {
		if b := o.under[id]; b != o.doing[goroutine] {
			continue // a fetch has shown that it happened
		}
		if what == "done" {
			o.happened(id)
		}
		delete(o.under, id)
	}
	return nil
}

// happened applies the operation that is in progress on a job.
func (o *Oracle) happened(id pawl.ID) {
	o.know(id, outcome(o.under[id].verb, id, o.jobs[id]))
	delete(o.under, id)
	delete(o.leased, id)
}

// fetched processes the jobs that a fetch returned. If an operation was in progress on such a job, it has
// happened and made the job ready.
func (o *Oracle) fetched(goroutine int, ids []pawl.ID) error {
	delete(o.fetching, goroutine)
	for _, id := range ids {
		if b := o.under[id]; b != nil && b.verb == "enqueue" {
			for _, id := range b.ids { // a batch is stored as a whole
				o.happened(id)
			}
		} else if b != nil {
			o.happened(id)
		}
		switch k, known := o.jobs[id]; {
		case !known:
			return fmt.Errorf("job %s was leased, and nobody stored it", id)
		case o.isLeased(id):
			return fmt.Errorf("job %s was leased twice at a time", id)
		case k.State != pawl.Ready:
			return fmt.Errorf("job %s was leased, and is %+v", id, k)
		}
		if err := o.lease(id); err != nil {
			return err
		}
	}
	return nil
}

func (o *Oracle) isLeased(id pawl.ID) bool {
	_, leased := o.leased[id]
	return leased
}

// outcome returns a job after an operation, according to the oracle of the suite.
func outcome(verb string, id pawl.ID, k Known) Known {
	o, e := queuetest.NewOracle(queuetest.Settings{Lease: later, MaxCrashes: -1, Limits: limits}), jobOf(id)
	e.Payload = nil // the oracle would copy it, and no outcome depends on it
	job, err := &e, error(nil)
	switch v := slices.IndexFunc(Verbs, func(v Verb) bool { return v.Name == verb }); {
	case verb == "enqueue":
		err = o.Enqueue(job)
	case v >= 0 || verb == "crash":
		o.Put(k.job(job, pawl.Leased))
		if verb == "crash" {
			o.Restart()
		} else {
			s := Verbs[v].settle(&pawl.Lease{Envelope: job})
			err = o.Settle(id, string(s.Outcome), s.Delay, s.Reason)
		}
	case verb == "retry":
		o.Put(k.job(job, k.State))
		err = o.Retry(id, true)
	case verb == "delete":
		o.Put(k.job(job, k.State))
		err = o.Delete(id)
	}
	if err != nil {
		return k // it must fail, and changes nothing
	}
	if job = o.Job(id); job == nil {
		return Known{}
	}
	return knownOf(job)
}

// job sets what is known in an envelope, with a state.
func (k Known) job(e *pawl.Envelope, state pawl.State) *pawl.Envelope {
	e.State, e.Attempts, e.Crashes, e.HoldsKey = state, k.Attempts, k.Crashes, k.Holds || state == pawl.Leased && inOrder(e)
	return e
}

func knownOf(e *pawl.Envelope) Known { return Known{e.State, e.Attempts, e.Crashes, e.HoldsKey} }

func parseIDs(words []string) ([]pawl.ID, error) {
	ids := make([]pawl.ID, len(words))
	for i, word := range words {
		var err error
		if ids[i], err = pawl.ParseID(word); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// Scan reads all jobs of a queue after a crash. It requires that each job is unchanged, that a result
// exists if and only if its ack has happened, and that the file keeps every invariant.
func Scan(ctx context.Context, q *bolt.Queue) (map[pawl.ID]Known, error) {
	found := make(map[pawl.ID]Known)
	for e, err := range q.Jobs(ctx, pawl.Filter{}) {
		if err != nil {
			return nil, err
		}
		found[e.ID] = knownOf(e)
		full, err := q.Job(ctx, e.ID) // with its payload
		if err != nil {
			return nil, err
		}
		if err := errors.Join(SameJob(full), sameResult(full), hasTurn(full)); err != nil {
			return nil, err
		}
	}
	return found, q.Check(ctx)
}

// Reopen opens the file of a crash, scans it, passes the queue and its jobs to use, and closes it. Before
// that it requires that the last commit left no key above its limit.
func Reopen(ctx context.Context, path string, o *bolt.Options, use func(*bolt.Queue, map[pawl.ID]Known) error) error {
	if err := withinLimits(ctx, path); err != nil {
		return err
	}
	q, err := bolt.Open(path, o)
	if err != nil {
		return fmt.Errorf("cannot open the file afterwards: %w", err)
	}
	found, err := Scan(ctx, q)
	if err == nil {
		err = use(q, found)
	}
	return errors.Join(err, q.Close())
}

// Explain requires that the jobs after a crash follow from the story before it: every
// acknowledged operation has happened, none has happened twice, and each operation in
// progress has happened entirely or not at all.
func (o *Oracle) Explain(found map[pawl.ID]Known) error {
	var wrong []error
	unsaid := 0 // leases that the story does not have
	for id, is := range found {
		switch o.explain(id, is) {
		case impossible:
			wrong = append(wrong, fmt.Errorf("job %s is %+v, and was %+v%s", id, is, o.jobs[id], o.amid(id)))
		case leasedUnheard:
			unsaid++
		}
	}
	for id, k := range o.jobs {
		if _, ok := found[id]; !ok && k.State != "" && o.explain(id, Known{}) != possible {
			wrong = append(wrong, fmt.Errorf("job %s is lost: it was %+v%s", id, k, o.amid(id)))
		}
	}
	most := 0
	for _, n := range o.fetching {
		most += n
	}
	if unsaid > most {
		wrong = append(wrong, fmt.Errorf("%d jobs had leases that nobody heard of, and %d were being fetched", unsaid, most))
	}
	return errors.Join(append(wrong, o.halves(found)...)...)
}

type explanation int

const (
	impossible explanation = iota
	possible
	leasedUnheard
)

// explain reports whether a job may be in this state.
func (o *Oracle) explain(id pawl.ID, is Known) explanation {
	k, known := o.jobs[id]
	under := o.under[id]
	var free []Known // its possible states, except for those with a lease that the story does not have
	switch {
	case known && o.isLeased(id):
		if is == outcome("crash", id, k) {
			return possible
		}
	case known:
		free = append(free, k)
	}
	if under != nil {
		free = append(free, outcome(under.verb, id, k))
	}
	switch {
	case slices.Contains(free, is):
		return possible
	case slices.ContainsFunc(free, func(k Known) bool { return k.State == pawl.Ready && outcome("crash", id, k) == is }):
		return leasedUnheard
	}
	return impossible
}

func (o *Oracle) amid(id pawl.ID) string {
	text := ""
	if o.isLeased(id) {
		text = ", leased"
	}
	if under := o.under[id]; under != nil {
		text += ", amid " + under.verb
	}
	return text
}

// halves finds batches that were stored in part.
func (o *Oracle) halves(found map[pawl.ID]Known) (wrong []error) {
	checked := make(map[*begun]bool)
	for _, b := range o.under {
		if checked[b] || b.verb != "enqueue" {
			continue
		}
		checked[b] = true
		n := 0
		for _, id := range b.ids {
			if _, ok := found[id]; ok {
				n++
			}
		}
		if n != 0 && n != len(b.ids) {
			wrong = append(wrong, fmt.Errorf("%d of %d jobs that were stored together are in the file", n, len(b.ids)))
		}
	}
	return wrong
}

// Adopt continues the story in a new process, from the jobs that it found.
func (o *Oracle) Adopt(found map[pawl.ID]Known) {
	*o = Oracle{
		jobs:     found,
		leased:   make(map[pawl.ID]leaseOf),
		holders:  make(map[string]pawl.ID),
		under:    make(map[pawl.ID]*begun),
		doing:    make(map[int]*begun),
		fetching: make(map[int]int),
		answered: o.answered,
	}
	for id, k := range found {
		if k.Holds {
			o.know(id, k)
		}
	}
}
