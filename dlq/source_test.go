package dlq_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/driver"
)

// travel lets a job of these headers die of these causes, forwards it, and returns how
// it died as its headers say, and what the dead job said.
func travel(t *testing.T, headers map[string]string, causes ...string) (dlq.Source, *pawl.Envelope) {
	t.Helper()
	from, to := inMemory(t), inMemory(t)
	id := failDead(t, from, &pawl.Envelope{Kind: "a", Queue: "mail", Headers: headers}, pawl.ReasonExhausted, causes...)
	dead := get(t, from, id)
	forward(t, from, to, "", 1)
	job := get(t, to, id)
	require.NoError(t, driver.CheckEnvelope(job))
	for key, value := range headers {
		require.Equal(t, value, job.Headers[key], "the job's own headers stay as they are")
	}
	past, ok := dlq.SourceOf(job)
	require.True(t, ok)
	return past, dead
}

func numberedCauses(n, size int) (causes []string) {
	for i := range n {
		causes = append(causes, fmt.Sprintf("%03d %s", i, strings.Repeat("x", size)))
	}
	return causes
}

// Rule: the newest attempts of a long history are forwarded completely, with the number of all attempts.
func TestLongHistoryIsCut(t *testing.T) {
	past, dead := travel(t, nil, numberedCauses(150, 200)...)
	require.Equal(t, 150, past.Failures)
	require.Equal(t, 150, past.Attempts)
	require.Greater(t, len(past.History), 20)
	require.Less(t, len(past.History), 40)
	for i, failure := range past.History {
		want := dead.History[len(dead.History)-len(past.History)+i]
		require.Equal(t, want.Error, failure.Error)
		require.Equal(t, want.Attempt, failure.Attempt)
	}
}

// Rule: the last error is always forwarded, shortened to the available room, even if escaping makes
// it six times as long.
func TestLastErrorIsShortened(t *testing.T) {
	for name, test := range map[string]struct {
		cause string
		least int // characters that arrive
	}{
		"plain":       {strings.Repeat("x", 4000), 700},
		"quotes":      {strings.Repeat(`"`, 4000), 350},
		"controls":    {strings.Repeat("\x01", 4000), 100},
		"wide":        {strings.Repeat("語", 1300), 200},
		"no UTF-8":    {strings.Repeat("\xff", 4000), 100},
		"HTML":        {strings.Repeat("<", 4000), 700},
		"short":       {"no luck", 7},
		"none at all": {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			headers := map[string]string{"big": strings.Repeat("v", 7000)}
			past, _ := travel(t, headers, "before", test.cause)
			require.NotEmpty(t, past.History)
			require.Equal(t, 2, past.Failures)
			last := past.History[len(past.History)-1]
			require.Equal(t, 2, last.Attempt)
			require.GreaterOrEqual(t, len([]rune(last.Error)), test.least)
			if len(test.cause) > 1000 {
				require.Len(t, past.History, 1)
				require.True(t, strings.HasSuffix(last.Error, "…"))
			}
		})
	}
}

// Rule: a job's own headers of any size are either forwarded unchanged with those of the death, or
// refused.
func TestHeadersOfEverySizeEitherTravelOrStay(t *testing.T) {
	refused := 0
	for size := pawl.MaxHeaderBytes - 600; size <= pawl.MaxHeaderBytes-len("big"); size += 7 {
		from, to := inMemory(t), inMemory(t)
		headers := map[string]string{"big": strings.Repeat("v", size)}
		id := failDead(t, from, &pawl.Envelope{Kind: "a", Queue: "mail", Headers: headers}, pawl.ReasonExhausted, "one", strings.Repeat("two", 100))
		n, err := dlq.Forward(t.Context(), from, dlq.ToQueue(to, ""), quiet(), pawl.Filter{})
		if err != nil {
			refused++
			require.ErrorIs(t, err, pawl.ErrInvalid)
			require.Equal(t, []pawl.ID{id}, list(t, from, pawl.Filter{}))
			continue
		}
		require.Zero(t, refused, "a larger one fits only where a smaller did")
		require.Equal(t, 1, n)
		past, ok := dlq.SourceOf(get(t, to, id))
		require.True(t, ok)
		require.Equal(t, 2, past.Failures)
	}
	require.NotZero(t, refused)
}

