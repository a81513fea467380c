package pawl_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

func TestStrategyDelayTables(t *testing.T) {
	tests := []struct {
		name     string
		strategy pawl.Strategy
		from     int             // attempt of the first delay
		want     []time.Duration // before that attempt and those that follow
	}{
		{
			"exponential 5s x 2, at most 45s: attempts 1 to 6",
			pawl.Exponential(5*sec, 2).Cap(45 * sec), 1,
			[]time.Duration{0, 5 * sec, 10 * sec, 20 * sec, 40 * sec, 45 * sec},
		},
		{
			"exponential 500ms x 2, at most 30s: attempts 2 to 8; 8s and 16s come before 30s",
			pawl.Exponential(500*ms, 2).Cap(30 * sec), 2,
			[]time.Duration{500 * ms, 1 * sec, 2 * sec, 4 * sec, 8 * sec, 16 * sec, 30 * sec, 30 * sec},
		},
		{
			"exponential without a cap goes on growing",
			pawl.Exponential(5*sec, 2), 5,
			[]time.Duration{40 * sec, 80 * sec, 160 * sec},
		},
		{
			"exponential with a fractional multiplier",
			pawl.Exponential(4*sec, 1.5), 1,
			[]time.Duration{0, 4 * sec, 6 * sec, 9 * sec, 13500 * ms},
		},
		{
			"exponential with multiplier 1 is fixed",
			pawl.Exponential(7*sec, 1), 1,
			[]time.Duration{0, 7 * sec, 7 * sec, 7 * sec},
		},
		{
			"fixed waits base before every retry",
			pawl.Fixed(3 * sec), 0,
			[]time.Duration{0, 0, 3 * sec, 3 * sec, 3 * sec},
		},
		{
			"the cap bounds fixed too, and may lie below the base",
			pawl.Fixed(10 * sec).Cap(4 * sec), 1,
			[]time.Duration{0, 4 * sec, 4 * sec},
		},
		{
			"a cap below the base bounds the first exponential delay",
			pawl.Exponential(10*sec, 2).Cap(4 * sec), 1,
			[]time.Duration{0, 4 * sec, 4 * sec},
		},
		{
			"a cap of 0 is a cap",
			pawl.Exponential(10*sec, 2).Cap(0), 1,
			[]time.Duration{0, 0, 0},
		},
		{
			"none retries at once",
			pawl.None(), 0,
			[]time.Duration{0, 0, 0, 0},
		},
		{
			"the zero value is none",
			pawl.Strategy{}, 1,
			[]time.Duration{0, 0, 0},
		},
		{
			"jitter of no delay is no delay",
			pawl.None().Jitter(1), 1,
			[]time.Duration{0, 0, 0},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.NoError(t, test.strategy.Err())
			for i, want := range test.want {
				attempt := test.from + i
				got, ok := test.strategy.Delay(pawl.Retry{Completed: attempt - 1, Attempt: attempt, Random: almostOne})
				require.True(t, ok, "a strategy never gives up")
				require.Equal(t, want, got, "attempt %d", attempt)
			}
		})
	}
}

// After a failed attempt of a job whose envelope has n completed attempts, a worker asks for
// the delay before attempt n+2: one more attempt is complete, and the next one follows it.
func TestDelayAfterCompletedRuns(t *testing.T) {
	policy := pawl.Exponential(5*sec, 2).Cap(45 * sec)
	for _, test := range []struct {
		before    int // attempts in the envelope whose attempt failed
		completed int
		next      int
		want      time.Duration
	}{
		{0, 1, 2, 5 * sec},
		{1, 2, 3, 10 * sec},
		{2, 3, 4, 20 * sec},
		{3, 4, 5, 40 * sec},
		{4, 5, 6, 45 * sec},
		{999, 1000, 1001, 45 * sec},
		{math.MaxInt - 2, math.MaxInt - 1, math.MaxInt, 45 * sec},
		{math.MaxInt - 1, math.MaxInt, math.MaxInt, 45 * sec},
		{math.MaxInt, math.MaxInt, math.MaxInt, 45 * sec},
	} {
		completed := driver.NextAttempt(test.before)
		next := driver.NextAttempt(completed)
		require.Equal(t, test.completed, completed)
		require.Equal(t, test.next, next)

		got, ok := policy.Delay(pawl.Retry{Completed: completed, Attempt: next})
		require.True(t, ok)
		require.Equal(t, test.want, got, "after %d attempts", completed)
	}
}

