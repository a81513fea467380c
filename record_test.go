package pawl_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// fullJob has a value in every field that a record holds.
func fullJob() *pawl.Envelope {
	policy := pawl.Exponential(5*sec, 2).Cap(time.Hour).Jitter(0.15)
	return &pawl.Envelope{
		ID: pawl.ID{1, 2, 3, 15: 0xff}, Origin: "first", Kind: "mail.welcome",
		Payload: []byte("\x81\xa2to\xa1x"),
		Created: time.Date(2031, 2, 3, 4, 5, 6, 789, time.UTC),
		Headers: map[string]string{"trace": "abc", "": "empty key", "ü": ""},
		Queue:   "second", Seq: math.MaxUint64, Priority: -128,
		NotBefore: time.Date(2031, 2, 3, 4, 5, 6, 999_999_999, time.UTC),
		Timeout:   time.Duration(math.MaxInt64), MaxRetries: 1000, Policy: &policy,
		Attempts: math.MaxInt, Crashes: 4, Failures: 1_000_000,
		Death: &pawl.Death{Reason: pawl.ReasonPoison, At: time.Date(2032, 1, 1, 0, 0, 0, 1, time.UTC)},
	}
}

// requireSameJob compares what a record holds. A time comes back in the zone of
// the reader and an empty payload as one that is not nil.
func requireSameJob(t *testing.T, want, got *pawl.Envelope) {
	t.Helper()
	require.Equal(t, inUTC(want), inUTC(got))
}

func inUTC(e *pawl.Envelope) pawl.Envelope {
	c := *e
	c.Created, c.NotBefore = c.Created.UTC(), c.NotBefore.UTC()
	if c.Death != nil {
		c.Death = &pawl.Death{Reason: c.Death.Reason, At: c.Death.At.UTC()}
	}
	c.Payload = append([]byte{}, c.Payload...)
	return c
}

