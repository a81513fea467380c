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
const everyAbility = driver.Settings | pawl.Synced | pawl.Shared

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

// accepted proves that an ability is there, as far as one call can: the groups prove the rest.
func (s setting) accepted() test {
	t := newTest("accepts "+s.ability.String(), "A queue that declares an ability accepts what uses it.", func(f *fixture) {
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
				given := make([]*pawl.Envelope, n)
				for i, e := range batch {
					given[i] = copied(e)
				}
				f.lacks(f.q.Enqueue(f.Context(), batch...), s.ability, "enqueue")
				for i, e := range batch {
					f.same(e, given[i], "the envelope")
				}
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
	for _, s := range settings {
		tests = append(tests, s.accepted(), s.refused())
	}
	shares := newTest("refuses "+pawl.RetryShares.String(),
		"A queue without retry shares refuses a fetch with one, and leases nothing.", func(f *fixture) {
			id := f.add().ID
			_, err := f.q.Fetch(f.Context(), pawl.Request{Max: 1, RetryShare: 0.5})
			f.lacks(err, pawl.RetryShares, "fetch")
			equal(f, f.must(id).State, pawl.Ready, "state")
		})
	shares.misses = pawl.RetryShares
	return append(tests, shares)
}
