package queuetest

import (
	"errors"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// abilitiesOf returns what a queue declares.
func abilitiesOf(q pawl.Queue) pawl.Ability {
	if able, ok := q.(driver.Able); ok {
		return able.Abilities()
	}
	return 0
}

// everyAbility is all abilities there are.
const everyAbility = driver.Settings | pawl.Synced | pawl.Shared | pawl.Results | pawl.Groups | pawl.Cursors | pawl.RunNotes | pawl.OrderedKeys | pawl.Prerequisites | pawl.FairKeys | pawl.BoundedQueues | pawl.SharedPools

// setting is what a job sets of an ability.
type setting struct {
	ability pawl.Ability
	set     func(e *pawl.Envelope)
	unset   func(e *pawl.Envelope)
}

var settings = []setting{
	{pawl.UniqueKeys, unique("key"), func(e *pawl.Envelope) { e.UniqueKey, e.UniqueIn = "", nil }},
	{pawl.IdempotencyKeys, effect("key"), func(e *pawl.Envelope) { e.IdempotencyKey, e.IdempotencyTTL = "", 0 }},
	{pawl.Priorities, priority(1), priority(0)},
	{pawl.Deadlines, within(time.Hour), func(e *pawl.Envelope) { e.Deadline = time.Time{} }},
	{pawl.Retention, kept(time.Hour), kept(0)},
	{pawl.LimitKeys, key("key"), key("")},
	{pawl.Groups, inGroup(walkGroups[0]), inGroup("")},
	{pawl.Prerequisites, afterJobs(pawl.ID{1}), afterJobs()},
	{pawl.Cursors, cursor("1"), func(e *pawl.Envelope) { e.Cursor = nil }},
}

// lacks requires that an error refuses what a queue without an ability cannot do.
func (f *fixture) lacks(err error, a pawl.Ability, doing string) {
	f.Helper()
	f.is(err, pawl.ErrInvalid, doing)
	f.is(err, pawl.ErrUnsupported, doing)
	var refused *pawl.InvalidError
	if !errors.As(err, &refused) || refused.Lacks != a {
		f.Fatalf("%s: error %v, which does not say that the queue lacks %v", doing, err, a)
	}
}

// beyond ends a case that uses besides its subject what the queue lacks: the queue refuses it, as
// the group "abilities" proves.
func (f *fixture) beyond(err error) {
	f.Helper()
	var refused *pawl.InvalidError
	if errors.As(err, &refused) && refused.Lacks != 0 && refused.Lacks&abilitiesOf(f.q) == 0 {
		f.Skipf("the case also needs %v", refused.Lacks)
	}
}

// plainly requires that there is no error. A queue that lacks an ability has no excuse here.
func (f *fixture) plainly(err error, doing string) {
	f.Helper()
	if err != nil {
		f.Fatalf("%s, which needs no ability: %v", doing, err)
	}
}

// storing is a call other than Enqueue that stores a job. Prepare returns the call.
type storing struct {
	name    string
	needs   needs
	prepare func(f *fixture) func(e *pawl.Envelope) error
}

var storings = []storing{
	{"a restore", 0, func(f *fixture) func(e *pawl.Envelope) error {
		q := f.restorer()
		return func(e *pawl.Envelope) error {
			e.State = pawl.Ready
			return q.Restore(f.Context(), []*pawl.Envelope{{Kind: "other", State: pawl.Ready}, e}, nil)
		}
	}},
	{"a transfer", 0, func(f *fixture) func(e *pawl.Envelope) error {
		q, id := f.transferer(), f.held(pawl.Dead)
		return func(e *pawl.Envelope) error {
			e.ID = id
			return q.Transfer(f.Context(), e, nil)
		}
	}},
	{"a mutation", mutating, func(f *fixture) func(e *pawl.Envelope) error {
		q := f.mutator()
		return func(e *pawl.Envelope) error {
			enqueue := func(ops driver.Ops) error { return enqueueIn(ops, &pawl.Envelope{Kind: "other"}, e) }
			return q.Mutate(f.Context(), mutation{enqueue, put("row")}, 0)
		}
	}},
}

// plain proves that a job without any setting can be stored.
func (s storing) plain() test {
	return newTest("accepts a plain job in "+s.name, "A job that needs no ability is accepted, whatever the queue lacks.", func(f *fixture) {
		store := s.prepare(f)
		f.plainly(store(&pawl.Envelope{Kind: "k"}), s.name)
		equal(f, len(f.list(pawl.Filter{Kind: "k", State: pawl.Ready})), 1, "jobs")
	}).needing(s.needs)
}

// refused proves that the call refuses what Enqueue refuses.
func (s storing) refused(by setting) test {
	t := newTest("refuses "+by.ability.String()+" in "+s.name,
		"Whatever stores a job refuses one that needs an absent ability, as Enqueue does, and changes nothing.", func(f *fixture) {
			store := s.prepare(f)
			unchanged := f.unchanged()
			e := &pawl.Envelope{Kind: "k"}
			by.set(e)
			f.lacks(store(e), by.ability, s.name)
			unchanged("after the refusal")
			if s.needs&mutating != 0 {
				f.rowsAre("", "after the refusal")
			}
		}).needing(s.needs)
	t.misses = by.ability
	return t
}

// accepted proves that an ability is there, as far as one call can: the groups prove the rest.
func (s setting) accepted() test {
	t := newTest("accepts "+s.ability.String(), "A queue that declares an ability accepts what uses it.", func(f *fixture) {
		if s.ability == pawl.Groups {
			f.makeWalkGroups()
		}
		if s.ability == pawl.Prerequisites {
			f.enqueue(&pawl.Envelope{ID: pawl.ID{1}, Kind: "k"})
		}
		e := f.add(s.set)
		f.stored(e, "the job")
	})
	t.requires = s.ability
	return t
}

// refused proves that an ability is absent.
func (s setting) refused() test {
	t := newTest("refuses "+s.ability.String(),
		"A queue without an ability refuses a job that needs it, also within a batch: nothing is stored, the envelopes "+
			"stay unchanged, and the error names the ability.", func(f *fixture) {
			for _, n := range []int{1, 3} {
				batch := newBatch(n)
				s.set(batch[n-1])
				f.lacks(f.try(batch...), s.ability, "enqueue")
				equal(f, len(f.fetch(9)), 0, "jobs to fetch")
				equal(f, len(f.list(pawl.Filter{})), 0, "jobs")
			}
		})
	t.misses = s.ability
	return t
}

func abilityTests() []test {
	tests := []test{
		newTest("are declared",
			"A queue declares its abilities. pawl.Require accepts each of them, and refuses each other one by its name.", func(f *fixture) {
				has := abilitiesOf(f.q)
				equal(f, has&^everyAbility, 0, "abilities that do not exist")
				for a := pawl.Ability(1); a <= everyAbility; a <<= 1 {
					if err := pawl.Require(f.q, a); has&a != 0 {
						f.ok(err, "require "+a.String())
					} else {
						f.lacks(err, a, "require "+a.String())
					}
				}
			}),
		newTest("fit the configuration",
			"A queue is shared if another client of it can be opened. Synced changes are there after a restart.", func(f *fixture) {
				has := abilitiesOf(f.q)
				equal(f, has&pawl.Shared != 0, f.config.Another != nil, "the queue is shared")
				equal(f, has&pawl.Synced != 0 && !f.config.Persists, false, "the queue is synced and does not persist")
			}),
	}
	tests = append(tests, newTest("accepts plain calls",
		"A queue accepts a job and a fetch that need no ability, whatever it lacks.", func(f *fixture) {
			policy := pawl.Fixed(time.Second)
			jobs := []*pawl.Envelope{
				{Kind: "k"},
				{Kind: "k", Queue: "other", Payload: []byte("payload"), MaxRetries: 3, Headers: map[string]string{"h": "v"}},
				{Kind: "k", Timeout: time.Minute, Policy: &policy},
			}
			for _, e := range jobs {
				f.plainly(f.try(e), "a job")
			}
			f.plainly(f.try(&pawl.Envelope{Kind: "k", Delay: time.Hour}), "a job with a delay")
			leases, err := f.q.Fetch(f.Context(), pawl.Request{
				Queues: []string{pawl.DefaultQueue, "other"}, Kinds: []string{"k"}, Weights: map[string]int{"other": 2}, Max: 9, Ahead: 1, Wait: pawl.WaitNot,
			})
			f.plainly(err, "a fetch")
			equal(f, len(leases), len(jobs), "jobs to fetch")
			f.plainly(f.q.Settle(f.Context(), leases[0].Ack(), leases[1].Nack(0, errBoom), leases[2].Release()), "a settlement")
		}))
	for _, s := range settings {
		tests = append(tests, s.accepted(), s.refused())
	}
	for _, s := range storings {
		tests = append(tests, s.plain())
		for _, by := range settings {
			if s.name != "a transfer" || by.ability != pawl.UniqueKeys { // which no transfer accepts
				tests = append(tests, s.refused(by))
			}
		}
	}
	costs := newTest("refuses a cost", "A queue without limits refuses a job with a cost.", func(f *fixture) {
		f.lacks(f.try(&pawl.Envelope{Kind: "k"}, &pawl.Envelope{Kind: "k", Cost: 2}), pawl.LimitKeys, "enqueue")
		equal(f, len(f.list(pawl.Filter{})), 0, "jobs")
		f.plainly(f.try(&pawl.Envelope{Kind: "k", Cost: 1}), "a job of cost 1")
	})
	costs.misses = pawl.LimitKeys
	weights := newTest("refuses a weight", "A queue whose keys take no turns refuses a job with a weight.", func(f *fixture) {
		f.lacks(f.try(&pawl.Envelope{Kind: "k"}, &pawl.Envelope{Kind: "k", Weight: 2}), pawl.FairKeys, "enqueue")
		equal(f, len(f.list(pawl.Filter{})), 0, "jobs")
		f.plainly(f.try(&pawl.Envelope{Kind: "k", Weight: 1}), "a job of weight 1")
	})
	weights.misses = pawl.FairKeys
	throttles := newTest("refuses a throttle", "A queue without limits refuses a throttle. The job stays leased.", func(f *fixture) {
		f.add()
		l := f.lease()
		for _, rest := range []pawl.Rest{pawl.ThisKey, pawl.ThisQueue} {
			f.lacks(f.q.Settle(f.Context(), l.Throttle(time.Minute, rest)), pawl.LimitKeys, "throttle")
		}
		f.ack(l)
	})
	throttles.misses = pawl.LimitKeys
	effects := newTest("refuses effects in a restore",
		"A queue without idempotency keys refuses to restore effects, and the jobs that come with them.", func(f *fixture) {
			q := f.restorer()
			effect := driver.Effect{Kind: "k", Key: "x", Until: time.Now().Add(time.Hour)}
			err := q.Restore(f.Context(), []*pawl.Envelope{{Kind: "k", State: pawl.Ready}}, []driver.Effect{effect})
			f.lacks(err, pawl.IdempotencyKeys, "restore")
			equal(f, len(f.list(pawl.Filter{})), 0, "jobs")
		})
	effects.misses = pawl.IdempotencyKeys
	tests = append(tests, costs, weights, throttles, effects)
	shares := newTest("refuses "+pawl.RetryShares.String(),
		"A queue without retry shares refuses a fetch with one, and leases nothing.", func(f *fixture) {
			id := f.add().ID
			_, err := f.q.Fetch(f.Context(), pawl.Request{Max: 1, RetryShare: 0.5})
			f.lacks(err, pawl.RetryShares, "fetch")
			equal(f, f.must(id).State, pawl.Ready, "state")
		})
	shares.misses = pawl.RetryShares
	return append(tests, shares, refusedResult())
}
