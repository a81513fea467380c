package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
)

// rowStore is the part of [Schedules] and of [Groups] that an [Export] reads and an [Import] writes.
type rowStore[R any] interface {
	Rows(ctx context.Context, after string) ([]R, error)
	RestoreRows(ctx context.Context, rows ...*R) error
}

// rowKind is a kind of things that have names and rows beside the jobs: schedules, or groups. R is the rows of one
// thing. An export has a line for each.
//
// The lines come before the jobs, so that what happens during the export is not lost: a tick is decided again
// in the target, and a callback that is enqueued is there as a job or waits. They are stored after the jobs, so that
// the target sees which of the jobs are alive. An import that ends early leaves them out, and the next import
// stores them.
type rowKind[R any] struct {
	one    string // such as "group"; its plural begins the paths of the operations
	of     func(Admin) rowStore[R]
	head   func(*R) (name string, form int) // form is 0 if the rows are damaged
	line   func(*exportLine) *R             // the rows in a line; nil if it is another line
	rename func(*R, func(pawl.ID) pawl.ID) error
	most   int // in one answer

	read    *operation[namedRowsRequest, namedRows[R]]
	restore *operation[restoreNamedRequest[R], nothing]
}

type namedRowsRequest struct{ After string }

// namedRows are the rows of some things, in the order of their names.
type namedRows[R any] struct{ Rows []R }

type restoreNamedRequest[R any] struct{ Rows []*R }

// defineRows adds the operations of a kind.
func defineRows[R any](k rowKind[R]) *rowKind[R] {
	k.read = define(operation[namedRowsRequest, namedRows[R]]{
		path: k.one + "s/rows", work: lists, large: always[namedRowsRequest],
		do: func(ctx context.Context, a Admin, r *namedRowsRequest) (namedRows[R], error) {
			list, err := k.of(a).Rows(ctx, r.After)
			return namedRows[R]{list}, err
		},
		check: func(r *namedRowsRequest, l *namedRows[R]) error {
			last := r.After
			for i := range l.Rows {
				name, _ := k.head(&l.Rows[i])
				if name <= last {
					return fmt.Errorf("its %ss are not in the order of their names", k.one)
				}
				last = name
			}
			return checkPage(len(l.Rows), k.most, "", "")
		},
	})
	k.restore = defineChange(k.one+"s/restore", func(ctx context.Context, a Admin, r *restoreNamedRequest[R]) error {
		if slices.Contains(r.Rows, nil) {
			return invalid(k.one+"s", "one is null")
		}
		return k.of(a).RestoreRows(ctx, r.Rows...)
	})
	return &k
}

func (k *rowKind[R]) ask(ctx context.Context, c *client, after string) ([]R, error) {
	l, err := ask(ctx, c, k.read, namedRowsRequest{after})
	return l.Rows, err
}

func (k *rowKind[R]) send(ctx context.Context, c *client, rows []*R) error {
	return send(ctx, c, k.restore, restoreNamedRequest[R]{rows})
}

// export writes the things of a queue.
func (k *rowKind[R]) export(ctx context.Context, x *exporter, write func(*R) error) error {
	for after := ""; ; {
		list, err := k.of(x.from).Rows(ctx, after)
		switch {
		case errors.As(err, new(*UnsupportedError)): // the engine keeps none
			return nil
		case err != nil || len(list) == 0:
			return err
		}
		for i := range list {
			name, form := k.head(&list[i])
			after = name
			if form == 0 {
				err = x.damage(pawl.ID{}, fmt.Errorf("%w: the row of %s %q", pawl.ErrCorrupt, k.one, name))
			} else {
				err = write(&list[i])
			}
			if err != nil {
				return err
			}
		}
	}
}

// namedLine is a thing to store, and the position of its line in the export.
type namedLine struct {
	name   string
	offset int64
}

// leaveOut returns the things that the target does not have, by their names.
func (k *rowKind[R]) leaveOut(m *importer, all []namedLine, there func(name string) (bool, error)) (left []namedLine, err error) {
	for _, l := range all {
		found, err := there(l.name)
		switch {
		case err == nil && !found:
			left = append(left, l)
		case err != nil && !errors.Is(err, pawl.ErrCorrupt):
			return nil, fmt.Errorf("look which %ss are there already: %w; nothing was stored", k.one, err)
		case !m.opts.SkipExisting:
			return nil, fmt.Errorf("line %d: %s %q: %w: the target has a %s of this name; nothing was stored; SkipExisting leaves it out",
				m.in.number(l.offset), k.one, truncate(l.name), pawl.ErrConflict, k.one)
		}
	}
	return left, nil
}

// store stores things, portion by portion, and counts them.
func (k *rowKind[R]) store(ctx context.Context, m *importer, all []namedLine, done *int64) error {
	p := portions[*R]{m: m, store: func(portion []*R) error {
		if err := k.of(m.to).RestoreRows(ctx, portion...); err != nil {
			name, _ := k.head(portion[0])
			return fmt.Errorf("%s %q and those stored with it: perhaps not stored: %w; the jobs and %d %ss were stored before",
				k.one, truncate(name), err, *done, k.one)
		}
		*done += int64(len(portion))
		return nil
	}}
	for _, l := range all {
		if err := p.add(k.reread(m, l)); err != nil {
			return err
		}
	}
	return p.flush()
}

// reread reads the line of a thing again, and names the jobs in its rows as the target does.
func (k *rowKind[R]) reread(m *importer, l namedLine) (*R, int, error) {
	return reread(m, l.offset, func(line *exportLine) (*R, bool) {
		rows := k.line(line)
		if rows == nil {
			return nil, false
		}
		name, _ := k.head(rows)
		return rows, name == l.name && k.rename(rows, m.newID) == nil
	})
}
