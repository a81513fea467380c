// Package group counts jobs that belong together, and enqueues a job once all of them have ended.
//
// Make a group, enqueue its members with [pawl.InGroup], and close it:
//
//	err := group.Make(ctx, q, group.Group{Name: "import/7", Done: summary})
//	_, err = ImportRow.Enqueue(ctx, q, row, pawl.InGroup("import/7"))
//	err = group.Close(ctx, q, "import/7")
//
// The queue updates the counts of a group in the transaction that moves a member, so after every commit
// they equal a count of the jobs. The commit in which the last member ends also enqueues the callback. It
// does so only once, whatever crashes.
package group

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// DefaultRetain is how long a group is kept after its end, unless [Group.Retain] says otherwise.
const DefaultRetain = 24 * time.Hour

// Group describes the group to make.
type Group struct {
	Name string // 1 to 255 bytes

	// Done is enqueued once, when the group is closed and all members have ended. Nil means nothing.
	Done *pawl.Envelope

	// Success is enqueued once, when the group is closed and all members have succeeded: at the same
	// time as Done, or later, if dead members are retried and succeed. Nil means nothing.
	Success *pawl.Envelope

	// Retain is how long the group is kept after its end; 0 means [DefaultRetain]. A group with dead
	// members is kept until they are gone.
	Retain time.Duration
}

// Queue is a queue with the ability [pawl.Groups].
type Queue interface {
	// ViewRows and Mutate read and write rows; see package driver.
	ViewRows(ctx context.Context, fn func(driver.Reader) error) error
	Mutate(ctx context.Context, m driver.Mutation, size int) error
}

// Make stores a new group without members. The jobs in it must have room in a commit of the queue: the
// payload of each has at most [pawl.MaxGroupCallback] bytes.
//
// Errors: [pawl.ErrInvalid], also for a callback with a delay, a unique key, or a group;
// [pawl.ErrUnsupported] for a queue without groups; [pawl.ErrConflict] if there is a group of that name;
// and those of the queue.
func Make(ctx context.Context, q Queue, g Group) error {
	m, err := newMake(&g)
	if err == nil {
		err = supports(q)
	}
	if err == nil {
		err = q.Mutate(ctx, m, m.size)
	}
	if err != nil {
		return fmt.Errorf("make group: %w", err)
	}
	return nil
}

// Close lets a group end once no member is pending. A group without members ends at once. After Close,
// only a running member can rely on adding members, because a group that has ended takes no more.
// Closing a group again does nothing, except after a repair of the file: then it enqueues what is due.
//
// Errors: [pawl.ErrNotFound] if there is no such group, and those of the queue.
func Close(ctx context.Context, q Queue, name string) error {
	if err := q.Mutate(ctx, &closing{name: name}, rowBytes); err != nil {
		return fmt.Errorf("close group: %w", err)
	}
	return nil
}

// Status is a group and its counts.
type Status struct {
	Name    string
	Damaged bool // its row cannot be read, so the rest is zero; only in lists
	Closed  bool
	Created time.Time // zero if a restore stored members and not the group itself
	Ended   time.Time // when the last member ended; zero while one is pending, and before Close

	// Where the members stand. Total is the sum of the others.
	Total     int
	Pending   int // not ended
	Succeeded int
	Dead      int
	Removed   int // deleted while they were dead, moved elsewhere, or replaced by jobs that are no members

	Done, Success Callback
}

// Callback is a callback of a group.
type Callback struct {
	ID       pawl.ID // of its job; zero if the group has no such callback
	Enqueued bool
}

// Get returns a group. The error is [pawl.ErrNotFound] if there is no such group.
func Get(ctx context.Context, q Queue, name string) (s Status, err error) {
	err = q.ViewRows(ctx, func(r driver.Reader) error {
		row, err := driver.ReadGroup(r, name)
		if err == nil && row == nil {
			err = driver.NoGroup(name)
		}
		if err == nil {
			s = statusOf(name, row)
		}
		return err
	})
	return s, err
}

// MaxListed is the most groups that one call of [List] returns.
const MaxListed = 1000

// List returns up to max groups whose names follow after, in the order of their names. Use "" for the
// first ones. A max that is not between 1 and [MaxListed] gives [pawl.ErrInvalid]. A damaged group has
// only its name and Damaged.
func List(ctx context.Context, q Queue, after string, max int) (list []Status, err error) {
	if max < 1 || max > MaxListed {
		return nil, &pawl.InvalidError{Field: "max", Reason: fmt.Sprintf("%d is not between 1 and %d", max, MaxListed)}
	}
	err = q.ViewRows(ctx, func(r driver.Reader) error {
		list = nil
		return driver.EachGroup(r, after, func(name string, row *driver.GroupRow, damage error) bool {
			s := Status{Name: name, Damaged: damage != nil}
			if damage == nil {
				s = statusOf(name, row)
			}
			list = append(list, s)
			return len(list) < max
		})
	})
	return list, err
}

// Members is a queue whose jobs can be listed and changed.
type Members interface {
	Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error]
	Change(ctx context.Context, c pawl.Change, ids ...pawl.ID) ([]error, error)
}

// Cancel cancels the pending members of a group, and returns how many. It reads all jobs of the queue, and
// cancels up to [pawl.MaxBatchJobs] in one transition. For a running member, it ends the context of the
// handler, and the member ends when the handler returns.
func Cancel(ctx context.Context, q Members, name string) (cancelled int, err error) {
	if name == "" {
		return 0, &pawl.InvalidError{Field: "group", Reason: "it is empty; give its name"}
	}
	var ids []pawl.ID
	for e, err := range q.Jobs(ctx, pawl.Filter{Group: name}) {
		if e == nil {
			return 0, fmt.Errorf("cancel group %q: %w", name, err)
		}
		if err == nil && driver.StandingOf(e.State) == driver.MemberPending && !e.Cancelled {
			ids = append(ids, e.ID)
		}
	}
	for len(ids) > 0 {
		n := min(len(ids), pawl.MaxBatchJobs)
		errs, err := q.Change(ctx, pawl.Change{Verb: pawl.VerbCancel}, ids[:n]...)
		if err != nil {
			return cancelled, fmt.Errorf("cancel group %q: %w", name, err)
		}
		for _, e := range errs { // a member that has ended in the meantime needs no cancel
			if e == nil {
				cancelled++
			}
		}
		ids = ids[n:]
	}
	return cancelled, nil
}

func statusOf(name string, row *driver.GroupRow) Status {
	callback := func(which int) Callback {
		f := row.Fired[which]
		return Callback{ID: f.Job, Enqueued: !f.Job.IsZero() && !f.Waits}
	}
	return Status{
		Name: name, Closed: row.Closed, Created: timeOf(row.Created), Ended: timeOf(row.Ended),
		Total: row.Total, Pending: row.Pending, Succeeded: row.Succeeded, Dead: row.Dead, Removed: row.Removed,
		Done: callback(driver.OnDone), Success: callback(driver.OnSuccess),
	}
}

func timeOf(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

// supports refuses a queue that declares abilities without [pawl.Groups].
func supports(q Queue) error {
	if able, ok := q.(driver.Able); ok && able.Abilities()&pawl.Groups == 0 {
		return &pawl.InvalidError{Field: "group", Reason: "the queue has no groups; see pawl.Require", Lacks: pawl.Groups}
	}
	return nil
}
