package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/group"
	"github.com/gopawl/pawl/internal/torture/harness"
)

// Groups kills each transition of the members of a group.
var Groups = &harness.Family{
	Name:  "groups",
	Goals: "R2",
	Method: "SIGKILL before, amid, or after the commit of each transition of a group (members that end, late members, " +
		"retries and deletes of dead ones, the close, its callbacks), which has 10 000 members in the tries of a night; " +
		"its counts equal a walk, each callback is there once, and its handler takes effect once",
	Unit: "kills",
	PR:   killsOfGroups, Nightly: 20_000, Share: 25,
	Missing: missingSupervision,
	Prepare: func(env *harness.Env) (func(*harness.Try) error, error) {
		members := 200
		if env.Goal > killsOfGroups {
			members = 10_000
		}
		return func(t *harness.Try) error { return killGroup(t, members) }, nil
	},
}

const killsOfGroups = 200

func init() { harness.Role("faults-group", groupRole) }

const (
	groupName = "g"
	callbacks = "callbacks" // the queue of its callbacks

	// effects is the bucket of the app in which the handler of a callback counts its effects by kind.
	effects = "effects"

	// Files of these names do not exist. A child looks for them around each transition.
	beginName, endName = "begin", "end"
)

// effect is what a transition does to the counts of a group.
type effect struct{ pending, succeeded, dead, removed int }

func (e effect) of(s group.Status) group.Status {
	s.Pending, s.Succeeded, s.Dead, s.Removed = s.Pending+e.pending, s.Succeeded+e.succeeded, s.Dead+e.dead, s.Removed+e.removed
	s.Total = s.Pending + s.Succeeded + s.Dead + s.Removed
	return s
}

// killGroup makes a group, and kills a process in each of its transitions until all members and callbacks have ended.
func killGroup(t *harness.Try, members int) error {
	g := &groupTry{Try: t, path: filepath.Join(t.Dir, queueName), members: members}
	if err := g.begin(); err != nil {
		return err
	}
	for {
		verb := g.verb()
		if verb == "" {
			t.Count(0)
			return g.end()
		}
		if err := g.transition(verb); err != nil {
			return fmt.Errorf("%s, after %+v: %w", verb, g.before, err)
		}
		t.Count(1)
	}
}

// groupTry is one group.
type groupTry struct {
	*harness.Try
	path    string
	members int
	before  group.Status
	late    int // members that were added after the first ones
	ran     int // callbacks that have completed
}

// begin stores the group and its first members.
func (g *groupTry) begin() error {
	return withQueue(g.path, func(q *bolt.Queue) error {
		if err := group.Make(g.Ctx, q, group.Group{
			Name:    groupName,
			Done:    &pawl.Envelope{Kind: "done", Queue: callbacks, Retain: retained},
			Success: &pawl.Envelope{Kind: "success", Queue: callbacks, Retain: retained},
		}); err != nil {
			return err
		}
		for left := g.members; left > 0; left -= pawl.MaxBatchJobs {
			if _, err := q.Enqueue(g.Ctx, newMembers(min(left, pawl.MaxBatchJobs))...); err != nil {
				return err
			}
		}
		return g.look(q)
	})
}

const retained = 1000 * time.Hour

// withQueue opens the file, and closes it after use.
func withQueue(path string, use func(*bolt.Queue) error) error {
	q, err := bolt.Open(path, options())
	if err != nil {
		return err
	}
	return errors.Join(use(q), q.Close())
}

func newMembers(n int) []*pawl.Envelope {
	jobs := make([]*pawl.Envelope, n)
	for i := range jobs {
		jobs[i] = &pawl.Envelope{Kind: "k", Group: groupName}
	}
	return jobs
}

// verb draws the next transition, "" after the last one.
func (g *groupTry) verb() string {
	s := g.before
	switch n := g.Rand.IntN(16); {
	case !s.Closed && (s.Pending == 0 || n == 0):
		return "close"
	case s.Pending > 0 && n == 1 && g.late < 50:
		return "late"
	case s.Dead > 0 && (s.Pending == 0 || n == 2):
		if g.Seed%2 == 0 && n%4 == 2 {
			return "delete"
		}
		return "retry"
	case s.Pending > 0:
		return "settle"
	case g.ran < g.due():
		return "callback"
	}
	return ""
}

// due is the number of callbacks that the group has enqueued.
func (g *groupTry) due() (n int) {
	for _, c := range []group.Callback{g.before.Done, g.before.Success} {
		if c.Enqueued {
			n++
		}
	}
	return n
}

