package admin

import (
	"context"
	"io"
	"iter"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// The calls of a file: looks work on whatever is open, changes open it to write.

func (f *file) Stats(ctx context.Context) (s Stats, err error) {
	err = f.look(func(l looker) error {
		s.Stats, err = l.Stats(ctx)
		return err
	})
	return s, err
}

func (f *file) List(ctx context.Context, q Query) (page Page, err error) {
	err = f.look(func(l looker) error {
		page, err = listPage(ctx, l, q)
		return err
	})
	return page, err
}

func (f *file) Job(ctx context.Context, id pawl.ID) (e *pawl.Envelope, err error) {
	err = f.look(func(l looker) error {
		e, err = l.Job(ctx, id)
		return err
	})
	return e, err
}

func (f *file) FindIDs(ctx context.Context, part string) (ids []pawl.ID, err error) {
	err = f.look(func(l looker) error {
		ids, err = l.FindIDs(ctx, part, MaxFound)
		return err
	})
	return ids, err
}

func (f *file) Do(ctx context.Context, a Action, ids ...pawl.ID) (results []error, err error) {
	if a.DryRun {
		err = f.look(func(l looker) error {
			results, err = dryRun(ctx, l, a, ids)
			return err
		})
		return results, err
	}
	err = f.change(func(l local) error {
		results, err = l.Do(ctx, a, ids...)
		return err
	})
	return results, err
}

func (f *file) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) error {
	return f.change(func(l local) error { return l.Enqueue(ctx, jobs...) })
}

func (f *file) Pause(ctx context.Context, queue string) error {
	return f.change(func(l local) error { return l.Pause(ctx, queue) })
}

func (f *file) Resume(ctx context.Context, queue string) error {
	return f.change(func(l local) error { return l.Resume(ctx, queue) })
}

func (f *file) Reap(ctx context.Context) (n int, err error) {
	err = f.change(func(l local) error {
		n, err = l.Reap(ctx)
		return err
	})
	if err != nil {
		return n, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, f.took = n+f.took, 0
	return n, nil
}

func (f *file) Effects(ctx context.Context, after string) (effects []bolt.Effect, next string, err error) {
	err = f.look(func(l looker) error {
		effects, next, err = l.Effects(ctx, after, effectsPage)
		return err
	})
	return effects, next, err
}

func (f *file) Restore(ctx context.Context, jobs []*pawl.Envelope, effects []bolt.Effect) error {
	return f.change(func(l local) error { return l.Restore(ctx, jobs, effects) })
}

func (f *file) Check(ctx context.Context) error {
	return f.look(func(l looker) error { return l.Check(ctx) })
}

func (f *file) Backup(ctx context.Context, w io.Writer) error {
	return f.look(func(l looker) error { return backup(ctx, l, w) })
}

func (f *file) Events(context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) { yield(Event{}, ErrNotLive) }
}
