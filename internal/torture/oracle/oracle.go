package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

func quiet() hclog.Logger { return hclog.NewNullLogger() }

// Known is what is known of a job.
type Known struct {
	State             pawl.State // "" for a job that is gone
	Attempts, Crashes int
}

// crashed is a job whose process died while it was leased, once the file is open again.
func (k Known) crashed() Known { return Known{pawl.Ready, k.Attempts, k.Crashes + 1} }

// begun is an operation that was begun and not answered for certain.
type begun struct {
	verb string
	ids  []pawl.ID
}

// Oracle follows a story. The zero value is that of an empty file.
type Oracle struct {
	jobs     map[pawl.ID]Known // by what was acknowledged
	leased   map[pawl.ID]bool
	under    map[pawl.ID]*begun // what may or may not have happened to a job
	doing    map[int]*begun     // what each goroutine does
	fetching map[int]int        // how many jobs a goroutine's fetch may have leased
	answered int
}

// Acknowledged is how many operations were told to be done.
func (o *Oracle) Acknowledged() int { return o.answered }

// Hear takes the next line of the story.
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
	case what == "unknown": // it stays under way
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

// happened carries out what was under way with a job.
func (o *Oracle) happened(id pawl.ID) {
	o.jobs[id] = outcome(o.under[id].verb, id, o.jobs[id])
	delete(o.under, id)
	delete(o.leased, id)
}

// fetched takes the jobs that a fetch got. Whatever was under way with one of them has
// happened, and made it ready.
func (o *Oracle) fetched(goroutine int, ids []pawl.ID) error {
	delete(o.fetching, goroutine)
	for _, id := range ids {
		if b := o.under[id]; b != nil && b.verb == "enqueue" {
			for _, id := range b.ids { // which are stored together
				o.happened(id)
			}
		} else if b != nil {
			o.happened(id)
		}
		switch k, known := o.jobs[id]; {
		case !known:
			return fmt.Errorf("job %s was leased, and nobody stored it", id)
		case o.leased[id]:
			return fmt.Errorf("job %s was leased twice at a time", id)
		case k.State != pawl.Ready:
			return fmt.Errorf("job %s was leased, and is %+v", id, k)
		}
		o.leased[id] = true
	}
	return nil
}

// outcome is what a verb makes of a job.
func outcome(verb string, id pawl.ID, k Known) Known {
	switch job := JobOf(id); {
	case verb == "enqueue" && job.Delay > 0:
		return Known{State: pawl.Delayed}
	case verb == "enqueue":
		return Known{State: pawl.Ready}
	case verb == "ack" && job.Retain > 0:
		return Known{State: pawl.Completed, Attempts: k.Attempts + 1}
	case verb == "ack", verb == "delete":
		return Known{}
	case verb == "retry":
		return Known{State: pawl.Ready, Attempts: k.Attempts}
	}
	i := slices.IndexFunc(verbs, func(v verbOf) bool { return v.name == verb })
	return verbs[i].after(k)
}

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

// Scan reads all jobs of a queue that was opened after the crash, requires that each is as
// it was given, and that the file keeps every invariant.
func Scan(ctx context.Context, q *bolt.Queue) (map[pawl.ID]Known, error) {
	found := make(map[pawl.ID]Known)
	for e, err := range q.Jobs(ctx, pawl.Filter{}) {
		if err != nil {
			return nil, err
		}
		found[e.ID] = Known{e.State, e.Attempts, e.Crashes}
		full, err := q.Job(ctx, e.ID) // with its payload
		if err != nil {
			return nil, err
		}
		if err := SameJob(full); err != nil {
			return nil, err
		}
	}
	return found, q.Check(ctx)
}

// Explain requires that what was found after a crash follows from what was heard before
// it: all that was acknowledged has happened, nothing has happened twice, and of what was
// under way each operation has happened entirely or not at all.
func (o *Oracle) Explain(found map[pawl.ID]Known) error {
	var wrong []error
	unsaid := 0 // leases that were given and not heard of
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

// explain says whether a job may be so.
func (o *Oracle) explain(id pawl.ID, is Known) explanation {
	k, known := o.jobs[id]
	under := o.under[id]
	var free []Known // what it may be without a lease that nobody heard of
	switch {
	case known && o.leased[id]:
		if is == k.crashed() {
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
	case slices.ContainsFunc(free, func(k Known) bool { return k.State == pawl.Ready && k.crashed() == is }):
		return leasedUnheard
	}
	return impossible
}

func (o *Oracle) amid(id pawl.ID) string {
	text := ""
	if o.leased[id] {
		text = ", leased"
	}
	if under := o.under[id]; under != nil {
		text += ", amid " + under.verb
	}
	return text
}

// halves finds operations on several jobs of which a part happened.
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

// Adopt takes what was found as the state from which the story goes on in a new process.
func (o *Oracle) Adopt(found map[pawl.ID]Known) {
	*o = Oracle{
		jobs:     found,
		leased:   make(map[pawl.ID]bool),
		under:    make(map[pawl.ID]*begun),
		doing:    make(map[int]*begun),
		fetching: make(map[int]int),
		answered: o.answered,
	}
}