// transition makes a process carry out one transition, kills the process within it, and compares the file with the
// possible outcomes.
func (g *groupTry) transition(verb string) error {
	p := &killPoint{at: g.Rand.IntN(5)}
	r, err := supervise(g.Ctx, g.Dir, []string{"newfstatat", "pwrite64", "write", "ftruncate", "fsync", "fdatasync"}, p.plan, "faults-group", g.path, verb, g.Rand.Uint64(), max(2, g.members/50))
	if err != nil {
		return err
	}
	if r.stderr != "" || !p.killed {
		return fmt.Errorf("the process ended with %v and said: %s", r.ended, r.stderr)
	}
	var e effect
	done := false
	for _, line := range r.lines {
		if line == "done" {
			done = true
		} else if _, err := fmt.Sscan(line, &e.pending, &e.succeeded, &e.dead, &e.removed); err != nil {
			return fmt.Errorf("the child said %q: %w", line, err)
		}
	}
	before, ran := g.before, g.ran
	return withQueue(g.path, func(q *bolt.Queue) error {
		if err := errors.Join(q.Check(g.Ctx), g.look(q)); err != nil {
			return err
		}
		is, after := counts(g.before), counts(e.of(before))
		happened := is == after && (verb != "close" || g.before.Closed) && (verb != "callback" || g.ran > ran)
		if !happened && (done || is != counts(before)) {
			return fmt.Errorf("the counts are %v, and not %v (acknowledged: %v)", is, after, done)
		}
		if happened && verb == "late" {
			g.late += e.pending
		}
		return nil
	})
}

// killPoint is where a process is killed in its transition.
type killPoint struct {
	at     int // 0 before the pages are written, 1 before their sync, 2 before the meta page, 3 before its sync, 4 after the answer
	begun  bool
	syncs  int
	killed bool
}

func (p *killPoint) plan(_ int, c call) fault {
	write := c.kind == "pwrite64" || c.kind == "write" || c.kind == "ftruncate"
	switch {
	case c.file == beginName:
		p.begun = true
	case !p.begun:
	case c.file == endName,
		write && (p.at == 0 || p.at == 2 && p.syncs == 1),
		isSync(c) && (p.at == 1 && p.syncs == 0 || p.at == 3 && p.syncs == 1):
		p.killed = true
		return fault{kill: true}
	case isSync(c):
		p.syncs++
	}
	return fault{}
}

// counts are the counts of a group.
func counts(s group.Status) [5]int { return [5]int{s.Total, s.Pending, s.Succeeded, s.Dead, s.Removed} }

// look reads the group, and compares it with a walk over all jobs and with its earlier state.
func (g *groupTry) look(q *bolt.Queue) error {
	s, err := group.Get(g.Ctx, q, groupName)
	if err != nil {
		return err
	}
	pending, dead := 0, 0
	there, completed := make(map[string]int), make(map[string]int)
	g.ran = 0
	for e, err := range q.Jobs(g.Ctx, pawl.Filter{}) {
		switch {
		case err != nil:
			return err
		case e.Queue == callbacks:
			there[e.Kind]++
			if e.State == pawl.Completed {
				completed[e.Kind]++
				g.ran++
			}
		case e.State == pawl.Dead:
			dead++
		default:
			pending++
		}
	}
	for _, kind := range []string{"done", "success"} {
		if n, err := effectsOf(g.Ctx, q, kind); err != nil || n != completed[kind] {
			return cmp.Or(err, fmt.Errorf("the handler of callback %q took effect %d times, and %d of its jobs have completed", kind, n, completed[kind]))
		}
	}
	ended := s.Closed && s.Pending == 0
	switch {
	case s.Pending != pending, s.Dead != dead, s.Total != s.Pending+s.Succeeded+s.Dead+s.Removed:
		return fmt.Errorf("the counts are %v, and a walk finds %d pending and %d dead members", counts(s), pending, dead)
	case there["done"] > 1, there["success"] > 1:
		return fmt.Errorf("there are %v callbacks", there)
	case s.Done.Enqueued != (there["done"] == 1), s.Success.Enqueued != (there["success"] == 1):
		return fmt.Errorf("the group says %v and %v of its callbacks, and there are %v", s.Done, s.Success, there)
	case g.before.Done.Enqueued && !s.Done.Enqueued, g.before.Success.Enqueued && !s.Success.Enqueued:
		return errors.New("a callback is gone")
	case ended && !s.Done.Enqueued, ended && s.Dead+s.Removed == 0 && !s.Success.Enqueued:
		return errors.New("the group has ended without a callback")
	case !ended && !g.before.Done.Enqueued && s.Done.Enqueued, s.Dead+s.Removed > 0 && s.Success.Enqueued:
		return errors.New("a callback was enqueued early")
	}
	g.before = s
	return nil
}

