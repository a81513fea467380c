package workflow

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Value ties the name under which runs publish values to the type of the values. Make one with
// [DefineValue], once, usually as a package variable.
type Value[T any] struct {
	name string
	err  error
}

// DefineValue makes the value called name. The first use of the value reports a bad name.
func DefineValue[T any](name string) *Value[T] {
	return &Value[T]{name, validName("published name", name)}
}

// Name returns the name of the value.
func (v *Value[T]) Name() string { return v.name }

// Publish stores a value for observers of a running run, and returns when it is durable. See the
// function [Publish] for when it writes nothing, and for errors.
func (v *Value[T]) Publish(r *Run, value T) error { return Publish(r, v.name, value) }

// Get reads the last value that a run has published, whether the run is open or has ended. If the
// run has published none, published is false. Get returns an error for a bad name or a value of
// another type, [ErrNotFound] if there is no such run, or an error of the store.
func (v *Value[T]) Get(ctx context.Context, e *Engine, run pawl.ID) (value T, published bool, err error) {
	content, _, err := v.read(ctx, e, run)
	if err != nil || content == nil {
		return value, false, err
	}
	value, err = v.decode(content)
	return value, err == nil, err
}

// Watch returns the values that a run publishes: the current one if there is one, then each that differs from the one
// before, until the run ends. A slow reader may miss values, but never the last one. No code of the flow runs for a
// reader. In the process that runs the run, Watch does not poll. If other processes share the store, it also polls,
// at growing intervals of up to a minute.
//
// An error ends the sequence: an error of [Value.Get], the error of ctx, or [pawl.ErrClosed].
func (v *Value[T]) Watch(ctx context.Context, e *Engine, run pawl.ID) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var last []byte
		for {
			content, err := v.await(ctx, e, run, last)
			if content == nil && err == nil {
				return // the run has ended
			}
			var value T
			if err == nil {
				value, err = v.decode(content)
			}
			if !yield(value, err) || err != nil {
				return
			}
			last = content
		}
	}
}

// await waits until the content differs from last. It returns nil if the run ends without that.
func (v *Value[T]) await(ctx context.Context, e *Engine, run pawl.ID, last []byte) (content []byte, err error) {
	fresh := false
	err = e.follow(ctx, run, func() (over bool, err error) {
		var open bool
		content, open, err = v.read(ctx, e, run)
		fresh = content != nil && !bytes.Equal(content, last)
		return fresh || !open, err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("watch %q of run %s: %w", v.name, run, err)
	case !fresh:
		return nil, nil
	}
	return content, nil
}

// follow calls look whenever a run may have published something or ended, until it returns true or
// an error.
func (e *Engine) follow(ctx context.Context, run pawl.ID, look func() (over bool, err error)) error {
	again := e.hub.polling()
	for {
		changed, leave := e.hub.watch(run)
		over, err := look()
		if !over && err == nil {
			select {
			case <-changed:
			case <-again.next():
			case <-e.queue.Done():
				err = pawl.ErrClosed
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		leave()
		if over || err != nil {
			return err
		}
	}
}

// read returns the encoded value, nil for none, and whether the run is open.
func (v *Value[T]) read(ctx context.Context, e *Engine, run pawl.ID) (content []byte, open bool, err error) {
	if v.err != nil {
		return nil, false, v.err
	}
	err = e.view(ctx, run, func(r rows) error {
		row, err := r.mustRun(run)
		if err != nil {
			return err
		}
		open = row.open()
		stored, err := r.get(tablePublished, runAnd(run, v.name))
		content = bytes.Clone(stored)
		return err
	})
	if err == nil {
		content, err = e.fromStored(content) // equal values may be stored in different forms
	}
	return content, open, err
}

func (v *Value[T]) decode(content []byte) (value T, err error) {
	if err := driver.DecodePayload(content, &value); err != nil {
		var zero T
		return zero, fmt.Errorf("published value %q: %w", v.name, err)
	}
	return value, nil
}
