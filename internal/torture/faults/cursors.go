package faults

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
	"github.com/gopawl/pawl/internal/withid"
)

// Cursors kills a run of jobs with cursors and logs at each of its writes. Consecutive seeds try all.
var Cursors = &harness.Family{
	Name:  "cursors",
	Goals: "R2",
	Method: "SIGKILL at each write and sync of a run that saves cursors and stores logs and progress, and amid each write; " +
		"each job has its last acknowledged cursor, or the one that was on its way, and the lines of its log that were stored",
	Unit: "kills",
	PR:   killsOfCursors, Nightly: 20_000, Share: 15, Parallel: 4,
	Missing: missingSupervision,
	Prepare: func(env *harness.Env) (func(*harness.Try) error, error) {
		all, err := killsAtWrites(env.Ctx, cursorScript)
		return func(t *harness.Try) error { return killedCursors(t, pick(all, t.Seed)) }, err
	},
}

// cursorScript is the run of [Cursors], and killsOfCursors an upper bound of its kills.
var cursorScript = scripted{"faults-cursor", 1}

const (
	killsOfCursors = 600
	cursorJobs     = 3
	cursorRounds   = 30
)

func init() { harness.Role("faults-cursor", cursorRole) }

// cursorOf returns the n-th cursor of a job. A cursor fills a part of a page or several pages.
func cursorOf(n int) []byte {
	return bytes.Repeat(binary.BigEndian.AppendUint64(nil, uint64(n)), 1+n%5*300)
}

// cursorRole saves one cursor after the other, for some jobs in turn. After some cursors, it stores a line of the
// job's log and its progress. It prints the number of each change once the change is acknowledged. Some jobs
// change their lease.
func cursorRole(args harness.Args) error {
	defer harness.EndAfter(childTimeout)()
	u := newUser(args.Uint(1))
	q, err := bolt.Open(args[0], options())
	if err != nil {
		return err
	}
	_, jobs := u.newJobs(cursorJobs, 0, func(e *pawl.Envelope) bool { return e.Delay == 0 && e.Queue == oracle.Queues[0] })
	if err := withid.Enqueue(background, q, jobs...); err != nil {
		return err
	}
	notes := driver.NewNotes(q)
	leases, err := q.Fetch(background, pawl.Request{Queues: oracle.Queues, Max: cursorJobs, Wait: pawl.WaitNot})
	for n := 1; n <= cursorRounds && err == nil; n++ {
		at := n % len(leases)
		err = cursorRound(q, notes, leases[at], n)
		if err == nil && n%7 == 0 {
			leases[at], err = leaseAgain(q, leases[at], n)
		}
	}
	if err != nil {
		return err
	}
	return q.Close()
}

func cursorRound(q *bolt.Queue, notes *driver.Notes, l *pawl.Lease, n int) error {
	if err := q.SaveCursor(background, l, cursorOf(n)); err != nil {
		return err
	}
	harness.Emit("saved", l.ID, n)
	if n%3 != 0 {
		return nil
	}
	l.Started = start
	ctx := driver.RunContext(background, q, l, notes)
	pawl.Log(ctx).Info("line", "n", n)
	(&pawl.Job[string]{Envelope: l.Envelope, Lease: l}).Progress(int64(n), 0, "")
	if _, err := notes.Store(ctx); err != nil {
		return err
	}
	harness.Emit("stored", l.ID, n)
	return nil
}

// leaseAgain releases a job, and leases it again with its cursor, the n-th.
func leaseAgain(q *bolt.Queue, l *pawl.Lease, n int) (*pawl.Lease, error) {
	if err := q.Settle(background, l.Release()); err != nil {
		return nil, err
	}
	leases, err := q.Fetch(background, pawl.Request{Queues: oracle.Queues, Max: 1, Wait: pawl.WaitNot})
	if err != nil {
		return nil, err
	}
	if again := leases[0]; again.ID != l.ID || !bytes.Equal(again.Cursor, cursorOf(n)) {
		violate("job %s was leased again as %s, without cursor %d", l.ID, again.ID, n)
	}
	return leases[0], nil
}

// killedCursors runs the script, kills it, and compares the file with what was acknowledged.
func killedCursors(t *harness.Try, a at) error {
	return killed(t, cursorScript, a, func(lines []string, q *bolt.Queue) error {
		s, err := hearCursors(lines)
		if err == nil {
			err = q.Check(t.Ctx)
		}
		if err != nil {
			return err
		}
		found := make(map[pawl.ID]bool)
		for job, err := range q.Jobs(t.Ctx, pawl.Filter{}) {
			if err == nil {
				err = s.judge(t, q, job)
			}
			if err != nil {
				return err
			}
			found[job.ID] = true
		}
		for id := range s.saved {
			if !found[id] {
				return fmt.Errorf("job %s is lost", id)
			}
		}
		return nil
	})
}

// cursorStory is what a process has reported.
type cursorStory struct {
	saved, stored map[pawl.ID]int // the last numbers of each job
	last          int             // the last cursor of any job
}

func hearCursors(lines []string) (s cursorStory, err error) {
	s = cursorStory{saved: make(map[pawl.ID]int), stored: make(map[pawl.ID]int)}
	for _, line := range lines {
		var what, text string
		var n int
		if _, err := fmt.Sscan(line, &what, &text, &n); err != nil {
			return s, fmt.Errorf("the child said %q", line)
		}
		id, err := pawl.ParseID(text)
		switch {
		case err != nil:
			return s, fmt.Errorf("the child said %q", line)
		case what == "saved":
			s.saved[id], s.last = n, n
		default:
			s.stored[id] = n
		}
	}
	return s, nil
}

var lineNumber = regexp.MustCompile(`msg=line n=(\d+)\n$`)

// judge requires that a job has its last cursor, or the cursor that was being saved, and the lines of its log.
func (s cursorStory) judge(t *harness.Try, q *bolt.Queue, job *pawl.Envelope) error {
	n := 0
	if len(job.Cursor) > 0 {
		n = int(binary.BigEndian.Uint64(job.Cursor))
		if !bytes.Equal(job.Cursor, cursorOf(n)) {
			return fmt.Errorf("job %s has a part of cursor %d", job.ID, n)
		}
	}
	if n != s.saved[job.ID] && n != s.last+1 {
		return fmt.Errorf("job %s has cursor %d, and %d was acknowledged, %d of all jobs", job.ID, n, s.saved[job.ID], s.last)
	}
	logs, err := driver.NotesOf(q).ReadLogs(t.Ctx, job.ID)
	if err != nil {
		return err
	}
	progress, err := driver.NotesOf(q).ReadProgress(t.Ctx, job.ID)
	if err != nil {
		return err
	}
	logged := 0
	if len(logs) > 0 {
		l := logs[len(logs)-1]
		found := lineNumber.FindStringSubmatch(l.Head + l.Tail)
		if found == nil {
			return fmt.Errorf("the log of job %s ends amid a line: %q", job.ID, l.Head+l.Tail)
		}
		logged, _ = strconv.Atoi(found[1])
	}
	if logged != s.stored[job.ID] && logged != s.last || int64(logged) != progress[job.ID].Done {
		return fmt.Errorf("job %s has logged %d and progressed to %d, and %d was acknowledged, cursor %d",
			job.ID, logged, progress[job.ID].Done, s.stored[job.ID], s.last)
	}
	return nil
}
