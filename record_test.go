package pawl_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
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

		Key: "tenant \xff", Cost: pawl.MaxCost, Weight: pawl.MaxTurns, HoldsKey: true, FairTag: 1 << 60, IdempotencyKey: "order \xff", IdempotencyTTL: math.MaxInt64,
		UniqueKey: "customer", UniqueIn: pawl.States(),
		Deadline: time.Date(2033, 1, 1, 0, 0, 0, 2, time.UTC), Retain: math.MaxInt64,
		KeyID: "2031", Signature: bytes.Repeat([]byte{0xfe}, 32), Cancelled: true,
		BackoffSince: time.Date(2034, 1, 1, 0, 0, 0, 3, time.UTC),
		Completed:    time.Date(2035, 1, 1, 0, 0, 0, 4, time.UTC),
		Result:       []byte("\x93\x01\x02\x03"),
		Group:        "import/7",
		Cursor:       []byte("\x01"),
	}
}

// Rule: what a job is stays; what the queue before counted is not counted here.
func TestAcceptBeginsAnew(t *testing.T) {
	now := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	e := fullJob()
	e.State, e.LeasedSince, e.History = pawl.Dead, now, []pawl.Failure{{Attempt: 1}}
	e.NotBefore = time.Time{}

	want := *e
	want.NotBefore = now
	want.Attempts, want.Crashes, want.Failures, want.Death, want.History = 0, 0, 0, nil, nil
	want.Cancelled, want.HoldsKey, want.FairTag, want.BackoffSince, want.Completed, want.Result = false, false, 0, time.Time{}, time.Time{}, nil
	want.State, want.LeasedSince = "", time.Time{}
	driver.Accept(e, now)
	require.Equal(t, want, *e)
}

// withoutRare takes away what version 1 of the format did not have.
func withoutRare(e *pawl.Envelope) *pawl.Envelope {
	e.IdempotencyKey, e.IdempotencyTTL, e.UniqueKey, e.UniqueIn, e.Key, e.Group = "", 0, "", nil, "", ""
	e.Cost, e.Weight = 0, 0
	e.Deadline, e.Retain, e.KeyID, e.Signature = time.Time{}, 0, "", nil
	e.Cancelled, e.HoldsKey, e.FairTag, e.BackoffSince, e.Completed, e.Result, e.Cursor = false, false, 0, time.Time{}, time.Time{}, nil, nil
	return e
}

// requireSameJob compares what a record holds. A time comes back in the zone of
// the reader and an empty payload as one that is not nil.
func requireSameJob(t *testing.T, want, got *pawl.Envelope) {
	t.Helper()
	require.Equal(t, inUTC(want), inUTC(got))
}

func inUTC(e *pawl.Envelope) pawl.Envelope {
	c := *e
	for _, t := range []*time.Time{&c.Created, &c.NotBefore, &c.Deadline, &c.BackoffSince, &c.Completed} {
		*t = t.UTC()
	}
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

		// Each rare field alone brings them all.
		"key":               {Kind: "k", Key: "t"},
		"key and deadline":  {Kind: "k", Key: "t", Deadline: time.Unix(1, 0)},
		"key and result":    {Kind: "k", Key: "t", Result: []byte{1}},
		"key and group":     {Kind: "k", Key: "t", Group: "g"},
		"key and cursor":    {Kind: "k", Key: "t", Cursor: []byte{1}},
		"key and tag":       {Kind: "k", Key: "t", FairTag: 1},
		"a held key":        {Kind: "k", Key: "t", HoldsKey: true},
		"result":            {Kind: "k", Result: []byte{}},
		"cost":              {Kind: "k", Cost: 2},
		"weight":            {Kind: "k", Weight: 2},
		"cost and weight":   {Kind: "k", Cost: 2, Weight: pawl.MaxTurns},
		"tag and weight":    {Kind: "k", FairTag: 1, Weight: 2},
		"tag":               {Kind: "k", FairTag: 1},
		"idempotency key":   {Kind: "k", IdempotencyKey: "i"},
		"idempotency TTL":   {Kind: "k", IdempotencyTTL: 1},
		"unique key":        {Kind: "k", UniqueKey: "u"},
		"unique states":     {Kind: "k", UniqueIn: []pawl.State{pawl.Ready}},
		"deadline":          {Kind: "k", Deadline: time.Unix(0, 0)},
		"retention":         {Kind: "k", Retain: 1},
		"key ID":            {Kind: "k", KeyID: "k"},
		"signature":         {Kind: "k", Signature: []byte{0}},
		"empty signature":   {Kind: "k", Signature: []byte{}},
		"cancelled":         {Kind: "k", Cancelled: true},
		"backoff":           {Kind: "k", BackoffSince: time.Unix(0, 1)},
		"completed":         {Kind: "k", Completed: time.Unix(1, 0)},
		"deadline of 1900":  {Kind: "k", Deadline: time.Date(1900, 1, 1, 0, 0, 0, 999_999_999, time.UTC)},
		"keys of 255 bytes": {Kind: "k", UniqueKey: strings.Repeat("u", 255), KeyID: strings.Repeat("i", 255)},
	}
	for _, state := range pawl.States() {
		jobs["unique in "+string(state)] = &pawl.Envelope{Kind: "k", UniqueKey: "u", UniqueIn: []pawl.State{state}}
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
			got, apart, err := driver.ParseRecord(driver.AppendRecord(nil, job, 0))
			require.NoError(t, err)
			require.Zero(t, apart)
			requireSameJob(t, job, got)
			require.Equal(t, job.NotBefore.IsZero(), got.NotBefore.IsZero(), "no time stays no time")
		})
	}
}

