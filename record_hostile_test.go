package pawl_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// raw is a field as bytes of MessagePack.
type raw = msgpack.RawMessage

// Where the fields of a record are.
const (
	fieldSeq = iota
	fieldID
	fieldKind
	fieldOrigin
	fieldQueue
	fieldCreated
	fieldCreatedNanos
	fieldNotBefore
	fieldNotBeforeNanos
	fieldPriority
	fieldMaxRetries
	fieldAttempts
	fieldCrashes
	fieldFailures
	fieldTimeout
	fieldPolicy
	fieldHeaders
	fieldDeath
	fieldRare
	fieldApart
	fieldPayload
	fieldsInAll
)

// Where the rare fields are.
const (
	rareIdempotencyKey = iota
	rareIdempotencyTTL
	rareUniqueKey
	rareUniqueIn
	rareDeadline
	rareRetain
	rareKeyID
	rareSignature
	rareCancelled
	rareBackoffSince
	rareCompleted
	rareKey
	rareResult
	rareGroup
	rareCursor
	rareHoldsKey
	rareFairTag
	rareInAll
)

// rare is the rare fields of a record that parses, value by value.
func rare() []any {
	return []any{"i", 1, "u", 5, []any{2, 3}, 4, "key", []byte("signature"), true, []any{6, 7}, []any{8, 9}, "t", []byte("result"), "g", []byte("cursor"), true, 3}
}

// fields is a record that parses, value by value.
func fields() []any {
	return []any{
		1, make([]byte, 16), "kind", "origin", "queue", 1, 2, 3, 4, -5, 6, 7, 8, 9, 10,
		[]any{2, 5, 2.0, true, 50, 1, 0.15}, map[string]string{"k": "v"}, []any{"poison", 1, 2},
		rare(), 0, []byte("payload"),
	}
}

func body(t testing.TB, values []any) []byte {
	t.Helper()
	b, err := msgpack.Marshal(values)
	require.NoError(t, err)
	return b
}

func TestRecordFieldsAreWhereTheseTestsPutThem(t *testing.T) {
	require.Len(t, fields(), fieldsInAll)
	job, apart, err := driver.ParseRecord(seal(body(t, fields())))
	require.NoError(t, err)
	require.Zero(t, apart)
	require.Equal(t, "kind", job.Kind)
	require.Equal(t, int8(-5), job.Priority)
	require.Equal(t, map[string]string{"k": "v"}, job.Headers)
	require.Equal(t, pawl.ReasonPoison, job.Death.Reason)
	require.Equal(t, "payload", string(job.Payload))
	require.Len(t, rare(), rareInAll)
	require.Equal(t, "i", job.IdempotencyKey)
	require.Equal(t, "u", job.UniqueKey)
	require.Equal(t, []pawl.State{pawl.Ready, pawl.Leased}, job.UniqueIn)
	require.True(t, job.Deadline.Equal(time.Unix(2, 3)))
	require.Equal(t, "key", job.KeyID)
	require.Equal(t, "signature", string(job.Signature))
	require.True(t, job.Cancelled)
	require.True(t, job.BackoffSince.Equal(time.Unix(6, 7)))
	require.True(t, job.Completed.Equal(time.Unix(8, 9)))
	require.Equal(t, "exponential 5ns × 2, at most 50ns, jitter 0.15", job.Policy.String())
}

// A checksum only tells that the bytes are what somebody wrote. What is in them is
// checked all the same, before anything of the size that they declare is made.
func TestHostileRecordIsRefused(t *testing.T) {
	for name, body := range map[string][]byte{
		"nothing":                     {},
		"nil":                         {0xc0},
		"a map":                       {0x80},
		"array of 4 G values":         {0xdd, 0xff, 0xff, 0xff, 0xff},
		"map of 4 G pairs":            {0xdf, 0xff, 0xff, 0xff, 0xff},
		"4 GiB of bytes":              {0xc6, 0xff, 0xff, 0xff, 0xff},
		"unused code":                 {0xc1},
		"nesting without an end":      bytes.Repeat([]byte{0x91}, 5<<20),
		"nesting that ends, too deep": append(bytes.Repeat([]byte{0x91}, 100), 0xc0),
		"no fields":                   {0x90},
		"one field too few":           body(t, fields()[:fieldPayload]),
		"one field too many":          body(t, append(fields(), nil)),
	} {
		t.Run(name, func(t *testing.T) { requireCorrupt(t, seal(body)) })
	}
}

