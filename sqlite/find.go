package sqlite

import (
	"bytes"
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

const (
	sqlIDsFrom  = `SELECT id FROM pawl_job WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?`
	sqlIDsAfter = `SELECT id FROM pawl_job WHERE id > ? ORDER BY id LIMIT ?`
)

// FindIDs returns up to most IDs of jobs that begin or end with part, which is at least four
// hexadecimal digits, with or without dashes. It returns [pawl.ErrInvalid] for any other part. To find
// the end of an ID, it compares at most driver.MaxSearched IDs, after a cursor: "" for the beginning, or the next
// of an earlier call. Next is "" at the end, and when most IDs were found.
func (q *Queue) FindIDs(ctx context.Context, part, after string, most int) (ids []pawl.ID, next string, err error) {
	var search *driver.Search
	err = q.look(ctx, func(c conn) error {
		if search, err = driver.NewSearch(part, after, most); err != nil {
			return err
		}
		if least, greatest, room := search.Range(); room > 0 {
			err := c.query(sqlIDsFrom, func(v []sqldriver.Value) error {
				search.IDs = append(search.IDs, pawl.ID(bytesOf(v[0])))
				return nil
			}, least[:], greatest[:], int64(room))
			if err != nil {
				return err
			}
		}
		from, goOn := search.After, search.Left() > 0
		if !goOn {
			return nil
		}
		return c.query(sqlIDsAfter, func(v []sqldriver.Value) error {
			if goOn {
				goOn = search.Add(pawl.ID(bytesOf(v[0])))
			}
			return nil
		}, from[:], int64(search.Left()))
	})
	if err != nil {
		return nil, "", fmt.Errorf("find IDs: %w", err)
	}
	return search.IDs, search.Next(), nil
}

const sqlEffects = `SELECT name, done_until FROM pawl_effect WHERE name > ? ORDER BY name LIMIT ?`

// scopeEffects is the scope of a list of effects.
const scopeEffects = "effects"

// Effects reads at most max idempotency keys that count as done, ordered by kind and key. Max is 1 to
// [pawl.MaxListed]. After is a cursor: "" for the beginning, or next of an earlier call. Effects
// includes keys that have expired and are not removed yet. It returns [pawl.ErrInvalid] for a cursor
// of another list, and for a max out of range.
func (q *Queue) Effects(ctx context.Context, after string, max int) (effects []driver.Effect, next string, err error) {
	if err := driver.CheckListed(max); err != nil {
		return nil, "", err
	}
	last := []byte{}
	if after != "" {
		if last, err = driver.ParseCursor(after, scopeEffects); err != nil {
			return nil, "", err
		}
	}
	begin := bytes.Clone(last)
	err = q.look(ctx, func(c conn) error {
		effects, last = nil, begin
		return c.query(sqlEffects, func(v []sqldriver.Value) error {
			name := bytesOf(v[0])
			kind, key, ok := strings.Cut(string(name), "\x00")
			if !ok {
				return fmt.Errorf("idempotency key %q: %w: it has no kind", name, pawl.ErrCorrupt)
			}
			effects, last = append(effects, driver.Effect{Kind: kind, Key: key, Until: timeOf(number(v[1]))}), name
			return nil
		}, begin, int64(max))
	})
	if err != nil {
		return nil, "", fmt.Errorf("list effects: %w", err)
	}
	if len(effects) == max {
		next = driver.FormatCursor(last, scopeEffects)
	}
	return effects, next, nil
}
