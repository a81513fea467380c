package bolt

import (
	"bytes"
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// sealed are the rows of one table, for parsing and rewriting.
type sealed func(key, row []byte) (again []byte, err error)

// rowsOfTables are all forms of a sealed row.
var rowsOfTables = map[string]sealed{
	"index": func(key, row []byte) ([]byte, error) {
		r, err := parseIndexRow(key, row)
		return seal(key, r.append(nil)), err
	},
	"delayed": func(key, row []byte) ([]byte, error) {
		r, err := parseDelayedRow(key, row)
		return seal(key, r.append(nil, key)), err
	},
	"ended": func(key, row []byte) ([]byte, error) {
		r, err := parseEndedRow(key, row)
		return seal(key, r.append(nil)), err
	},
	"lease": func(key, row []byte) ([]byte, error) {
		r, err := parseLeaseRow(key, row)
		return seal(key, r.append(nil)), err
	},
	"queue": func(key, row []byte) ([]byte, error) {
		r, err := parseQueueRow(key, row)
		if err != nil {
			return nil, err
		}
		return seal(key, r.append(nil)), nil
	},
	"key": func(key, row []byte) ([]byte, error) {
		r, err := parseKeyRow(key, row)
		if err != nil {
			return nil, err
		}
		return seal(key, r.append(nil)), nil
	},
	"line": func(key, row []byte) ([]byte, error) {
		r, err := parseLineRow(key, row)
		if err != nil {
			return nil, err
		}
		return seal(key, r.append(nil)), nil
	},
	"effect": func(key, row []byte) ([]byte, error) {
		r, err := parseEffectRow(key, row)
		return seal(key, r.append(nil)), err
	},
	"failure": func(key, row []byte) ([]byte, error) {
		r, err := parseFailure(key, row)
		return seal(key, appendFailure(nil, r)), err
	},
}

// FuzzRows looks for a row that panics, that passes without its checksum, or whose meaning
// changes when it is rewritten. It tries the bytes unchanged, and under a correct checksum,
// which no fuzzer finds.
func FuzzRows(f *testing.F) {
	at := time.Unix(1_900_000_000, 7)
	index := indexRow{pawl.ID{1, 2, 3}, hasPayload | hasHistory}
	for _, row := range [][]byte{
		nil, index.append(nil), delayedRow{index, bytes.Repeat([]byte{1}, readyKeyWidth)}.append(nil, nil), endedRow{index, line{7, 8}}.append(nil),
		leaseRow{1, line{2, 3}, hasMore, 3, at, 4, 5, ""}.append(nil), leaseRow{1, line{2, 3}, hasKey, 0, at, 4, 5, "tenant 1"}.append(nil), (&lineRow{counts: pawl.Counts{Ready: 1}}).append(nil), (&keyRow{lanes: []keyLane{{ready: 1, blocked: true}, {ready: 1, blocked: true, mixed: true}}}).append(nil), (&queueRow{name: "email", paused: true}).append(nil), effectRow{index.id, at}.append(nil),
		effectRow{}.append(nil), appendFailure(nil, pawl.Failure{Attempt: 3, At: at, Error: "boom"}),
		appendFailure(nil, pawl.Failure{Attempt: 3, At: at, Error: "boom", Stack: "goroutine 7"}), appendFailure(nil, pawl.Failure{At: at, Stack: "g"}),
	} {
		f.Add([]byte("key"), row)
	}
	for _, n := range []int{readyKeyWidth, readyKeyWidth - restWidth} { // a key that is as short as what a row omits
		key := bytes.Repeat([]byte{1}, readyKeyWidth)
		f.Add(key[:n], delayedRow{index, key}.append(nil, nil))
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		right := seal(key, bytes.Clone(value))
		for name, table := range rowsOfTables {
			if _, err := table(key, value); err != nil {
				require.ErrorIs(t, err, pawl.ErrCorrupt, name)
			} else {
				_, err := unseal(key, value, -1)
				require.NoError(t, err, "%s passes without a checksum", name)
			}
			again, err := table(key, right)
			if err != nil {
				require.ErrorIs(t, err, pawl.ErrCorrupt, name)
				continue
			}
			twice, err := table(key, again)
			require.NoError(t, err, name)
			require.Equal(t, again, twice, "%s means something else once it was written again", name)
		}
		if len(key) > 0 { // a CRC always detects one changed bit
			other := bytes.Clone(key)
			other[len(value)%len(key)] ^= 1
			_, err := unseal(other, right, -1)
			require.ErrorIs(t, err, pawl.ErrCorrupt, "a row under another key")
		}
	})
}

