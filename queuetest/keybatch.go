package queuetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

// keyBatch enqueues a batch for one key, with one job for each verb: u uses the
// existing job, j rejects, r replaces, and - has no key. The payloads are a, b, c, and
// so on.
type keyBatch struct {
	state  pawl.State // of the job that has the key before, "" for none
	verbs  string
	stored string // payloads of the jobs that must be stored; "" for a refusal
	same   string // payloads of those that must have the ID of the first, or of the one before
}

func (b keyBatch) test() test {
	name := "batch of " + b.verbs
	if b.state != "" {
		name += ", onto one that is " + string(b.state)
	}
	return newTest(name,
		"An earlier job of a batch has the key for the later ones. A job that uses the existing one gets its ID, the last "+
			"of several replacements wins, and one rejected job makes Enqueue refuse the whole batch.", func(f *fixture) {
			var id pawl.ID
			if b.state != "" {
				id = f.held(b.state, unique("key"))
			}
			unchanged := f.unchanged()
			var batch []*pawl.Envelope
			for i, verb := range b.verbs {
				e := newcomer(string(rune('a' + i)))
				switch verb {
				case '-':
					e.UniqueKey = ""
				case 'j':
					e.OnConflict = pawl.Reject
				case 'r':
					e.OnConflict = pawl.Replace
				}
				batch = append(batch, e)
			}
			done, err := f.put(f.q, batch...)
			if b.stored == "" {
				f.is(err, pawl.ErrConflict, "enqueue")
				unchanged("after the refusal")
				return
			}
			f.ok(err, "enqueue")
			if id.IsZero() || b.state == pawl.Dead {
				id = batch[strings.IndexAny(b.verbs, "ujr")].ID
			}
			payloads := map[string]int{}
			for _, e := range f.list(pawl.Filter{}) {
				payloads[string(e.Payload)]++
			}
			for _, e := range batch {
				payload := string(e.Payload)
				equal(f, e.ID == id, strings.Contains(b.same, payload), "job "+payload+" has the ID of the key")
				want := 0
				if strings.Contains(b.stored, payload) {
					want = 1
					f.stored(e, "job "+payload)
				}
				equal(f, payloads[payload], want, "jobs stored for "+payload)
			}
			for i, verb := range b.verbs {
				blocked := b.state != "" && b.state != pawl.Dead || strings.ContainsAny(b.verbs[:i], "ujr")
				equal(f, done[i].Existing, verb == 'u' && blocked, fmt.Sprintf("Existing of job %c", 'a'+i))
			}
			f.keyIsOf(id, "after the batch")
		})
}

