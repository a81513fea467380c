package bolt

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
)

// Rule: a random change to envelopes that were read is refused, or leaves a sound file.
func TestRestoreOfChangedEnvelopes(t *testing.T) {
	race.SkipLone(t)
	synctest.Test(t, func(t *testing.T) {
		from, to := openAt(t, memoryFolder(t)+"/from.db", nil), openAt(t, memoryFolder(t)+"/to.db", nil)
		fillMixed(t, from, 9)
		jobs := all(t, from, pawl.Filter{})
		random := rand.New(rand.NewPCG(5, 6))
		rounds, refused, stored := 1500, 0, 0
		for range rounds {
			e := *jobs[random.IntN(len(jobs))]
			e.ID = pawl.ID{}
			for range 1 + random.IntN(2) {
				hostileChange(random, &e)
			}
			err := to.Restore(t.Context(), []*pawl.Envelope{&e}, nil)
			if err == nil {
				stored++
				continue
			}
			refused++
			require.True(t, matchesAny(err, pawl.ErrInvalid, pawl.ErrConflict, pawl.ErrPayloadTooLarge), "%v", err)
		}
		require.Greater(t, refused, rounds/8)
		require.Greater(t, stored, rounds/8)
		synctest.Wait()
		checkNow(t, to)
		for e, err := range to.Jobs(t.Context(), pawl.Filter{}) {
			require.NoError(t, err)
			require.NotNil(t, e)
		}
		pass(600 * time.Hour) // longer than any delay, deadline, or retention that is not absurd
		synctest.Wait()
		checkNow(t, to)
	})
}

func matchesAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// hostileChange changes a job as an attacker could.
func hostileChange(r *rand.Rand, e *pawl.Envelope) {
	number := func() int { return []int{-1, 0, 1, 150, 1 << 20, math.MaxInt32, math.MaxInt, math.MinInt}[r.IntN(8)] }
	when := func() time.Time {
		return []time.Time{{}, time.Unix(0, 0), time.Now(), time.Now().Add(time.Hour), time.Now().Add(-time.Hour),
			time.Unix(1<<40, 999_999_999), time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0)}[r.IntN(9)]
	}
	text := func() string {
		return []string{"", "k", "\x00", "\xff\xfe", strings.Repeat("n", 255), strings.Repeat("n", 256)}[r.IntN(6)]
	}
	switch r.IntN(19) {
	case 0:
		e.State = append(pawl.States(), "", "x")[r.IntN(7)]
	case 1:
		e.Attempts = number()
	case 2:
		e.Crashes = number()
	case 3:
		e.Failures = number()
	case 4:
		e.Death = []*pawl.Death{nil, {}, {Reason: pawl.Reason(text()), At: when()}, {Reason: "x", At: when()}}[r.IntN(4)]
	case 5:
		e.Completed = when()
	case 6:
		e.NotBefore = when()
	case 7:
		e.Deadline = when()
	case 8:
		e.BackoffSince = when()
	case 9:
		e.Created = when()
	case 10:
		e.Retain = time.Duration(number())
	case 11:
		e.Kind = text()
	case 12:
		e.Queue = text()
	case 13:
		e.UniqueKey, e.UniqueIn = text(), pawl.States()[:r.IntN(len(pawl.States())+1)]
	case 14:
		e.IdempotencyKey, e.IdempotencyTTL = text(), time.Duration(number())
	case 15:
		e.History = make([]pawl.Failure, r.IntN(3))
		for i := range e.History {
			e.History[i] = pawl.Failure{Attempt: number(), At: when(), Error: text()}
		}
		if e.Failures = len(e.History); r.IntN(4) == 0 {
			e.Failures = number()
		}
	case 16:
		e.Cancelled = !e.Cancelled
	case 17:
		e.Headers = map[string]string{text(): text()}
	case 18:
		e.Priority, e.MaxRetries, e.Timeout = int8(number()), number(), time.Duration(number())
	}
}
