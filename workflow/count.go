package workflow

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/gopawl/pawl/driver"
)

// Counts are the numbers of runs by status, for a quick overview. They come from the rows of the
// runs alone, without their jobs. So a run that sleeps, waits, executes, or has a dead job counts
// as active. [Reader.List] tells these apart. The queue of a run counts its dead job.
type Counts struct {
	Active  int // have not ended, and are neither paused nor blocked
	Paused  int
	Blocked int

	Done, Failed, Cancelled, Terminated int

	Damaged int // unreadable row

	// More says that there are more runs than were counted. The newest were counted. Blocked
	// includes up to the same number of older runs.
	More bool
}

// countRows limits how many of the newest runs a count reads, and how many of the blocked ones.
const countRows = 16 << 10

// Count counts the newest runs, 16,384 at most, and as many older runs that are blocked. It
// uses one short transaction of a few milliseconds.
func (r *Reader) Count(ctx context.Context) (c Counts, err error) {
	return r.count(ctx, countRows)
}

func (r *Reader) count(ctx context.Context, most int) (c Counts, err error) {
	var both int // paused and blocked
	err = r.source.ViewRows(ctx, func(tx driver.Reader) error {
		rs, g := rowsOf(tx), newGlance()
		c.More, err = rs.newest(tableRuns, most, func(content []byte, damage error) {
			status, paused, ok := g.standing(content)
			switch {
			case damage != nil || !ok:
				c.Damaged++
			case paused && !status.Ended():
				c.Paused++
				if status == Blocked {
					both++
				}
			default:
				*c.of(status)++
			}
		})
		if err != nil || !c.More {
			return err
		}
		blocked := 0
		_, err = rs.newest(tableBlocked, most, func([]byte, error) { blocked++ })
		c.Blocked = max(c.Blocked, blocked-both)
		return err
	})
	if err != nil {
		return Counts{}, fmt.Errorf("count runs: %w", err)
	}
	return c, nil
}

// of returns the count for a status in a row.
func (c *Counts) of(s Status) *int {
	switch s {
	case Blocked:
		return &c.Blocked
	case Done:
		return &c.Done
	case Failed:
		return &c.Failed
	case Cancelled:
		return &c.Cancelled
	case Terminated:
		return &c.Terminated
	case Running, Sleeping, Waiting:
		return &c.Active
	}
	return &c.Damaged
}

// newest calls fn for the last rows of a table, and reports whether there are more.
func (r rows) newest(t *driver.Table, most int, fn func(content []byte, damage error)) (more bool, err error) {
	err = r.span(t, driver.Span{Limit: most + 1, Reverse: true}, func(_, content []byte, damage error) error {
		if more = most == 0; more {
			return errStop
		}
		most--
		fn(content, damage)
		return nil
	})
	return more, err
}

// glance reads two fields of a row and skips the fields before them, in a fifth of the time
// that decoding the whole row takes.
type glance struct {
	src bytes.Reader
	dec *msgpack.Decoder
}

func newGlance() *glance {
	g := &glance{}
	g.dec = msgpack.NewDecoder(&g.src)
	return g
}

// standing returns the status in a row. If the content is not a row, ok is false.
func (g *glance) standing(row []byte) (status Status, paused, ok bool) {
	const statusAt, pausedAt = 2, 18 // positions in runRow
	g.src.Reset(row)
	g.dec.Reset(&g.src)
	fields, err := g.dec.DecodeArrayLen()
	if err != nil || fields <= pausedAt {
		return "", false, false
	}
	for i := range pausedAt {
		if i == statusAt {
			var text string
			text, err = g.dec.DecodeString()
			status = Status(text)
		} else {
			err = g.skip()
		}
		if err != nil {
			return "", false, false
		}
	}
	paused, err = g.dec.DecodeBool()
	return status, paused, err == nil
}

// skip skips a value or a list of values. A row has no deeper nesting, and the decoder's Skip
// would recurse as deep as its input.
func (g *glance) skip() error {
	n := 1
	switch code, err := g.dec.PeekCode(); {
	case err != nil:
		return err
	case isList(code):
		if n, err = g.dec.DecodeArrayLen(); err != nil {
			return err
		}
	}
	for ; n > 0; n-- {
		code, err := g.dec.PeekCode()
		if err == nil && (isList(code) || msgpcode.IsFixedMap(code) || code == msgpcode.Map16 || code == msgpcode.Map32) {
			err = errTooDeep
		}
		if err == nil {
			err = g.dec.Skip()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var errTooDeep = errors.New("the values of a row are not that deep")

func isList(code byte) bool {
	return msgpcode.IsFixedArray(code) || code == msgpcode.Array16 || code == msgpcode.Array32
}
