package workflow

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Stream ties the name under which runs append items to the type of the items. Unlike a [Value], it
// keeps each item, up to its limits. Make one with [DefineStream], once, usually as a package variable.
type Stream[T any] struct {
	name string
	err  error
}

// DefineStream makes the stream called name. Each run has its own. The first use of the stream reports a bad name.
func DefineStream[T any](name string) *Stream[T] {
	return &Stream[T]{name, validName("stream", name)}
}

// Name returns the name of the stream.
func (s *Stream[T]) Name() string { return s.name }

// Item is one item of a stream.
type Item[T any] struct {
	N       uint64 // its number in the stream, from 1
	Skipped uint64 // how many items directly before it the reader has missed, because they are no longer kept
	At      time.Time
	Value   T

	// Step is the step that appended the item, as [Entry.Step] writes it, or "" for code between the steps. Attempt is
	// the number of the first item that the same attempt of the step appended.
	Step    string
	Attempt uint64
}

// Append stores an item at the end of the stream, for observers of the run, and returns when it is durable. Call
// it between the calls of a run, or within the function of a [Step] or of [Run.Undo].
//
// Between calls it takes effect once, even if the process crashes: when the run continues, an Append that was already
// durable writes nothing. The journal has no entry for it. A restart of the run keeps its items, and a fork begins
// without any.
//
// Within a step it takes effect at each attempt, before the result of the step is known: an attempt that fails or is
// interrupted leaves its items. [Item].Attempt distinguishes the items of different attempts. Within a step, Append
// may be called concurrently. Within a [StepTx] it returns an error that matches [ErrNested].
//
// A stream keeps at most [MaxStream] items and 8 MiB. Beyond that, it loses its oldest items, up to 1,000 at a time,
// and readers see how many they missed. Append returns [pawl.ErrInvalid] for a bad name, [ErrTooLarge] for an item of
// more than [MaxValue] bytes, and [ErrTooMany] for more than [MaxStreams] streams of one run. The journal does not
// store these errors, so return them. Any other error means that the run does not continue now: return it.
func (s *Stream[T]) Append(r *Run, item T) error {
	if s.err != nil {
		return s.err
	}
	value, err := encode("the item", item)
	if err == nil {
		err = r.append(s.name, value)
	}
	if err != nil {
		return fmt.Errorf("stream %q: %w", s.name, err)
	}
	return nil
}

// Read returns the items that the stream of a run has now, beginning with the item number from; 0 means the first. It
// reads them in portions, and the run may append more in the meantime. An error ends the sequence: for a bad name or an
// item of another type, [ErrNotFound] if there is no such run, or an error of the store.
func (s *Stream[T]) Read(ctx context.Context, e *Engine, run pawl.ID, from uint64) iter.Seq2[Item[T], error] {
	return s.all(from, func(next uint64) (page itemPage, err error) { return e.items(ctx, run, s.name, next, itemsOfPage) })
}

// Watch is like [Stream.Read], but continues with each item that the run appends, until the run has ended. It skips an
// item only if the stream lost the item before the reader reached it: see [Item].Skipped. To continue later, a reader
// passes the number after the last item that it has seen. In the process that runs the run, Watch does not poll. If
// other processes share the store, it also polls, at growing intervals of up to a minute.
//
// An error ends the sequence: an error of Read, the error of ctx, or [pawl.ErrClosed].
func (s *Stream[T]) Watch(ctx context.Context, e *Engine, run pawl.ID, from uint64) iter.Seq2[Item[T], error] {
	return s.all(from, func(next uint64) (page itemPage, err error) {
		err = e.follow(ctx, run, func() (over bool, err error) {
			page, err = e.items(ctx, run, s.name, next, itemsOfPage)
			return len(page.items) > 0 || !page.open, err
		})
		return page, err
	})
}

