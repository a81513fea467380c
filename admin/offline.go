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
func Offline(q OfflineStore) Admin { return offlineQueue{direct{q: q}, q} }

// Shared returns the [Admin] of a queue that processes of apps also have open, such as a queue on a
// server. Only those processes have the events and the code of flows. So Events returns an
// [*UnsupportedError], and Verify returns [ErrNotLive], as for the queue of a stopped app. Its Close
// closes the store.
func Shared(q OfflineStore) Admin { return offlineQueue{direct{q: q, live: true}, q} }

// offlineQueue is the result of Offline and of Shared.
type offlineQueue struct {
	direct
	io.Closer
}

func (q offlineQueue) Events(context.Context) iter.Seq2[Event, error] {
	if q.live {
		return noEvents(&UnsupportedError{"events"})
	}
	return noEvents(ErrNotLive)
}

// noEvents returns an iteration that fails.
func noEvents(err error) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) { yield(Event{}, err) }
}