// FuzzKeyOrder looks for two jobs whose keys do not sort as documented: byte order is the order
// in which jobs are fetched, promoted, listed and removed.
func FuzzKeyOrder(f *testing.F) {
	f.Add(uint32(1), uint32(2), int8(0), int8(1), int64(5), int64(6), int32(0), int32(1), uint64(1), uint64(2), uint8(0), uint8(1), "a", "b")
	f.Add(uint32(1), uint32(1), int8(-128), int8(127), int64(-1), int64(0), int32(999_999_999), int32(0), uint64(1<<63), uint64(0), uint8(2), uint8(9), "", "a\x00")
	f.Add(^uint32(0), uint32(0), int8(3), int8(3), int64(1<<61), int64(-1<<61), int32(7), int32(7), ^uint64(0), ^uint64(0), uint8(1), uint8(1), "k", "k")
	f.Fuzz(func(t *testing.T, n, m uint32, p1, p2 int8, s1, s2 int64, nano1, nano2 int32, seq1, seq2 uint64, lane1, lane2 uint8, kind1, kind2 string) {
		if len(kind1) > pawl.MaxNameBytes || len(kind2) > pawl.MaxNameBytes {
			t.Skip("no kind is so long")
		}
		job := func(p int8, s int64, nano int32, seq uint64, lane uint8, kind string) *pawl.Envelope {
			at := time.Unix(s/4, int64(uint32(nano)%1_000_000_000)) // a quarter: time.Time has no larger range
			return &pawl.Envelope{
				Kind: kind, Priority: p, NotBefore: at, Seq: seq, Crashes: int(lane >> 1), Attempts: int(lane & 1),
				Completed: at, IdempotencyKey: kind, Deadline: at, ID: pawl.ID{byte(seq), 15: byte(p)},
			}
		}
		a, b := job(p1, s1, nano1, seq1, lane1, kind1), job(p2, s2, nano2, seq2, lane2, kind2)
		q, r := queueNumber(n), queueNumber(m)
		qk, rk := line{q, kindNumber(m)}, line{r, kindNumber(n)}
		same := func(want int, x, y []byte, what string) {
			require.Equal(t, want, bytes.Compare(x, y), "%s: %+v and %+v", what, a, b)
		}
		due := cmp.Or(a.NotBefore.Compare(b.NotBefore), cmp.Compare(a.Seq, b.Seq))
		lanes := cmp.Or(cmp.Compare(min(a.Crashes, 2), min(b.Crashes, 2)), cmp.Compare(a.Attempts, b.Attempts))
		same(cmp.Or(cmp.Compare(q, r), cmp.Compare(qk.kind, rk.kind), lanes, documentedOrder(a, b)), readyKey(nil, qk, a), readyKey(nil, rk, b), "ready")
		same(due, delayedKey(nil, a), delayedKey(nil, b), "delayed")
		same(cmp.Or(cmp.Compare(q, r), due), failedKey(nil, q, a.NotBefore, a.Seq), failedKey(nil, r, b.NotBefore, b.Seq), "failed")
		same(due, completedKey(nil, a), completedKey(nil, b), "completed")
		same(cmp.Or(a.NotBefore.Compare(b.NotBefore), bytes.Compare(a.ID[:], b.ID[:])), deadlineKey(nil, a), deadlineKey(nil, b), "deadlines")

		require.Equal(t, kind1 == kind2, bytes.Equal(effectKey(nil, a), effectKey(nil, b)), "effects")
		require.Equal(t, kind1 == kind2, bytes.HasPrefix(heldKey(nil, effectKey(nil, a), qk, a), heldPrefix(nil, effectKey(nil, b))), "held jobs of another effect")
		require.True(t, timeAt(appendTime(nil, a.NotBefore)).Equal(a.NotBefore))
	})
}
