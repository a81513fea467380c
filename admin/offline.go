package admin

import (
	"context"
	"io"
	"iter"
)

// OfflineStore is the [Store] of an app that does not run, such as an *offline.File.
type OfflineStore interface {
	Store
	io.Closer
}

// Offline returns the [Admin] of the queue of a stopped app. It has no events and no code of
// flows: operations that need them return [ErrNotLive]. Its Close closes the store.
func Offline(q OfflineStore) Admin { return offlineQueue{direct{q, false}, q} }

// offlineQueue is the result of Offline.
type offlineQueue struct {
	direct
	io.Closer
}

func (offlineQueue) Events(context.Context) iter.Seq2[Event, error] { return noEvents(ErrNotLive) }

// noEvents returns an iteration that fails.
func noEvents(err error) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) { yield(Event{}, err) }
}
