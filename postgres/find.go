package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

const (
	sqlIDsFrom  = `SELECT id FROM pawl.job WHERE id BETWEEN $1 AND $2 ORDER BY id LIMIT $3`
	sqlIDsAfter = `SELECT id FROM pawl.job WHERE id > $1 ORDER BY id LIMIT $2`
)

// FindIDs returns up to most IDs of jobs that begin or end with part, which is at least four hexadecimal digits, with
// or without dashes. It returns [pawl.ErrInvalid] for any other part. To find the end of an ID, it compares at most
// [driver.MaxSearched] IDs, after a cursor: "" for the beginning, or the next of an earlier call. Next is "" at the
// end, and when most IDs were found.
func (q *Queue) FindIDs(ctx context.Context, part, after string, most int) (ids []pawl.ID, next string, err error) {
	var search *driver.Search
	err = q.look(ctx, func(tx *viewTx) error {
		if search, err = driver.NewSearch(part, after, most); err != nil {
			return err
		}
		if least, greatest, room := search.Range(); room > 0 {
			search.IDs, err = idsOf(tx.Query(ctx, q.sql(sqlIDsFrom), uuidOf(least), uuidOf(greatest), room))
			if err != nil {
				return err
			}
		}
		if search.Left() == 0 {
			return nil
		}
		ids, err := idsOf(tx.Query(ctx, q.sql(sqlIDsAfter), uuidOf(search.After), search.Left()))
		for _, id := range ids {
			if !search.Add(id) {
				break
			}
		}
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("find IDs: %w", err)
	}
	return search.IDs, search.Next(), nil
}

func uuidOf(id pawl.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

// idsOf reads rows of IDs.
func idsOf(rows pgx.Rows, err error) ([]pawl.ID, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (pawl.ID, error) {
		var id pgtype.UUID
		err := row.Scan(&id)
		return id.Bytes, err
	})
}

const sqlEffects = `SELECT name, done_until FROM pawl.effect
WHERE name > $1 AND name <> '' AND done_until > 0 ORDER BY name LIMIT $2`

// scopeEffects is the scope of a list of effects.
const scopeEffects = "effects"

// Effects reads at most max idempotency keys that count as done, ordered by kind and key. Max is 1 to [pawl.MaxListed].
// After is a cursor: "" for the beginning, or next of an earlier call. Effects includes keys that have expired and are
// not removed yet. It returns [pawl.ErrInvalid] for a cursor of another list, and for a max out of range.
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
	begin := last
	err = q.look(ctx, func(tx *viewTx) error {
		effects, last = nil, begin
		rows, err := tx.Query(ctx, q.sql(sqlEffects), begin, max)
		if err != nil {
			return err
		}
		var name []byte
		var until int64
		_, err = pgx.ForEachRow(rows, []any{&name, &until}, func() error {
			kind, key, ok := strings.Cut(string(name), "\x00")
			if !ok {
				return fmt.Errorf("idempotency key %q: %w: it has no kind", name, pawl.ErrCorrupt)
			}
			effects, last = append(effects, driver.Effect{Kind: kind, Key: key, Until: timeOf(until)}), append([]byte{}, name...)
			return nil
		})
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list effects: %w", err)
	}
	if len(effects) == max {
		next = driver.FormatCursor(last, scopeEffects)
	}
	return effects, next, nil
}
