package sqlite

import (
	"bytes"
	"context"
	sqldriver "database/sql/driver"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

const (
	sqlIDsFrom = `SELECT id FROM pawl_job WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?`
	sqlIDsWith = `SELECT id FROM pawl_job WHERE lower(hex(id)) LIKE '%' || ? LIMIT ?`
)

// FindIDs returns up to most IDs of jobs that begin or end with part, which is at least four
// hexadecimal digits, with or without dashes. It returns [pawl.ErrInvalid] for any other part. To find
// the end of an ID, it reads the IDs of all jobs.
func (q *Queue) FindIDs(ctx context.Context, part string, most int) (ids []pawl.ID, err error) {
	digits, err := driver.PartOfID(part)
	if err != nil {
		return nil, err
	}
	rest := 2*len(pawl.ID{}) - len(digits)
	add := func(v []sqldriver.Value) error {
		if id := pawl.ID(bytesOf(v[0])); len(ids) < most && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		return nil
	}
	err = q.look(ctx, func(c conn) error {
		if ids = nil; rest < 0 {
			return nil
		}
		var bounds [2][]byte
		for i, fill := range []string{"0", "f"} {
			b, err := hex.DecodeString(digits + strings.Repeat(fill, rest))
			if err != nil {
				return err
			}
			bounds[i] = b
		}
		if err := c.query(sqlIDsFrom, add, bounds[0], bounds[1], int64(most)); err != nil || rest == 0 || len(ids) >= most {
			return err
		}
		return c.query(sqlIDsWith, add, digits, int64(most+len(ids)))
	})
	if err != nil {
		return nil, fmt.Errorf("find IDs: %w", err)
	}
	return ids, nil
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