func TestManyHeadersLeaveNoRoom(t *testing.T) {
	headers := func(n int) map[string]string {
		h := make(map[string]string)
		for i := range n {
			h[fmt.Sprint(i)] = ""
		}
		return h
	}
	travel(t, headers(pawl.MaxHeaders-6), "no luck")
	from, to := inMemory(t), inMemory(t)
	failDead(t, from, &pawl.Envelope{Kind: "a", Queue: "mail", Headers: headers(pawl.MaxHeaders - 5)}, pawl.ReasonExhausted, "no luck")
	_, err := dlq.Forward(t.Context(), from, dlq.ToQueue(to, ""), quiet(), pawl.Filter{})
	require.ErrorIs(t, err, pawl.ErrInvalid)
}

// Rule: a job that died in two places and was forwarded twice reports the last death and the failed
// attempts before both.
func TestSecondDeath(t *testing.T) {
	first, second, third := inMemory(t), inMemory(t), inMemory(t)
	id := failDead(t, first, &pawl.Envelope{Kind: "a", Queue: "mail", IdempotencyKey: "i"}, pawl.ReasonExhausted, "one", "two")
	forward(t, first, second, "", 1)
	require.NoError(t, second.Settle(t.Context(), fetch(t, second, dlq.FailedJobs).Abandon(pawl.ReasonPermanent, errDown)))
	forward(t, second, third, "last", 1)

	past, ok := dlq.SourceOf(get(t, third, id))
	require.True(t, ok)
	require.Equal(t, pawl.ReasonPermanent, past.Reason)
	require.Equal(t, dlq.FailedJobs, past.Queue)
	require.Equal(t, 1, past.Attempts)
	require.Equal(t, 3, past.Failures)
	require.Equal(t, "i", past.IdempotencyKey)
	var texts []string
	for _, failure := range past.History {
		texts = append(texts, failure.Error)
	}
	require.Equal(t, []string{"one", "two", errDown.Error()}, texts)
}

// Rule: anybody can write headers; inconsistent headers are not a source.
func TestInvalidHeadersHaveNoSource(t *testing.T) {
	good := map[string]string{
		dlq.HeaderReason: "exhausted", dlq.HeaderQueue: "mail", dlq.HeaderTime: "2031-02-03T04:05:06.000000007Z",
		dlq.HeaderAttempts: "2", dlq.HeaderFailures: "5", dlq.HeaderHistory: `[{"n":2,"at":"2031-02-03T04:05:06Z","error":"no luck"}]`,
	}
	past, ok := dlq.SourceOf(&pawl.Envelope{Headers: good})
	require.True(t, ok)
	at := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	require.Equal(t, dlq.Source{
		Death: pawl.Death{Reason: pawl.ReasonExhausted, At: at.Add(7)}, Queue: "mail", Attempts: 2, Failures: 5,
		History: []pawl.Failure{{Attempt: 2, At: at, Error: "no luck"}},
	}, past)

	for key, values := range map[string][]string{
		dlq.HeaderReason:   {""},
		dlq.HeaderQueue:    {""},
		dlq.HeaderTime:     {"", "yesterday", "2031-02-03", "2031-02-30T00:00:00Z"},
		dlq.HeaderAttempts: {"", "-1", "two", "1e9", "99999999999999999999"},
		dlq.HeaderFailures: {"", "-1", "0", "99999999999999999999"},
		dlq.HeaderHistory: {"", "{}", "[", `["no luck"]`, `[{"n":"2"}]`, `[{"at":"yesterday"}]`, `[{},{},{},{},{},{}]`,
			strings.Repeat("[", 8000)},
	} {
		for _, value := range values {
			bad := maps.Clone(good)
			bad[key] = value
			past, ok := dlq.SourceOf(&pawl.Envelope{Headers: bad})
			require.False(t, ok, "%s: %.50s", key, value)
			require.Zero(t, past)
		}
		bad := maps.Clone(good)
		delete(bad, key)
		_, ok := dlq.SourceOf(&pawl.Envelope{Headers: bad})
		require.False(t, ok, key)
	}
	_, ok = dlq.SourceOf(&pawl.Envelope{})
	require.False(t, ok, "it was not forwarded")
}