func keyBatchTests() (tests []test) {
	for _, b := range []keyBatch{
		{"", "uu", "a", "ab"},
		{"", "-u-u-", "abce", "bd"},
		{"", "ru", "a", "ab"},
		{"", "ur", "b", "ab"},
		{"", "rr", "b", "ab"},
		{"", "urr", "c", "abc"},
		{"", "urur", "d", "abcd"},
		{"", "ju", "a", "ab"},
		{"", "jr", "b", "ab"},
		{"", "uj", "", ""},
		{"", "-rj", "", ""},
		{pawl.Ready, "r", "a", "a"},
		{pawl.Ready, "rr", "b", "ab"},
		{pawl.Ready, "ur", "b", "ab"},
		{pawl.Ready, "ru", "a", "ab"},
		{pawl.Ready, "rj", "", ""},
		{pawl.Delayed, "rr", "b", "ab"},
		{pawl.Delayed, "rur", "c", "abc"},
		{pawl.Leased, "-r", "", ""},
		{pawl.Leased, "-u", "a", "b"},
		{pawl.Dead, "uu", "a", "ab"},
		{pawl.Dead, "rr", "b", "ab"},
		{pawl.Dead, "j", "a", "a"},
		{pawl.Dead, "uj", "", ""},
	} {
		tests = append(tests, b.test())
	}
	return append(tests,
		newTest("batch, states of its jobs",
			"An earlier job of a batch blocks a later one by the state that it will have: delayed if its time is in the "+
				"future.", func(f *fixture) {
				for _, c := range []struct {
					delay  time.Duration
					state  pawl.State
					blocks bool
				}{{0, pawl.Ready, true}, {time.Hour, pawl.Ready, false}, {0, pawl.Delayed, false}, {time.Hour, pawl.Delayed, true}} {
					f.fresh(Settings{})
					a := newcomer("a", func(e *pawl.Envelope) { e.Delay = c.delay })
					b := newcomer("b", unique("key", c.state))
					done := f.enqueue(a, b)
					equal(f, b.ID == a.ID, c.blocks, "the second has the ID of the first")
					equal(f, done[1].Existing, c.blocks, "Existing")
				}
			}),
		newTest("past its deadline",
			"UseExisting never returns the ID of a job past its deadline, in the same batch or in the queue, because that "+
				"job counts as dead.", func(f *fixture) {
				e, next := newcomer("late", within(-time.Hour)), newcomer("next")
				f.enqueue(e, next)
				f.stored(next, "the later one of the batch")
				equal(f, next.ID == e.ID, false, "it has the ID of the one past its deadline")
				f.pass(0)
				equal(f, f.must(e.ID).State, pawl.Dead, "state of the one past its deadline")

				c := f.clocked()
				e, next = newcomer("in time", within(time.Hour)), newcomer("next")
				f.enqueue(e)
				c.step(2 * time.Hour) // which the queue has not noticed yet
				equal(f, f.enqueue(next)[0].Existing, false, "Existing beside a job whose deadline has passed")
				equal(f, next.ID == e.ID, false, "it has the ID of that job")
				f.pass(time.Minute)
				equal(f, f.must(e.ID).State, pawl.Dead, "state of that job")
				f.keyIsOf(next.ID, "after that")
			}),
		newTest("past its delay",
			"For an enqueue of its unique key, a delayed job that is due counts as ready, whether or not the queue has "+
				"promoted it.", func(f *fixture) {
				var c clock
				for _, state := range []pawl.State{pawl.Ready, pawl.Delayed} {
					f.fresh(Settings{Now: c.now})
					e, next := newcomer("due", func(e *pawl.Envelope) { e.Delay = time.Hour }), newcomer("next", unique("key", state))
					f.enqueue(e)
					c.step(2 * time.Hour) // which the queue has not noticed yet
					equal(f, f.enqueue(next)[0].Existing, state == pawl.Ready, "Existing for one that a "+string(state)+" job blocks")
				}
			}),
		newTest("batch, an ID that the batch freed or gave",
			"A job of a batch may not have the ID that an earlier job of the batch got by its key.", func(f *fixture) {
				id := f.add(unique("key")).ID
				unchanged := f.unchanged()
				with := func(e *pawl.Envelope) { e.ID = id }
				for _, batch := range [][]*pawl.Envelope{
					{newcomer("a", answer(pawl.Replace)), newcomer("b", unique(""), with)},
					{newcomer("b", unique(""), with), newcomer("a", answer(pawl.Replace))},
				} {
					f.is(f.try(batch...), pawl.ErrConflict, "enqueue")
					unchanged("after the refusal")
				}
			}),
		newTest("batch, the last that took it",
			"The job of the batch that took the key last has it, even if an earlier owner still exists.", func(f *fixture) {
				first := f.must(f.add(unique("key")).ID)
				batch := []*pawl.Envelope{newcomer("a", unique("key", pawl.Dead)), newcomer("b", answer(pawl.Replace)), newcomer("c")}
				f.enqueue(batch...)
				f.same(f.must(first.ID), first, "the job that had the key")
				f.stored(batch[1], "the job that has it now")
				equal(f, batch[1].ID == first.ID, false, "it has the ID of the one before")
				for _, e := range batch {
					equal(f, e.ID, batch[1].ID, "ID of a job of the batch")
				}
				equal(f, len(f.list(pawl.Filter{})), 2, "jobs")
				f.keyIsOf(batch[1].ID, "after the batch")
			}),
		newTest("batch, several keys", "Each key has its own job, also within a batch.", func(f *fixture) {
			var batch []*pawl.Envelope
			for i := range 300 {
				batch = append(batch, newcomer(fmt.Sprint(i), unique(fmt.Sprint(i%100)), answer(answers[i/100].Conflict)))
			}
			existing, reject, replace := batch[:100], batch[100:200], batch[200:]
			f.is(f.try(batch...), pawl.ErrConflict, "enqueue")
			equal(f, len(f.list(pawl.Filter{})), 0, "jobs after the refusal")
			f.enqueue(slices.Concat(existing, replace)...)
			f.is(f.try(reject...), pawl.ErrConflict, "enqueue")
			for i, e := range replace {
				f.stored(e, "a job")
				equal(f, e.ID, existing[i].ID, "ID")
			}
			equal(f, len(f.list(pawl.Filter{})), len(replace), "jobs")
		}),
		newTest("many at once",
			"When several callers enqueue one key at the same time, one job is stored, and the other callers get their "+
				"answer.", func(f *fixture) {
				const callers = 16
				for _, a := range answers {
					f.fresh(Settings{})
					done, results := make([]pawl.Enqueued, callers), make(chan error, callers)
					for i := range done {
						go func() {
							all, err := f.put(f.q, newcomer(fmt.Sprint(i), answer(a.Conflict)))
							if err == nil {
								done[i] = all[0]
							}
							results <- err
						}()
					}
					accepted := 0
					for range done {
						if err := <-results; err == nil {
							accepted++
						} else {
							f.is(err, pawl.ErrConflict, a.name)
						}
					}
					left := f.list(pawl.Filter{})
					equal(f, len(left), 1, "jobs, "+a.name)
					equal(f, accepted == callers, a.Conflict != pawl.Reject, "all were accepted")
					existing, same := 0, 0
					for _, e := range done {
						if e.Existing {
							existing++
						}
						if e.ID == left[0].ID {
							same++
						}
					}
					equal(f, same, accepted, "jobs with the ID of the one that is there")
					equal(f, existing == callers-1, a.Conflict == pawl.UseExisting, "all but one exist already")
				}
			}),
		newTest("ten enqueues of each of a thousand keys",
			"However often a key is enqueued, it has one job.", func(f *fixture) {
				const keys, rounds = 1000, 10
				ids := make(map[string]pawl.ID, keys)
				for round := range rounds {
					batch := newBatch(keys)
					for i, e := range batch {
						e.UniqueKey = fmt.Sprint((i*7 + round) % keys)
					}
					done := f.enqueue(batch...)
					for i, e := range batch {
						equal(f, done[i].Existing, round > 0, "Existing")
						if round == 0 {
							ids[e.UniqueKey] = e.ID
						}
						equal(f, e.ID, ids[e.UniqueKey], "ID of the job of key "+e.UniqueKey)
					}
				}
				equal(f, len(f.list(pawl.Filter{})), keys, "jobs")
				f.leases(keys)
			}),
	)
}
