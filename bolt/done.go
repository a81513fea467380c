package bolt

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// scopeEffects is the scope of a list of effects.
const scopeEffects = "effects"

// Effects reads at most max idempotency keys that count as done, ordered by kind and key. Max is 1
// to [pawl.MaxListed]. After is a cursor: "" for the beginning, or next of an earlier call. Effects
// may return fewer keys, even none, while next is not "". It includes keys that have expired and
// are not removed yet.
//
// An unreadable key returns [pawl.ErrCorrupt], with the keys before it and a next that continues
// after it. Effects returns [pawl.ErrInvalid] for a cursor of another list, and for a max out of
// range.
func (r *reader) Effects(ctx context.Context, after string, max int) (effects []driver.Effect, next string, err error) {
	if err := driver.CheckListed(max); err != nil {
		return nil, "", err
	}
	var last []byte
	if after != "" {
		if _, last, err = parseCursor(after, scopeEffects); err != nil {
			return nil, "", err
		}
	}
	var damage error
	err = r.view(ctx, func(s *store) error {
		c := s.effects.Cursor()
		k, v := c.Seek(last)
		if last != nil && bytes.Equal(k, last) {
			k, v = c.Next()
		}
		for n := 0; k != nil; k, v = c.Next() {
			if n++; n > listRows || len(effects) >= max || damage != nil {
				next = formatCursor(0, last, scopeEffects)
				return nil
			}
			if last != nil && bytes.Compare(k, last) <= 0 {
				return fmt.Errorf("%w: the keys of a page are out of order", pawl.ErrCorrupt)
			}
			last = append(last[:0], k...)
			e, err := parseEffect(k, v)
			switch {
			case err != nil:
				damage = err
			case !e.Until.IsZero(): // otherwise a leased job holds the key, and the effect is not done
				effects = append(effects, e)
			}
		}
		return nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("list effects: %w", err)
	}
	if damage != nil {
		err = fmt.Errorf("list effects: %w", damage)
	}
	return effects, next, err
}

// parseEffect reads a row of effects.
func parseEffect(key, sealed []byte) (e driver.Effect, err error) {
	row, err := parseEffectRow(key, sealed)
	if err != nil {
		return e, fmt.Errorf("idempotency key %q: %w", key, err)
	}
	kind, rest, ok := cutName(key)
	name, rest, also := cutName(rest)
	if !ok || !also || len(rest) > 0 {
		return e, fmt.Errorf("%w: the row of an idempotency key has key %q", pawl.ErrCorrupt, key)
	}
	return driver.Effect{Kind: string(kind), Key: string(name), Until: row.done}, nil
}

// cutName splits off a name that starts with its length in one byte.
func cutName(b []byte) (name, rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return nil, nil, false
	}
	return b[1 : 1+int(b[0])], b[1+int(b[0]):], true
}
