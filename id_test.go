package pawl

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestIDRoundTrip(t *testing.T) {
	fixed := ID{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0x7c, 0xde, 0x8f, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd}
	require.Equal(t, "01234567-89ab-7cde-8f01-23456789abcd", fixed.String())
	for _, id := range []ID{fixed, {}, NewID(time.Now()), ID(bytes.Repeat([]byte{0xff}, 16))} {
		got, err := ParseID(id.String())
		require.NoError(t, err)
		require.Equal(t, id, got)

		got, err = ParseID(strings.ToUpper(id.String()))
		require.NoError(t, err)
		require.Equal(t, id, got, "other tools write capital letters")
	}
}

func TestParseIDRefusesOtherForms(t *testing.T) {
	const good = "01234567-89ab-7cde-8f01-23456789abcd"
	tests := map[string]string{
		"nothing":                    "",
		"a letter too few":           good[:35],
		"a letter too many":          good + "0",
		"without dashes":             strings.ReplaceAll(good, "-", ""),
		"in braces":                  "{" + good + "}",
		"a space before":             " " + good[:35],
		"dashes in the wrong place":  "0123456-789ab-7cde-8f01-23456789abcd",
		"other dashes":               strings.ReplaceAll(good, "-", "_"),
		"not hexadecimal":            "g" + good[1:],
		"not hexadecimal at the end": good[:35] + "x",
		"a dash in a part":           "-" + good[1:],
		"letters of two bytes":       "é" + good[2:],
		"a megabyte":                 strings.Repeat("0", 1<<20),
	}
	for _, at := range []int{8, 13, 18, 23} {
		tests["another dash at "+strconv.Itoa(at)] = good[:at] + "_" + good[at+1:]
	}
	for name, text := range tests {
		id, err := ParseID(text)
		require.ErrorIs(t, err, ErrInvalid, name)
		var invalid *InvalidError
		require.ErrorAs(t, err, &invalid, name)
		require.Equal(t, "id", invalid.Field, name)
		require.Less(t, len(err.Error()), 200, name)
		require.True(t, id.IsZero(), name)
		require.Error(t, new(ID).UnmarshalText([]byte(text)), name)
	}
}

func TestIDInText(t *testing.T) {
	id := NewID(time.Now())
	b, err := json.Marshal(map[ID]ID{id: id})
	require.NoError(t, err)
	require.JSONEq(t, `{"`+id.String()+`":"`+id.String()+`"}`, string(b))
	var got map[ID]ID
	require.NoError(t, json.Unmarshal(b, &got))
	require.Equal(t, map[ID]ID{id: id}, got)
}

func TestOnlyTheZeroIDIsZero(t *testing.T) {
	require.True(t, ID{}.IsZero())
	require.False(t, ID{15: 1}.IsZero())
	require.False(t, NewID(time.Time{}).IsZero())
}

// forgetIDs lets the next ID take its time from its argument whatever other tests
// asked for before.
func forgetIDs(t *testing.T) {
	ids.Lock()
	defer ids.Unlock()
	milli, count := ids.milli, ids.count
	ids.milli, ids.count = 0, 0
	t.Cleanup(func() {
		ids.Lock()
		defer ids.Unlock()
		ids.milli, ids.count = milli, count
	})
}

func milliOf(id ID) int64 { return int64(binary.BigEndian.Uint64(id[:8]) >> 16) }

// A UUID of version 7 has the version in the upper half of byte 6, the variant in
// the upper two bits of byte 8, and 48 bits of milliseconds in front.
func TestIDIsAUUIDOfVersion7(t *testing.T) {
	forgetIDs(t)
	now := time.Date(2031, 2, 3, 4, 5, 6, 789_999_999, time.UTC)
	randomBits := ID{}
	for range 5000 { // more than the counter of one millisecond holds
		id := NewID(now)
		require.Equal(t, byte(0x70), id[6]&0xf0, "version")
		require.Equal(t, byte(0x80), id[8]&0xc0, "variant")
		for i := range randomBits {
			randomBits[i] |= id[i]
		}
	}
	require.Equal(t, byte(0x7f), randomBits[6], "the counter uses all of its bits")
	require.Equal(t, byte(0xbf), randomBits[8], "the variant leaves six random bits")
	require.Equal(t, bytes.Repeat([]byte{0xff}, 7), randomBits[9:])

	forgetIDs(t)
	id := NewID(now)
	require.Equal(t, now.UnixMilli(), milliOf(id))
	require.Equal(t, [2]byte{0x70, 0}, [2]byte(id[6:8]))
	id = NewID(now)
	require.Equal(t, [2]byte{0x70, 1}, [2]byte(id[6:8]), "the counter tells those of one millisecond apart")
	id = NewID(now.Add(time.Millisecond))
	require.Equal(t, now.UnixMilli()+1, milliOf(id))
	require.Equal(t, [2]byte{0x70, 0}, [2]byte(id[6:8]), "and begins at 0 in the next")
}

// IDs grow strictly within one process whatever the clock does: stands still,
// steps back by an hour, crawls.
func TestIDsGrowStrictlyAlsoWhenTheClockStepsBack(t *testing.T) {
	forgetIDs(t)
	start := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	last := NewID(start)
	for i := range 100_000 {
		now := start
		switch {
		case i < 40_000: // stands still
		case i < 70_000:
			now = start.Add(-time.Hour)
		case i < 70_010:
			now = time.Time{}
		default:
			now = start.Add(time.Duration(i) * time.Microsecond)
		}
		id := NewID(now)
		if bytes.Compare(last[:], id[:]) >= 0 || last.String() >= id.String() {
			t.Fatalf("call %d: %v follows %v", i, id, last)
		}
		last = id
	}
	require.WithinDuration(t, start, time.UnixMilli(milliOf(last)), time.Second,
		"a full counter borrows a millisecond from the future, and not more")
}

func TestIDsOfManyGoroutinesAreUnique(t *testing.T) {
	const goroutines, each = 8, 5000
	made := make([][]ID, goroutines)
	now := time.Now()
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for range each {
				made[g] = append(made[g], NewID(now))
			}
		})
	}
	wg.Wait()

	seen := make(map[[8]byte]bool) // the front half alone, without the random bits
	for _, mine := range made {
		for i, id := range mine {
			require.False(t, seen[[8]byte(id[:8])], "%v was made twice", id)
			seen[[8]byte(id[:8])] = true
			if i > 0 {
				require.Negative(t, bytes.Compare(mine[i-1][:], id[:]), "each goroutine sees them grow")
			}
		}
	}
}