// all yields the items of one page after the other, until one is empty.
func (s *Stream[T]) all(from uint64, read func(next uint64) (itemPage, error)) iter.Seq2[Item[T], error] {
	return func(yield func(Item[T], error) bool) {
		next, err := max(from, 1), s.err
		for err == nil {
			var page itemPage
			if page, err = read(next); err != nil || len(page.items) == 0 {
				break
			}
			for i := range page.items {
				var item Item[T]
				if item, err = itemOf[T](&page.items[i]); err != nil {
					break
				}
				next = item.N + 1
				if !yield(item, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(Item[T]{}, fmt.Errorf("stream %q: %w", s.name, err))
		}
	}
}

// itemOf decodes the value of an item.
func itemOf[T any](raw *Item[[]byte]) (Item[T], error) {
	item := Item[T]{N: raw.N, Skipped: raw.Skipped, At: raw.At, Step: raw.Step, Attempt: raw.Attempt}
	if err := driver.DecodePayload(raw.Value, &item.Value); err != nil {
		return Item[T]{}, fmt.Errorf("item %d: %w", raw.N, err)
	}
	return item, nil
}

// StreamInfo describes a stream of a run.
type StreamInfo struct {
	Name  string
	First uint64 // number of the first item that is kept
	Last  uint64 // number of the last item
	Bytes int64  // size of the items that are kept, as they are stored
}

// Streams returns the streams of a run, by name. It returns [ErrNotFound] if there is no such run.
func (r *Reader) Streams(ctx context.Context, run pawl.ID) (all []StreamInfo, err error) {
	err = r.view(ctx, run, func(rs rows) error {
		all = nil
		return rs.each(tableStreams, run[:], func(key, content []byte, damage error) error {
			if damage != nil {
				return damage
			}
			row, err := parseStream(key[len(run):], content)
			all = append(all, StreamInfo{string(key[len(run):]), row.First, row.Last, row.Bytes})
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Items returns at most limit items of a stream of a run as MessagePack, beginning with the item number from; 0 means
// the first. See [driver.DecodePayload]. It may return fewer items although there are more: continue after the last one
// until there are none. A name without a stream has no items. It returns [ErrNotFound] if there is no such run, and
// [pawl.ErrInvalid] if limit is not between 1 and [MaxListed].
func (r *Reader) Items(ctx context.Context, run pawl.ID, name string, from uint64, limit int) ([]Item[[]byte], error) {
	if limit < 1 || limit > MaxListed {
		return nil, &pawl.InvalidError{Field: "limit", Reason: fmt.Sprintf("%d is not between 1 and %d", limit, MaxListed)}
	}
	page, err := r.items(ctx, run, name, from, limit)
	return page.items, err
}

// Limits on what one transaction reads of a stream, unless a single item is larger.
const (
	itemsOfPage = 100
	bytesOfPage = MaxValue
)

// itemPage is what one transaction has read of a stream.
type itemPage struct {
	items []Item[[]byte]
	open  bool // the run has not ended
}

// items reads a page of items.
func (r *Reader) items(ctx context.Context, run pawl.ID, name string, from uint64, limit int) (page itemPage, err error) {
	if err := validName("stream", name); err != nil {
		return page, err
	}
	next, size := max(from, 1), 0
	span := driver.Span{Prefix: signalsOf(run, name), From: signalKey(run, name, next), Limit: limit}
	err = r.view(ctx, run, func(rs rows) error {
		row, err := rs.mustRun(run)
		if err != nil {
			return err
		}
		page, next, size = itemPage{open: row.open()}, max(from, 1), 0
		return rs.span(tableItems, span, func(key, content []byte, damage error) error {
			if damage != nil {
				return damage
			}
			item, err := parseItem(key[len(span.Prefix):], content)
			if err != nil {
				return err
			}
			item.Skipped = item.N - next
			page.items, next = append(page.items, item), item.N+1
			if size += len(item.Value); size >= bytesOfPage {
				return errStop
			}
			return nil
		})
	})
	for i := range page.items {
		page.items[i].Value, err = r.shown(page.items[i].Value, err)
	}
	if err != nil {
		return itemPage{}, err
	}
	return page, nil
}