func TestStrategyRefusesBadValues(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, strategy := range map[string]pawl.Strategy{
		"fixed, negative base":           pawl.Fixed(-1),
		"exponential, negative base":     pawl.Exponential(-sec, 2),
		"multiplier below 1":             pawl.Exponential(sec, math.Nextafter(1, 0)),
		"multiplier 0":                   pawl.Exponential(sec, 0),
		"negative multiplier":            pawl.Exponential(sec, -2),
		"multiplier NaN":                 pawl.Exponential(sec, nan),
		"multiplier +Inf":                pawl.Exponential(sec, inf),
		"multiplier -Inf":                pawl.Exponential(sec, -inf),
		"multiplier NaN with no base":    pawl.Exponential(0, nan),
		"negative cap of fixed":          pawl.Fixed(sec).Cap(-1),
		"negative cap of exponential":    pawl.Exponential(sec, 2).Cap(-1),
		"negative cap of none":           pawl.None().Cap(-1),
		"fraction below 0":               pawl.Fixed(sec).Jitter(-0.001),
		"fraction above 1":               pawl.Fixed(sec).Jitter(math.Nextafter(1, 2)),
		"fraction NaN":                   pawl.Fixed(sec).Jitter(nan),
		"fraction Inf":                   pawl.Fixed(sec).Jitter(inf),
		"bad fraction of none":           pawl.None().Jitter(2),
		"bad fraction, then full jitter": pawl.Fixed(sec).Jitter(2).FullJitter(),
	} {
		t.Run(name, func(t *testing.T) {
			err := strategy.Err()
			require.ErrorIs(t, err, pawl.ErrInvalid)
			var invalid *pawl.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, "policy", invalid.Field)

			// Good values that follow do not heal it, bad ones do not cover it.
			require.Equal(t, err, strategy.Cap(time.Minute).Jitter(0.1).FullJitter().Err())
			require.Equal(t, err, strategy.Jitter(-1).Cap(-time.Hour).Err())

			job := pawl.Envelope{Kind: "k", Policy: &strategy}
			require.Equal(t, err, driver.CheckEnvelope(&job), "a job that carries it is refused for the same reason")
		})
	}
}

func TestStrategyAcceptsTheEdges(t *testing.T) {
	for _, strategy := range []pawl.Strategy{
		pawl.None(), pawl.Fixed(0), pawl.Fixed(math.MaxInt64), pawl.Exponential(0, 1),
		pawl.Exponential(math.MaxInt64, math.MaxFloat64), pawl.Fixed(sec).Cap(0),
		pawl.Fixed(sec).Cap(math.MaxInt64), pawl.Fixed(sec).Jitter(0), pawl.Fixed(sec).Jitter(1),
		pawl.DefaultStrategy(),
	} {
		require.NoError(t, strategy.Err(), strategy.String())
	}
}

func TestStrategyStringUsesTheWordsOfItsConstructors(t *testing.T) {
	require.Equal(t, "none", pawl.None().String())
	require.Equal(t, "fixed 3s, jitter 0.15", pawl.Fixed(3*sec).Jitter(0.15).String())
	require.Equal(t, "exponential 500ms × 2, at most 30s, full jitter", pawl.DefaultStrategy().String())
}

// newRand returns a source whose seed a failing test prints.
func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