func TestHostileFieldIsRefused(t *testing.T) {
	type field struct {
		at    int
		value any
	}
	// An extension whose data begin like a map leads msgpack's decoder inside.
	extension := func(data ...byte) raw { return append(raw{0xc7, byte(len(data)), 0x05}, data...) }
	tests := map[string]field{
		"sequence is a string":   {fieldSeq, "1"},
		"ID of 15 bytes":         {fieldID, make([]byte, 15)},
		"ID of 17 bytes":         {fieldID, make([]byte, 17)},
		"no ID":                  {fieldID, nil},
		"ID is a number":         {fieldID, 1},
		"kind is a number":       {fieldKind, 1},
		"kind is a list":         {fieldKind, []any{"kind"}},
		"queue is a map":         {fieldQueue, map[string]any{}},
		"seconds are a float":    {fieldCreated, 1.5},
		"nanoseconds below 0":    {fieldCreatedNanos, -1},
		"nanoseconds of 1 s":     {fieldNotBeforeNanos, 1_000_000_000},
		"priority 128":           {fieldPriority, 128},
		"priority -129":          {fieldPriority, -129},
		"max retries below 0":    {fieldMaxRetries, -1},
		"attempts below 0":       {fieldAttempts, -1},
		"attempts beyond int64":  {fieldAttempts, uint64(math.MaxUint64)},
		"crashes below 0":        {fieldCrashes, -1},
		"failures below 0":       {fieldFailures, int64(math.MinInt64)},
		"timeout is true":        {fieldTimeout, true},
		"policy of 6 fields":     {fieldPolicy, []any{2, 5, 2.0, true, 50, 1}},
		"policy is a map":        {fieldPolicy, map[string]any{}},
		"unknown strategy":       {fieldPolicy, []any{3, 5, 2.0, true, 50, 1, 0.15}},
		"strategy 256 + 1":       {fieldPolicy, []any{257, 5, 2.0, true, 50, 1, 0.15}},
		"unknown jitter":         {fieldPolicy, []any{2, 5, 2.0, true, 50, 3, 0.15}},
		"jitter 256 + 1":         {fieldPolicy, []any{2, 5, 2.0, true, 50, 257, 0.15}},
		"negative base":          {fieldPolicy, []any{2, -5, 2.0, true, 50, 1, 0.15}},
		"negative cap":           {fieldPolicy, []any{2, 5, 2.0, true, -50, 1, 0.15}},
		"multiplier below 1":     {fieldPolicy, []any{2, 5, 0.5, true, 50, 1, 0.15}},
		"multiplier NaN":         {fieldPolicy, []any{2, 5, math.NaN(), true, 50, 1, 0.15}},
		"fraction above 1":       {fieldPolicy, []any{2, 5, 2.0, true, 50, 1, 1.5}},
		"fraction NaN":           {fieldPolicy, []any{2, 5, 2.0, true, 50, 1, math.NaN()}},
		"headers are a list":     {fieldHeaders, []any{"k", "v"}},
		"header key is a number": {fieldHeaders, map[int]string{1: "v"}},
		"header is a number":     {fieldHeaders, map[string]int{"k": 1}},
		"4 G headers hidden":     {fieldHeaders, extension(0xdf, 0xff, 0xff, 0xff, 0xff)},
		"no headers hidden":      {fieldHeaders, extension(0x80)},
		"a payload of 4 GiB hidden behind the headers": {
			fieldHeaders, extension(0x80, 0xc0, 0x00, 0xc6, 0xff, 0xff, 0xff, 0xff),
		},
		"small headers hidden":   {fieldHeaders, raw{0xd4, 0x05, 0x81}},
		"death of 2 fields":      {fieldDeath, []any{"poison", 1}},
		"death is a string":      {fieldDeath, "poison"},
		"apart below 0":          {fieldApart, -1},
		"payload here and apart": {fieldApart, 7},
		"payload neither":        {fieldPayload, nil},
		"payload is a number":    {fieldPayload, 7},
		"payload is a list":      {fieldPayload, []any{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			values := fields()
			values[test.at] = test.value
			requireCorrupt(t, seal(body(t, values)))
		})
	}
}