// Rule: a job without rare fields pays one byte for them.
func TestRareFieldsCostOneByteWhereThereAreNone(t *testing.T) {
	plain := driver.AppendRecord(nil, withoutRare(fullJob()), 0)
	require.Len(t, plain, len(v1Record(t, v1Full))+1)
	job := withoutRare(fullJob())
	job.IdempotencyKey = "i"
	require.Greater(t, len(driver.AppendRecord(nil, job, 0)), len(plain)+10)
}

func TestRecordLeavesOutAPayloadThatLiesApart(t *testing.T) {
	job := fullJob()
	job.Payload = bytes.Repeat([]byte("x"), 100_000)
	record := driver.AppendRecord(nil, job, len(job.Payload))
	require.Less(t, len(record), 1000)

	got, apart, err := driver.ParseRecord(record)
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
	require.Equal(t, driver.AppendRecord(nil, &pawl.Envelope{Kind: "k"}, 0), driver.AppendRecord(nil, job, 0))
}

func TestAppendRecordAppends(t *testing.T) {
	record := driver.AppendRecord(nil, fullJob(), 0)
	require.Equal(t, append([]byte("before"), record...), driver.AppendRecord([]byte("before"), fullJob(), 0))
	for range 20 { // headers are a map, whose order varies
		require.Equal(t, record, driver.AppendRecord(nil, fullJob(), 0), "equal jobs have equal records")
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
				got, _, err := driver.ParseRecord(driver.AppendRecord(nil, job, 0))
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
	job, apart, err := driver.ParseRecord(b)
	require.ErrorIs(t, err, pawl.ErrCorrupt, about...)
	require.Nil(t, job, about...)
	require.Zero(t, apart, about...)
}

func TestEveryFlippedBitOfARecordIsDetected(t *testing.T) {
	record := driver.AppendRecord(nil, fullJob(), 0)
	for i := range len(record) * 8 {
		record[i/8] ^= 1 << (i % 8)
		requireCorrupt(t, record, "bit %d", i)
		require.ErrorIs(t, driver.CheckRecord(record), pawl.ErrCorrupt, "CheckRecord sees it too")
		record[i/8] ^= 1 << (i % 8)
	}
	require.NoError(t, driver.CheckRecord(record))
}

func TestEveryTruncationOfARecordIsDetected(t *testing.T) {
	record := driver.AppendRecord(nil, fullJob(), 0)
	for n := range len(record) {
		requireCorrupt(t, record[:n], "%d bytes", n)
		require.ErrorIs(t, driver.CheckRecord(record[:n]), pawl.ErrCorrupt)
		if n >= 5 {
			requireCorrupt(t, seal(record[5:n]), "%d bytes with a right checksum", n)
		}
	}
}

func TestBytesAfterARecordAreDetected(t *testing.T) {
	record := driver.AppendRecord(nil, fullJob(), 0)
	for _, more := range []string{"\x00", "\xc0", "more"} {
		requireCorrupt(t, append(bytes.Clone(record), more...))
		requireCorrupt(t, seal(append(bytes.Clone(record[5:]), more...)), "with a right checksum")
	}
}

func TestRecordOfAnotherVersionIsRefused(t *testing.T) {
	record := driver.AppendRecord(nil, fullJob(), 0)
	for _, version := range []byte{0, 3, 255} {
		record[0] = version
		_, _, err := driver.ParseRecord(record)
		require.ErrorIs(t, err, pawl.ErrCorrupt)
		require.ErrorContains(t, err, "version", "the reader may need a newer build, and is told")
	}
}

// seal makes a record out of a body that nobody but an attacker writes.
func seal(body []byte) []byte { return sealAs(2, body) }

func sealAs(version byte, body []byte) []byte {
	sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	return append(binary.LittleEndian.AppendUint32([]byte{version}, sum), body...)
}

func TestSealIsTheFormatOfRecords(t *testing.T) {
	record := driver.AppendRecord(nil, fullJob(), 0)
	require.Equal(t, record, seal(record[5:]))
}

// Records as the last build that wrote version 1 made them: of fullJob without its
// rare fields, of a job that has a kind alone, and of that with 1000 bytes apart.
const (
	v1Full = "01a440d414dc0014cfffffffffffffffffc410010203000000000000000000000000ffac6d61696c2e77656c636f6d65a56669727374a6" +
		"7365636f6e64ce72e8c6f2cd0315ce72e8c6f2ce3b9ac9ffd080cd03e8cf7fffffffffffffff04ce000f4240cf7fffffffffffffff9702" +
		"cf000000012a05f200cb4000000000000000c3cf0000034630b8a00001cb3fc333333333333383a0a9656d707479206b6579a574726163" +
		"65a3616263a2c3bca093a6706f69736f6ece749e3f800100c40681a2746fa178"
	v1Small = "01bff31bfddc001400c41000000000000000000000000000000000a16ba0a0d3fffffff1886e090000d3fffffff1886e09000000000000" +
		"0000c0c0c000c400"
	v1Apart = "014ac1d70adc001400c41000000000000000000000000000000000a16ba0a0d3fffffff1886e090000d3fffffff1886e09000000000000" +
		"0000c0c0c0cd03e8c0"
)

func v1Record(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	require.NoError(t, err)
	require.Equal(t, byte(1), b[0])
	return b
}

// Rule: what an earlier build stored, this one reads.
func TestRecordOfVersion1IsRead(t *testing.T) {
	for text, want := range map[string]*pawl.Envelope{
		v1Full: withoutRare(fullJob()), v1Small: {Kind: "k", Payload: []byte{}}, v1Apart: {Kind: "k"},
	} {
		record := v1Record(t, text)
		require.NoError(t, driver.CheckRecord(record))
		got, apart, err := driver.ParseRecord(record)
		require.NoError(t, err)
		requireSameJob(t, want, got)
		require.Equal(t, text == v1Apart, apart == 1000)

		again := driver.AppendRecord(nil, got, apart)
		require.Equal(t, byte(2), again[0], "it is written as a record of today")
		got, _, err = driver.ParseRecord(again)
		require.NoError(t, err)
		requireSameJob(t, want, got)
	}
}

// Rule: the fields of one version under the number of the other are damage.
func TestVersionsDoNotPassForOneAnother(t *testing.T) {
	for _, text := range []string{v1Full, v1Small, v1Apart} {
		requireCorrupt(t, sealAs(2, v1Record(t, text)[5:]))
	}
	for _, job := range []*pawl.Envelope{fullJob(), {Kind: "k"}} {
		requireCorrupt(t, sealAs(1, driver.AppendRecord(nil, job, 0)[5:]))
	}
}

func TestEveryFlippedBitOfAVersion1RecordIsDetected(t *testing.T) {
	record := v1Record(t, v1Full)
	for i := range len(record) * 8 {
		record[i/8] ^= 1 << (i % 8)
		requireCorrupt(t, record, "bit %d", i)
		record[i/8] ^= 1 << (i % 8)
	}
}
