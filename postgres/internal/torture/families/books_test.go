package families

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/need"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/torture/harness"
)

// Rule: programs that are killed during their work finish it on a server, and their books are right. A cent
// that comes from nowhere, and a movement that is there twice, are found.
func TestBooks(t *testing.T) {
	race.SkipBuilt(t)
	need.Server(t, missing())
	family := &harness.Family{Parallel: 1, Prepare: func(env *harness.Env) (func(*harness.Try) error, error) {
		p, c, err := newStage(env)
		if err != nil {
			return nil, err
		}
		return func(try *harness.Try) error {
			conn, err := pgx.Connect(try.Ctx, c.URL())
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close(context.Background()) }()
			if err := p.work(try.Ctx, try, c.URL()); err != nil {
				return err
			}
			if err := judgeBooks(try.Ctx, conn, try.Dir); err != nil {
				return err
			}
			for _, change := range []struct{ sql, undo, says string }{
				{"UPDATE ledger.account SET cents = cents + 1 WHERE name = 'bank'", "UPDATE ledger.account SET cents = cents - 1 WHERE name = 'bank'", "and had"},
				{"INSERT INTO ledger.journal SELECT * FROM ledger.journal LIMIT 1", "", "there twice"},
			} {
				if _, err := conn.Exec(try.Ctx, change.sql); err != nil {
					return err
				}
				if err := judgeBooks(try.Ctx, conn, try.Dir); err == nil || !strings.Contains(err.Error(), change.says) {
					return fmt.Errorf("%s: %w", change.sql, errors.Join(errors.New("it was not found"), err))
				}
				if _, err := conn.Exec(try.Ctx, change.undo); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}}
	r := family.Run(t.Context(), harness.Plan{Goal: 1, Seed: 1})
	require.Empty(t, r.First)
	require.Equal(t, 1, r.Tried)
}

// Rule: each effect of an order takes place once, and in its order.
func TestJudgeOrders(t *testing.T) {
	log := filepath.Join(t.TempDir(), "effects.log")
	right := "1 reserve shipped\n2 charge shipped\n3 ship shipped\n" +
		"4 reserve refused\n5 charge refused\n6 refund refused\n7 release refused\n" +
		"8 reserve declined\n9 release declined\n"
	for _, c := range []struct{ text, wrong string }{
		{right, ""},
		{right + "10 ship shipped\n", "order shipped"},
		{strings.Replace(right, "6 refund refused\n", "", 1), "order refused"},
		{strings.Replace(right, "8 reserve declined\n9 release declined\n", "9 release declined\n8 reserve declined\n", 1), "order declined"},
		{right + "torn", "a line is"},
	} {
		require.NoError(t, os.WriteFile(log, []byte(c.text), 0o600))
		err := judgeOrders(log)
		if c.wrong == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.wrong)
		}
	}
}
