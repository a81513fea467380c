package pawl_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// FuzzRecord looks for a job that does not come back from its record as it was. Where
// FuzzParseRecord begins with bytes that anybody wrote, this begins with jobs.
func FuzzRecord(f *testing.F) {
	f.Add("kind", "queue", "origin", []byte("payload"), "key", "value", int64(1), int64(2), int64(3), uint64(4), int8(5))
	f.Add("", "\xff", "\x00", []byte(nil), "", "", int64(-1)<<63, int64(1)<<62, int64(999_999_999), ^uint64(0), int8(-128))
	f.Add("k", "q", "o", []byte{0xdd, 0xff, 0xff, 0xff, 0xff}, "\x1b", "u", int64(1)<<40, int64(0), int64(-1), uint64(1)<<63, int8(127))

	f.Fuzz(func(t *testing.T, kind, queue, origin string, payload []byte, key, value string, a, b, nanos int64, seq uint64, priority int8) {
		if a > 1<<62 || a < -1<<62 {
			a >>= 2 // no time.Time has such seconds
		}
		at := time.Unix(a, nanos&(1<<30-1)%1_000_000_000)
		count := int(uint64(b) >> 1)
		policy := pawl.Fixed(time.Duration(count)).Cap(time.Duration(count / 2))
		job := &pawl.Envelope{
			ID: pawl.ID{1: byte(seq)}, Kind: kind, Queue: queue, Origin: origin, Payload: payload, Headers: map[string]string{key: value},
			Seq: seq, Priority: priority, Created: at, NotBefore: at.Add(1), MaxRetries: count, Attempts: count, Crashes: count, Failures: count,
			Timeout: time.Duration(b), Policy: &policy, Death: &pawl.Death{Reason: pawl.Reason(value), At: at},
		}
		if priority&1 == 0 {
			job.IdempotencyKey, job.IdempotencyTTL, job.UniqueKey, job.Deadline, job.Retain = key, time.Duration(a), value, at, time.Duration(b)
			job.KeyID, job.Signature, job.Cancelled, job.BackoffSince, job.Completed = key, []byte(value), true, at, at.Add(2)
		}
		for _, apart := range []int{0, 1 + count/2} {
			want := *job
			if apart != 0 {
				want.Payload = nil
			}
			record := driver.AppendRecord(nil, job, apart)
			got, size, err := driver.ParseRecord(record)
			if tooLong(job) {
				return // no queue takes it, and a record of it need not be read
			}
			require.NoError(t, err)
			require.Equal(t, describe(&want, apart), describe(got, size))
			require.Equal(t, record, driver.AppendRecord(nil, withPayload(got, job.Payload), size), "the same job has the same record")
		}
	})
}

// tooLong reports whether a name or key is longer than any queue takes.
func tooLong(e *pawl.Envelope) bool {
	for _, name := range []string{e.Kind, e.Queue, e.Origin, e.IdempotencyKey, e.UniqueKey, e.KeyID} {
		if len(name) > pawl.MaxNameBytes {
			return true
		}
	}
	return len(e.Signature) > 64
}

func withPayload(e *pawl.Envelope, payload []byte) *pawl.Envelope {
	e.Payload = payload
	return e
}

// FuzzParseID looks for a text that is read as an ID and written as another one.
func FuzzParseID(f *testing.F) {
	for _, s := range []string{"", "019caa00-0000-7000-8000-000000000001", "019CAA00-0000-7000-8000-00000000000F", "{}", "019caa00000070008000000000000001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := pawl.ParseID(s)
		if err != nil {
			require.Less(t, len(err.Error()), 400, "an error does not repeat a long text")
			return
		}
		again, err := pawl.ParseID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, again)
		require.Len(t, s, len(id.String()), "there is one way to write an ID")
	})
}

// FuzzStrategy looks for a delay that is negative, beyond its cap, or shorter than the one
// before it.
func FuzzStrategy(f *testing.F) {
	f.Add(int64(time.Second), 2.0, int64(time.Hour), 0.15, 3, 0.5)
	f.Add(int64(1)<<62, 1e300, int64(0), 1.0, 1<<30, 0.999)
	f.Add(int64(-1), 0.5, int64(-1), 2.0, -1, -1.0)
	f.Fuzz(func(t *testing.T, base int64, multiplier float64, most int64, fraction float64, attempt int, random float64) {
		s := pawl.Exponential(time.Duration(base), multiplier).Cap(time.Duration(most))
		if s.Err() != nil || attempt < 1 || !(random >= 0 && random < 1) {
			return
		}
		for _, jittered := range []pawl.Strategy{s, s.FullJitter(), s.Jitter(fraction)} {
			if jittered.Err() != nil {
				continue
			}
			delay, again := jittered.Delay(pawl.Retry{Attempt: attempt, Random: random})
			require.True(t, again)
			require.GreaterOrEqual(t, delay, time.Duration(0))
			require.LessOrEqual(t, delay, time.Duration(most))
		}
		if attempt < 1<<30 && multiplier >= 1.0001 { // nearer to 1 the rounding is larger than the growth
			require.LessOrEqual(t, s.Before(attempt, random), s.Before(attempt+1, random))
		}
	})
}