func TestHostileRareFieldIsRefused(t *testing.T) {
	type field struct {
		at    int
		value any
	}
	huge := raw{0xc6, 0xff, 0xff, 0xff, 0xff}
	for name, test := range map[string]field{
		"idempotency key is a number":   {rareIdempotencyKey, 1},
		"idempotency key is a list":     {rareIdempotencyKey, []any{"i"}},
		"idempotency TTL is a string":   {rareIdempotencyTTL, "1"},
		"idempotency TTL is a float":    {rareIdempotencyTTL, 1.5},
		"unique key is a map":           {rareUniqueKey, map[string]any{}},
		"a state that there is not":     {rareUniqueIn, 1 << 6},
		"states below 0":                {rareUniqueIn, -1},
		"states beyond 16 bits":         {rareUniqueIn, 1<<16 + 1},
		"states beyond 64 bits":         {rareUniqueIn, uint64(math.MaxUint64)},
		"deadline is a number":          {rareDeadline, 2},
		"deadline of one field":         {rareDeadline, []any{2}},
		"deadline of three fields":      {rareDeadline, []any{2, 3, 4}},
		"deadline with -1 ns":           {rareDeadline, []any{2, -1}},
		"deadline with 1 s of ns":       {rareDeadline, []any{2, 1_000_000_000}},
		"deadline is a map":             {rareDeadline, map[string]any{"s": 2}},
		"deadline of 4 G fields":        {rareDeadline, raw{0xdd, 0xff, 0xff, 0xff, 0xff}},
		"retention is nil in a list":    {rareRetain, []any{nil}},
		"key ID is true":                {rareKeyID, true},
		"signature is a number":         {rareSignature, 7},
		"signature is a list":           {rareSignature, []any{1}},
		"signature of 4 GiB":            {rareSignature, huge},
		"signature in an extension":     {rareSignature, raw{0xc7, 0x02, 0x05, 0xc4, 0x01}},
		"cancelled is a number":         {rareCancelled, 1},
		"backoff without nanoseconds":   {rareBackoffSince, []any{2, nil, nil}},
		"completed is a string":         {rareCompleted, "now"},
		"completed nested without end":  {rareCompleted, raw(bytes.Repeat([]byte{0x91}, 1<<20))},
		"key is a list":                 {rareKey, []any{1}},
		"result is a number":            {rareResult, 1},
		"result of 4 GiB":               {rareResult, huge},
		"group is a number":             {rareGroup, 1},
		"group is a list":               {rareGroup, []any{1}},
		"cursor is a number":            {rareCursor, 1},
		"cursor of 4 GiB":               {rareCursor, huge},
		"holding a key is a number":     {rareHoldsKey, 1},
		"tag is a string":               {rareFairTag, "3"},
		"tag of none":                   {rareFairTag, 0},
		"tag far ahead":                 {rareFairTag, int64(math.MaxInt64)},
		"seconds are a string":          {rareCompleted, []any{"1", 2}},
		"nanoseconds are a list":        {rareCompleted, []any{1, []any{}}},
		"nanoseconds are a big integer": {rareCompleted, []any{1, int64(math.MaxInt64)}},
	} {
		t.Run(name, func(t *testing.T) {
			values, some := fields(), rare()
			some[test.at] = test.value
			values[fieldRare] = some
			requireCorrupt(t, seal(body(t, values)))
		})
	}
	for name, value := range map[string]any{
		"too few":        rare()[:rareFairTag-1],
		"too many":       append(rare(), nil),
		"none":           []any{},
		"a map":          map[string]any{"deadline": 1},
		"a string":       "rare",
		"in a list":      []any{rare()},
		"4 G of them":    raw{0xdd, 0xff, 0xff, 0xff, 0xff},
		"in a extension": raw{0xc7, 0x02, 0x05, 0x9b, 0xc0},
	} {
		t.Run(name, func(t *testing.T) {
			values := fields()
			values[fieldRare] = value
			requireCorrupt(t, seal(body(t, values)))
		})
	}
}

