package pawl

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gopawl/pawl/internal/ellipsis"
)

// ID names one job for its whole life: through every retry, forward, and
// restart. It is a UUID of version 7 (RFC 9562), so IDs sort by the millisecond
// in which they were made.
type ID [16]byte

// IsZero reports whether the ID was never set.
func (id ID) IsZero() bool { return id == ID{} }

// String is the usual form of a UUID, 36 characters.
func (id ID) String() string {
	var buf [36]byte
	hex.Encode(buf[0:8], id[0:4])
	hex.Encode(buf[9:13], id[4:6])
	hex.Encode(buf[14:18], id[6:8])
	hex.Encode(buf[19:23], id[8:10])
	hex.Encode(buf[24:36], id[10:16])
	buf[8], buf[13], buf[18], buf[23] = '-', '-', '-', '-'
	return string(buf[:])
}

// MarshalText writes the ID as [ID.String] does.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what [ParseID] reads.
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(string(text))
	return err
}

// ParseID reads the form that [ID.String] writes. Its error is an
// [*InvalidError].
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return ID{}, invalid("id", "%q is not of the form 01234567-89ab-7cde-8f01-23456789abcd", ellipsis.Abbreviate(s, 64))
	}
	for _, part := range [...]struct{ dst, from, to int }{
		{0, 0, 8}, {4, 9, 13}, {6, 14, 18}, {8, 19, 23}, {10, 24, 36},
	} {
		if _, err := hex.Decode(id[part.dst:], []byte(s[part.from:part.to])); err != nil {
			return ID{}, invalid("id", "%q has a character that is no hexadecimal digit", ellipsis.Abbreviate(s, 64))
		}
	}
	return id, nil
}

// ids makes IDs that grow strictly within one process, even when the clock steps
// back: the 12 bits after the version are a counter (RFC 9562, method 1).
var ids struct {
	sync.Mutex
	milli int64
	count uint16
}

// NewID makes the ID of a job created at now.
func NewID(now time.Time) ID {
	milli := now.UnixMilli()
	ids.Lock()
	switch {
	case milli > ids.milli:
		ids.milli, ids.count = milli, 0
	case ids.count == 0xfff:
		ids.milli, ids.count = ids.milli+1, 0
	default:
		ids.count++
	}
	milli, count := ids.milli, ids.count
	ids.Unlock()

	var id ID
	binary.BigEndian.PutUint64(id[0:8], uint64(milli)<<16|0x7000|uint64(count))
	binary.BigEndian.PutUint64(id[8:16], rand.Uint64()>>2|1<<63)
	return id
}
