package bolt

import (
	"bytes"
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// edges are times at which a number might overflow or change its sign.
func edges() (times []time.Time) {
	for _, at := range []time.Time{
		{}, // year 1
		time.Unix(0, 0),
		time.Unix(math.MaxInt32, 0),  // 2038
		time.Unix(math.MaxUint32, 0), // 2106
		time.Unix(0, math.MaxInt64),  // 2262
		time.Unix(0, math.MinInt64),  // 1677
		time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(200_000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(-200_000, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		for _, d := range []time.Duration{-time.Second, -1, 0, 1, time.Second} {
			times = append(times, at.Add(d))
		}
	}
	return times
}

func TestTimeKeysSortByTime(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	first, last := time.Date(-200_000, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(200_000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	times := edges()
	for range 2000 {
		times = append(times, time.Unix(first+random.Int64N(last-first), random.Int64N(1e9)))
	}
	near := len(times)
	for _, at := range times[:near] { // neighbors, which differ in few bytes
		times = append(times, at.Add(time.Duration(random.Int64N(int64(4*time.Second))-int64(2*time.Second))))
	}
	keys := make([][]byte, len(times))
	for i, at := range times {
		keys[i] = appendTime(nil, at)
		require.Len(t, keys[i], timeWidth)
		require.True(t, timeAt(keys[i]).Equal(at), at)
	}
	slices.SortFunc(times, time.Time.Compare)
	slices.SortFunc(keys, bytes.Compare)
	for i, at := range times {
		require.True(t, timeAt(keys[i]).Equal(at), "%v is at the place of %v", timeAt(keys[i]), at)
	}
}

func FuzzTimeKey(f *testing.F) {
	for _, at := range edges() {
		f.Add(at.Unix(), int64(at.Nanosecond()), int64(0), int64(1))
	}
	f.Fuzz(func(t *testing.T, s1, n1, s2, n2 int64) {
		// time.Time has no years beyond about 290 billion.
		const limit = 1 << 62
		if s1 < -limit || s1 > limit || s2 < -limit || s2 > limit {
			t.Skip("seconds that no time.Time has")
		}
		a, b := time.Unix(s1, n1), time.Unix(s2, n2)
		x, y := appendTime(nil, a), appendTime(nil, b)
		require.True(t, timeAt(x).Equal(a))
		require.True(t, timeAt(y).Equal(b))
		require.Equal(t, a.Compare(b), bytes.Compare(x, y), "%v and %v", a, b)
	})
}

// randomEnvelope has few distinct values, so ties are common.
func randomEnvelope(random *rand.Rand) *pawl.Envelope {
	pick := func(values ...int64) int64 { return values[random.IntN(len(values))] }
	return &pawl.Envelope{
		Kind:      string([]byte{"ab\xff\x00"[random.IntN(4)], "ab\xff\x00"[random.IntN(4)]}[:1+random.IntN(2)]),
		Priority:  int8(pick(-128, -127, -1, 0, 1, 126, 127)),
		NotBefore: time.Unix(pick(-1<<40, -1, 0, 1, 255, 256, 1<<40), pick(0, 1, 255, 256, 999_999_999)),
		Seq:       uint64(pick(1, 255, 256, 1<<32, 1<<62)),
		Crashes:   int(pick(0, 1, 2, 3, 1000)),
	}
}

func TestRowKeysSortAsDocumented(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	queue := func() queueNumber { return []queueNumber{1, 2, 255, 256, math.MaxUint32}[random.IntN(5)] }
	for range 10_000 {
		a, b := randomEnvelope(random), randomEnvelope(random)
		n, m := queue(), queue()
		nk, mk := line{n, kindNumber(queue())}, line{m, kindNumber(queue())}

		require.Equal(t,
			cmp.Or(cmp.Compare(n, m), cmp.Compare(nk.kind, mk.kind), cmp.Compare(min(a.Crashes, 2), min(b.Crashes, 2)), documentedOrder(a, b)),
			bytes.Compare(readyKey(nil, nk, a), readyKey(nil, mk, b)),
			"ready: queue, kind, lane, priority, since, sequence")
		require.Equal(t,
			cmp.Or(a.NotBefore.Compare(b.NotBefore), cmp.Compare(a.Seq, b.Seq)),
			bytes.Compare(delayedKey(nil, a), delayedKey(nil, b)),
			"delayed: due, sequence")
		require.Equal(t,
			cmp.Or(cmp.Compare(n, m), a.NotBefore.Compare(b.NotBefore), cmp.Compare(a.Seq, b.Seq)),
			bytes.Compare(failedKey(nil, n, a.NotBefore, a.Seq), failedKey(nil, m, b.NotBefore, b.Seq)),
			"failed: queue, time of death, sequence")
	}
}

func TestReadyKeyHasItsWidth(t *testing.T) {
	require.Len(t, readyKey(nil, line{math.MaxUint32, math.MaxUint32}, &pawl.Envelope{Seq: math.MaxUint64, Priority: -128}), readyKeyWidth)
}

func TestHistoryKeysSortByNumber(t *testing.T) {
	id := pawl.NewID(time.Now())
	for n := range 1001 {
		require.Negative(t, bytes.Compare(historyKey(nil, id, n), historyKey(nil, id, n+1)))
	}
}

func TestRowFoundUnderAnotherKeyIsCorrupt(t *testing.T) {
	sealed := seal([]byte("key"), []byte("value"))
	b, err := unseal([]byte("key"), sealed, 5)
	require.NoError(t, err)
	require.Equal(t, "value", string(b))
	_, err = unseal([]byte("kez"), sealed, 5)
	require.ErrorIs(t, err, pawl.ErrCorrupt)
	_, err = unseal([]byte("key"), sealed, 4)
	require.ErrorIs(t, err, pawl.ErrCorrupt)
	for i := range sealed {
		flipped := bytes.Clone(sealed)
		flipped[i] ^= 1
		_, err = unseal([]byte("key"), flipped, -1)
		require.ErrorIs(t, err, pawl.ErrCorrupt)
	}
	for n := range sealed {
		_, err = unseal([]byte("key"), sealed[:n], -1)
		require.ErrorIs(t, err, pawl.ErrCorrupt)
	}
}