// Rule: rare fields that say nothing are as good as none, and whatever is read means
// the same once it was written again.
func TestRareFieldsSurviveRewriting(t *testing.T) {
	for name, some := range map[string][]any{
		"full":                rare(),
		"empty":               {"", 0, "", 0, nil, 0, "", nil, false, nil, nil, "", nil, "", nil, false},
		"states without key":  {"", 0, "", 2, nil, 0, "", nil, false, nil, nil, "", nil, "", nil, false},
		"an empty signature":  {"", 0, "", 0, nil, 0, "", []byte{}, false, nil, nil, "", nil, "", nil, false},
		"the time that is no": {"", 0, "", 0, []any{int64(-62135596800), 0}, 0, "", nil, false, nil, nil, "", nil, "", nil, false},
		"negative durations":  {"", -1, "", 0, nil, -1, "", nil, false, nil, nil, "", nil, "", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			values := fields()
			values[fieldRare] = some
			job, apart, err := driver.ParseRecord(seal(body(t, values)))
			require.NoError(t, err)
			again, _, err := driver.ParseRecord(driver.AppendRecord(nil, job, apart))
			require.NoError(t, err)
			require.Equal(t, describe(job, 0), describe(again, 0))
			requireSameJob(t, job, again)
		})
	}
}

// An ID of 17 bytes would hide a field, and all that follow would be read as the
// ones before them.
func TestFieldHiddenInAnIDIsRefused(t *testing.T) {
	hidden := fields()
	hidden[fieldID] = append(make([]byte, 16), 0xa0)
	hidden = append(slices.Delete(hidden, fieldKind, fieldKind+1), nil)
	requireCorrupt(t, seal(body(t, hidden)))
}

// describe writes out everything that a record holds. NaN, which an unused number
// of a policy may be, equals itself here.
func describe(e *pawl.Envelope, apart int) string {
	c := inUTC(e)
	policy, death := "", ""
	if c.Policy != nil {
		policy = fmt.Sprintf("%#v", *c.Policy)
	}
	if c.Death != nil {
		death = fmt.Sprintf("%q %v", c.Death.Reason, c.Death.At)
	}
	c.Policy, c.Death = nil, nil
	if len(c.Headers) == 0 {
		c.Headers = nil
	}
	return fmt.Sprintf("%#v %s %s %d", c, policy, death, apart)
}

// FuzzParseRecord looks for a panic, and for a record that means something else
// once it was written again. The bytes are tried as they are and as the body of a
// record, since no fuzzer finds a checksum.
func FuzzParseRecord(f *testing.F) {
	for _, job := range []*pawl.Envelope{fullJob(), withoutRare(fullJob()), {Kind: "k"}, {}} {
		f.Add(driver.AppendRecord(nil, job, 0))
		f.Add(driver.AppendRecord(nil, job, 0)[5:])
		f.Add(driver.AppendRecord(nil, job, 1000)[5:])
	}
	f.Add(body(f, fields()))
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})

	f.Fuzz(func(t *testing.T, b []byte) {
		for _, record := range [][]byte{b, seal(b), sealAs(1, b)} {
			job, apart, err := driver.ParseRecord(record)
			if err != nil {
				require.ErrorIs(t, err, pawl.ErrCorrupt)
				continue
			}
			require.NoError(t, driver.CheckRecord(record))
			again, apartAgain, err := driver.ParseRecord(driver.AppendRecord(nil, job, apart))
			require.NoError(t, err)
			require.Equal(t, describe(job, apart), describe(again, apartAgain))
		}
	})
}