// end requires that everything has happened once.
func (g *groupTry) end() error {
	s, want := g.before, 2
	if s.Removed > 0 {
		want = 1
	}
	if s.Pending+s.Dead > 0 || s.Total != g.members+g.late || g.ran != want {
		return fmt.Errorf("the group ended with %+v and %d callbacks, after %d late members", s, g.ran, g.late)
	}
	return nil
}

// groupRole makes one transition. It prints the effect before the transition, and "done" after the answer.
func groupRole(args harness.Args) error {
	defer harness.EndAfter(childTimeout)()
	q, err := bolt.Open(args[0], options())
	if err != nil {
		return err
	}
	u := newUser(args.Uint(2))
	e, do, err := transitionOf(q, args[1], 1+u.rand.IntN(args.Int(3)))
	if err != nil {
		return err
	}
	harness.Emit(e.pending, e.succeeded, e.dead, e.removed)
	exists(filepath.Join(filepath.Dir(args[0]), beginName))
	if err := do(); err != nil {
		return err
	}
	harness.Emit("done")
	exists(filepath.Join(filepath.Dir(args[0]), endName))
	return errors.New("it was not killed")
}

// transitionOf prepares a transition of up to n members.
func transitionOf(q *bolt.Queue, verb string, n int) (e effect, do func() error, err error) {
	switch verb {
	case "close":
		return e, func() error { return group.Close(background, q, groupName) }, nil
	case "late":
		n = 1 + n%3 // the group must end eventually
		e.pending = n
		return e, func() error { _, err := q.Enqueue(background, newMembers(n)...); return err }, nil
	case "retry", "delete":
		var dead []pawl.ID
		for job, err := range q.Jobs(background, pawl.Filter{Group: groupName, State: pawl.Dead}) {
			if err != nil {
				return e, nil, err
			}
			if dead = append(dead, job.ID); len(dead) == n {
				break
			}
		}
		change := pawl.Change{Verb: pawl.VerbRetry}
		if e.dead = -len(dead); verb == "retry" {
			e.pending = len(dead)
		} else {
			e.removed, change.Verb = len(dead), pawl.VerbDelete
		}
		return e, func() error {
			errs, err := q.Change(background, change, dead...)
			return cmp.Or(err, errors.Join(errs...))
		}, nil
	}
	request := pawl.Request{Max: n, Wait: pawl.WaitNot}
	if verb == "callback" {
		request.Queues, request.Max = []string{callbacks}, 1
	}
	leases, err := q.Fetch(background, request)
	if err != nil {
		return e, nil, err
	}
	if verb == "callback" {
		if len(leases) == 0 {
			return e, nil, errors.New("no callback is ready")
		}
		return e, func() error { return runCallback(q, leases[0]) }, nil
	}
	each := make([]pawl.Settlement, len(leases))
	for i, l := range leases {
		switch {
		case l.ID[15]%8 == 0 && l.Failures == 0:
			each[i] = l.Abandon(pawl.ReasonPermanent, errors.New("no"))
			e.pending, e.dead = e.pending-1, e.dead+1
		default:
			each[i] = l.Ack()
			e.pending, e.succeeded = e.pending-1, e.succeeded+1
		}
	}
	return e, func() error { return q.Settle(background, each...) }, nil
}

// runCallback takes effect once, in the transaction of its ack.
func runCallback(q *bolt.Queue, l *pawl.Lease) error {
	return q.Update(background, func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte(effects))
		if err != nil {
			return err
		}
		kind := []byte(l.Kind)
		return errors.Join(b.Put(kind, append(slices.Clone(b.Get(kind)), 'x')), q.AckTx(tx, l))
	})
}

// effectsOf counts the effects of a callback.
func effectsOf(ctx context.Context, q *bolt.Queue, kind string) (n int, err error) {
	err = q.View(ctx, func(tx *bbolt.Tx) error {
		if b := tx.Bucket([]byte(effects)); b != nil {
			n = len(b.Get([]byte(kind)))
		}
		return nil
	})
	return n, err
}
