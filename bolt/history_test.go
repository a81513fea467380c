package bolt

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

func TestHistoryKeepsBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		id := add(t, q, func(e *pawl.Envelope) { e.MaxRetries = pawl.MaxMaxRetries }).ID
		var all []pawl.Failure
		for n := 1; n <= 250; n++ {
			pass(time.Second)
			cause := fmt.Sprint("failure ", n)
			require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Nack(0, errors.New(cause))))
			all = append(all, pawl.Failure{Attempt: n, At: fromFile(time.Now()), Error: cause})

			if n == 1 || n >= 199 && n <= 202 || n == 250 {
				e := find(t, q, id)
				want := all
				if n > 200 {
					want = append(all[:100:100], all[n-100:]...)
				}
				require.Equal(t, want, e.History)
				require.Equal(t, n, e.Failures)
				require.Equal(t, n, e.Attempts)
			}
		}
		require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Abandon(pawl.ReasonExhausted, errors.New("the end"))))
		require.NoError(t, q.Retry(t.Context(), id, false))
		require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Nack(0, errors.New("after a retry"))))
		e := find(t, q, id)
		require.Equal(t, 252, e.Failures, "a retry forgets no failure")
		require.Equal(t, 1, e.Attempts)
		require.Len(t, e.History, 200)
		require.Equal(t, "failure 1", e.History[0].Error)
		require.Equal(t, pawl.Failure{Attempt: 251, At: fromFile(time.Now()), Error: "the end"}, e.History[198])
		require.Equal(t, pawl.Failure{Attempt: 1, At: fromFile(time.Now()), Error: "after a retry"}, e.History[199])
	})
}

func TestLongErrorsAreCutAtACharacter(t *testing.T) {
	const limit = pawl.MaxErrorText
	for _, c := range []struct {
		rule, text, want string
	}{
		{"none", "", ""},
		{"short", "boom", "boom"},
		{"exactly the limit", strings.Repeat("x", limit), strings.Repeat("x", limit)},
		{"a byte more", strings.Repeat("x", limit+1), strings.Repeat("x", limit-3) + "…"},
		{"two-byte characters, cut within one", strings.Repeat("ü", limit), strings.Repeat("ü", (limit-3)/2) + "…"},
		{"three-byte characters", strings.Repeat("€", limit), strings.Repeat("€", (limit-3)/3) + "…"},
		{"four-byte characters, moved by one", "x" + strings.Repeat("😀", limit), "x" + strings.Repeat("😀", (limit-4)/4) + "…"},
		{"not even text", strings.Repeat("\xff", limit+1), strings.Repeat("\xff", limit-3) + "…"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			q := openTest(t, nil)
			id := add(t, q, nil).ID
			require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Nack(0, errors.New(c.text))))
			got := find(t, q, id).History[0].Error
			require.LessOrEqual(t, len(got), limit)
			require.Equal(t, utf8.ValidString(c.text), utf8.ValidString(got))
			require.Equal(t, c.want, got)
		})
	}
}

// The rows of a history are removed with the job, whatever its path since it failed. Those of
// its neighbors stay.
func TestHistoryIsGoneAfterAck(t *testing.T) {
	for _, c := range []struct {
		way  string
		take func(*testing.T, *Queue, *pawl.Lease)
	}{
		{"failed once more", func(t *testing.T, q *Queue, l *pawl.Lease) {
			require.NoError(t, q.Settle(t.Context(), l.Nack(0, errBoom)))
		}},
		{"failed more often than is kept", func(t *testing.T, q *Queue, l *pawl.Lease) {
			for range 210 {
				require.NoError(t, q.Settle(t.Context(), l.Nack(0, errBoom)))
				l = leaseOne(t, q)
			}
			require.NoError(t, q.Settle(t.Context(), l.Release()))
		}},
		{"waited for its time", func(t *testing.T, q *Queue, l *pawl.Lease) {
			require.NoError(t, q.Settle(t.Context(), l.Snooze(time.Minute)))
			pass(time.Minute)
			synctest.Wait()
		}},
		{"died and was retried", func(t *testing.T, q *Queue, l *pawl.Lease) {
			require.NoError(t, q.Settle(t.Context(), l.Abandon(pawl.ReasonExhausted, errBoom)))
			require.NoError(t, q.Retry(t.Context(), l.ID, false))
		}},
		{"expired", func(_ *testing.T, q *Queue, _ *pawl.Lease) { expire(q) }},
		{"was poison and was retried", func(t *testing.T, q *Queue, l *pawl.Lease) {
			for range q.opts.MaxCrashes - 1 {
				expire(q)
				leaseOne(t, q)
			}
			expire(q)
			require.NoError(t, q.Retry(t.Context(), l.ID, true))
		}},
	} {
		t.Run(c.way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				for range 3 { // the middle one is acked at the end
					add(t, q, func(e *pawl.Envelope) { e.MaxRetries = 1000 })
				}
				jobs := fetch(t, q, 3)
				for _, l := range jobs {
					require.NoError(t, q.Settle(t.Context(), l.Nack(0, errBoom)))
				}
				jobs = fetch(t, q, 3)
				for _, l := range []*pawl.Lease{jobs[0], jobs[2]} {
					require.NoError(t, q.Settle(t.Context(), l.Snooze(1000*time.Hour)))
				}
				c.take(t, q, jobs[1])
				require.NotEmpty(t, find(t, q, jobs[1].ID).History)
				require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
				require.NoError(t, q.view(t.Context(), func(s *store) error {
					var rows []pawl.ID
					c := s.history.Cursor()
					for k, _ := c.First(); k != nil; k, _ = c.Next() {
						rows = append(rows, pawl.ID(k[:16]))
					}
					require.Equal(t, []pawl.ID{jobs[0].ID, jobs[2].ID}, rows)
					return nil
				}))
			})
		})
	}
}
