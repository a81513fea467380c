// Package workflow stands in for the package of the library.
package workflow

import (
	"context"
	"time"

	"github.com/gopawl/pawl"
)

type (
	Run               struct{}
	Option            func()
	StepOption        func()
	Case              struct{}
	Engine            struct{}
	Handle[T any]     struct{}
	Branch[T any]     struct{ out T }
	Signal[T any]     struct{}
	Shared[T any]     struct{}
	Stream[T any]     struct{}
	Flow[In, Out any] struct{}
)

func (r *Run) ID() (id string)                                                   { return id }
func (r *Run) Key() (key string)                                                 { return key }
func (r *Run) Undo(name string, fn func(context.Context) error, _ ...StepOption) {}

func Define[In, Out any](name string, fn func(*Run, In) (Out, error), _ ...Option) *Flow[In, Out] {
	return nil
}

func (f *Flow[In, Out]) Start(ctx context.Context, e *Engine, id string, in In) (h *Handle[Out], err error) {
	return nil, nil
}

func (f *Flow[In, Out]) StartFrom(r *Run, id string, in In) (run pawl.ID, err error) { return run, nil }

func Step[T any](r *Run, name string, fn func(context.Context) (T, error), _ ...StepOption) (out T, err error) {
	return out, nil
}

func StepTx[Tx, T any](r *Run, name string, fn func(Tx) (T, error), _ ...StepOption) (out T, err error) {
	return out, nil
}

func In[Tx any](r *Run, tx Tx) int { return 0 }

func Decide[T any](r *Run, name string, fn func() T) (out T, err error) { return out, nil }

func Sleep(r *Run, name string, d time.Duration) error { return nil }

func SleepUntil(r *Run, name string, t time.Time) error { return nil }

func Restart[In any](r *Run, in In) error { return nil }

func Go[T any](r *Run, name string, fn func(*Run) (T, error)) *Branch[T] { return nil }

func (b *Branch[T]) Wait(r *Run) (out T, err error) { return out, nil }

func All[T any](r *Run, branches ...*Branch[T]) (out []T, err error) { return nil, nil }

func Each[Item, T any](r *Run, name string, items []Item, key func(Item) string, limit int, fn func(*Run, Item) (T, error)) (out []T, err error) {
	return nil, nil
}

func Select(r *Run, name string, cases ...Case) (int, error) { return 0, nil }

func (s *Signal[T]) Wait(r *Run, timeout time.Duration) (out T, err error) { return out, nil }

func Share[T any](r *Run, name string, initial T) *Shared[T] { return nil }

func (s *Shared[T]) Change(r *Run, fn func(*T)) error { return nil }

func (s *Shared[T]) Wait(r *Run, name string, fn func(*T) bool) error { return nil }

func (s *Stream[T]) Append(r *Run, item T) error { return nil }