func TestRecordRoundTrip(t *testing.T) {
	plain := pawl.None()
	everyStrategy := []pawl.Strategy{
		pawl.None(), pawl.Fixed(0), pawl.Fixed(math.MaxInt64).Cap(0), pawl.Fixed(sec).FullJitter(),
		pawl.Exponential(1, 1), pawl.Exponential(sec, math.MaxFloat64).Cap(math.MaxInt64).Jitter(1),
		pawl.DefaultStrategy(),
	}
	jobs := map[string]*pawl.Envelope{
		"full":            fullJob(),
		"minimal":         {Kind: "k"},
		"zero":            {},
		"empty payload":   {Kind: "k", Payload: []byte{}},
		"300 KiB payload": {Kind: "k", Payload: bytes.Repeat([]byte("payload"), 300<<10/7)},
		"long names":      {Kind: strings.Repeat("k", 255), Queue: strings.Repeat("q", 255), Origin: "\xff\xfe"},
		"policy none":     {Kind: "k", Policy: &plain}, // is not the same as no policy
		"priority 127":    {Kind: "k", Priority: 127},
	}
	for _, strategy := range everyStrategy {
		jobs["policy "+strategy.String()] = &pawl.Envelope{Kind: "k", Policy: &strategy}
	}
	for _, year := range []int{1, 1677, 1678, 1969, 1970, 2038, 2106, 2262, 2263, 2514, 9999} {
		at := time.Date(year, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
		jobs["year "+at.Format("2006")] = &pawl.Envelope{
			Kind: "k", Created: at, NotBefore: at.Add(1), Death: &pawl.Death{At: at.Add(2)},
		}
	}
	for name, job := range jobs {
		t.Run(name, func(t *testing.T) {
			got, apart, err := pawl.ParseRecord(pawl.AppendRecord(nil, job, 0))
			require.NoError(t, err)
			require.Zero(t, apart)
			requireSameJob(t, job, got)
			require.Equal(t, job.NotBefore.IsZero(), got.NotBefore.IsZero(), "no time stays no time")
		})
	}
}

func TestRecordLeavesOutAPayloadThatLiesApart(t *testing.T) {
	job := fullJob()
	job.Payload = bytes.Repeat([]byte("x"), 100_000)
	record := pawl.AppendRecord(nil, job, len(job.Payload))
	require.Less(t, len(record), 1000)

	got, apart, err := pawl.ParseRecord(record)
	require.NoError(t, err)
	require.Equal(t, 100_000, apart)
	require.Nil(t, got.Payload)
	got.Payload = job.Payload
	requireSameJob(t, job, got)
}

func TestRecordHoldsNothingThatIsKeptElsewhere(t *testing.T) {
	job := &pawl.Envelope{
		Kind: "k", Delay: time.Hour, State: pawl.Leased, LeasedSince: time.Unix(1, 0),
		History: []pawl.Failure{{Attempt: 1, Error: "x"}},
	}
	require.Equal(t, pawl.AppendRecord(nil, &pawl.Envelope{Kind: "k"}, 0), pawl.AppendRecord(nil, job, 0))
}

func TestAppendRecordAppends(t *testing.T) {
	record := pawl.AppendRecord(nil, fullJob(), 0)
	require.Equal(t, append([]byte("before"), record...), pawl.AppendRecord([]byte("before"), fullJob(), 0))
	for range 20 { // headers are a map, whose order varies
		require.Equal(t, record, pawl.AppendRecord(nil, fullJob(), 0), "equal jobs have equal records")
	}
}

// Encoders and decoders are shared; what one goroutine writes never gets into the
// record of another.
func TestRecordsOfManyGoroutinesDoNotMix(t *testing.T) {
	done := make(chan error)
	for g := range 8 {
		go func() {
			job := fullJob()
			job.Payload = bytes.Repeat([]byte{byte(g)}, 1+g*1000)
			for range 200 {
				got, _, err := pawl.ParseRecord(pawl.AppendRecord(nil, job, 0))
				if err == nil && !bytes.Equal(job.Payload, got.Payload) {
					err = pawl.ErrCorrupt
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		require.NoError(t, <-done)
	}
}

func requireCorrupt(t *testing.T, b []byte, about ...any) {
	t.Helper()
	job, apart, err := pawl.ParseRecord(b)
	require.ErrorIs(t, err, pawl.ErrCorrupt, about...)
	require.Nil(t, job, about...)
	require.Zero(t, apart, about...)
}

func TestEveryFlippedBitOfARecordIsDetected(t *testing.T) {
	record := pawl.AppendRecord(nil, fullJob(), 0)
	for i := range len(record) * 8 {
		record[i/8] ^= 1 << (i % 8)
		requireCorrupt(t, record, "bit %d", i)
		require.ErrorIs(t, pawl.CheckRecord(record), pawl.ErrCorrupt, "CheckRecord sees it too")
		record[i/8] ^= 1 << (i % 8)
	}
	require.NoError(t, pawl.CheckRecord(record))
}

func TestEveryTruncationOfARecordIsDetected(t *testing.T) {
	record := pawl.AppendRecord(nil, fullJob(), 0)
	for n := range len(record) {
		requireCorrupt(t, record[:n], "%d bytes", n)
		require.ErrorIs(t, pawl.CheckRecord(record[:n]), pawl.ErrCorrupt)
		if n >= 5 {
			requireCorrupt(t, seal(record[5:n]), "%d bytes with a right checksum", n)
		}
	}
}

func TestBytesAfterARecordAreDetected(t *testing.T) {
	record := pawl.AppendRecord(nil, fullJob(), 0)
	for _, more := range []string{"\x00", "\xc0", "more"} {
		requireCorrupt(t, append(bytes.Clone(record), more...))
		requireCorrupt(t, seal(append(bytes.Clone(record[5:]), more...)), "with a right checksum")
	}
}

func TestRecordOfAnotherVersionIsRefused(t *testing.T) {
	record := pawl.AppendRecord(nil, fullJob(), 0)
	for _, version := range []byte{0, 2, 255} {
		record[0] = version
		_, _, err := pawl.ParseRecord(record)
		require.ErrorIs(t, err, pawl.ErrCorrupt)
		require.ErrorContains(t, err, "version", "the reader may need a newer build, and is told")
	}
}

// seal makes a record out of a body that nobody but an attacker writes.
func seal(body []byte) []byte {
	sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	return append(binary.LittleEndian.AppendUint32([]byte{1}, sum), body...)
}

func TestSealIsTheFormatOfRecords(t *testing.T) {
	record := pawl.AppendRecord(nil, fullJob(), 0)
	require.Equal(t, record, seal(record[5:]))
}
