package workflow

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Source is what a [Reader] reads: a [Store], or a *bolt.Reader for the file of a stopped app.
type Source interface {
	// ViewRows runs fn in a read transaction, which is a snapshot. Fn must be short and must not call anything that
	// changes the store.
	ViewRows(ctx context.Context, fn func(driver.Reader) error) error

	// Job reads one job. It returns [pawl.ErrNotFound] if there is no such job.
	Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error)
}

// Reader reads runs and changes nothing. Its methods are safe for concurrent use. Besides the
// documented errors, methods return those of the source: the context's error and
// [pawl.ErrClosed]. Unreadable data returns [pawl.ErrCorrupt], and data written by a newer
// build [pawl.ErrNewerFormat].
type Reader struct {
	source Source
	codec  Codec // decodes values for callers; nil returns them as they are stored
}

// Read returns a reader over a source. It returns values as they are stored, see [Encoded]. An [Engine] decodes them.
func Read(s Source) *Reader { return &Reader{source: s} }

// Find returns the run of a flow with an ID. It returns [ErrNotFound] if there is none, or if it
// was removed.
func (r *Reader) Find(ctx context.Context, flow, id string) (run pawl.ID, err error) {
	err = r.source.ViewRows(ctx, func(tx driver.Reader) error {
		run, err = rowsOf(tx).find(flow, id)
		return err
	})
	if err == nil && run.IsZero() {
		err = ErrNotFound
	}
	if err != nil {
		return pawl.ID{}, fmt.Errorf("find workflow %s %q: %w", flow, id, err)
	}
	return run, nil
}

// view reads rows of a run that must exist, though its own row may be unreadable.
func (r *Reader) view(ctx context.Context, run pawl.ID, fn func(rows) error) error {
	return r.source.ViewRows(ctx, func(tx driver.Reader) error {
		rs := rowsOf(tx)
		if row, err := rs.get(tableRuns, run[:]); row == nil && err == nil {
			return fmt.Errorf("run %s: %w", run, ErrNotFound)
		}
		return fn(rs)
	})
}

// Input returns the input of the run's start, or of its last restart, as MessagePack. See
// [driver.DecodePayload]. It returns [ErrNotFound] if there is no such run.
func (r *Reader) Input(ctx context.Context, run pawl.ID) (input []byte, err error) {
	err = r.view(ctx, run, func(rs rows) error {
		row, damage := rs.run(run)
		if damage != nil {
			row = new(runRow) // a large input is elsewhere
		}
		if input, err = rs.input(run, row); err != nil && damage != nil {
			return damage
		}
		return err
	})
	return r.shown(input, err)
}

// Output returns the result of a completed run as MessagePack. It returns nil if the run is not
// done, and [ErrNotFound] if there is no such run.
func (r *Reader) Output(ctx context.Context, run pawl.ID) (output []byte, err error) {
	err = r.view(ctx, run, func(rs rows) error {
		row, err := rs.run(run)
		if err != nil || row.Status != Done {
			return err
		}
		output, err = rs.output(run, row)
		return err
	})
	return r.shown(output, err)
}

// Published returns the values that the run has published, by key, as MessagePack. It returns
// [ErrNotFound] if there is no such run.
func (r *Reader) Published(ctx context.Context, run pawl.ID) (values map[string][]byte, err error) {
	err = r.view(ctx, run, func(rs rows) error {
		values = make(map[string][]byte)
		return rs.each(tablePublished, run[:], func(key, content []byte, damage error) error {
			if isCount(key[len(run):]) {
				return nil
			}
			if damage == nil {
				values[string(key[len(run):])] = append([]byte{}, content...)
			}
			return damage
		})
	})
	for name := range values {
		values[name], err = r.shown(values[name], err)
	}
	if err != nil {
		return nil, err
	}
	return values, nil
}

// Pending is a signal that was sent but not consumed.
type Pending struct {
	Name  string
	N     uint64 // number of the signal, in order of arrival
	Bytes int    // size of the payload

	// Payload is MessagePack, see [driver.DecodePayload]. It is nil if the payloads of earlier
	// signals fill [MaxJournal] bytes already.
	Payload []byte
}

// Signals returns the signals that the run has not consumed, grouped by name, and within a name
// in the order in which the run will consume them. It returns [ErrNotFound] if there is no such
// run.
func (r *Reader) Signals(ctx context.Context, run pawl.ID) (signals []Pending, err error) {
	err = r.view(ctx, run, func(rs rows) error {
		bytes := 0
		signals = nil
		return rs.each(tableSignals, run[:], func(key, content []byte, damage error) error {
			if damage != nil {
				return damage
			}
			p, err := parseSignalKey(key)
			if err != nil {
				return err
			}
			p.Bytes = len(content)
			if bytes < MaxJournal {
				bytes += len(content)
				p.Payload = append([]byte{}, content...)
			}
			signals = append(signals, p)
			return nil
		})
	})
	for i := range signals {
		if s := &signals[i]; s.Payload != nil {
			s.Payload, err = r.shown(s.Payload, err)
		}
	}
	if err != nil {
		return nil, err
	}
	return signals, nil
}

// parseSignalKey parses a key made by [signalKey].
func parseSignalKey(key []byte) (p Pending, err error) {
	const before, behind = len(pawl.ID{}), 1 + 8
	n := len(key) - behind
	if n < before || key[n] != 0 {
		return p, fmt.Errorf("%w: key %x of table %s", pawl.ErrCorrupt, key, tableSignals)
	}
	return Pending{Name: string(key[before:n]), N: binary.BigEndian.Uint64(key[n+1:])}, nil
}
