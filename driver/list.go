package driver

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// Parts are what a list reads of each job besides its record.
type Parts uint8

const (
	PartPayload     Parts = 1 << iota
	PartLastFailure       // the newest entry of the history
	PartHistory           // the whole history

	AllParts = PartPayload | PartHistory
)

// CheckListed returns a [*pawl.InvalidError] for a list of no job or of more than
// [pawl.MaxListed].
func CheckListed(max int) error {
	if max < 1 || max > pawl.MaxListed {
		return invalid("max", "%d is not between 1 and %d", max, pawl.MaxListed)
	}
	return nil
}

// CheckKeys checks the arguments of a list of keys, as [CheckListed] does. It returns a
// [*pawl.InvalidError] if after is not a key.
func CheckKeys(after string, max int) error {
	if len(after) > pawl.MaxKeyBytes {
		return invalid("after", "%q is longer than %d bytes", ellipsis.Abbreviate(after, 32), pawl.MaxKeyBytes)
	}
	return CheckListed(max)
}

// leastDigits is the shortest part of an ID that a search takes.
const leastDigits = 4

// PartOfID returns the lower-case hexadecimal digits of a part of an ID, with or without dashes,
// or a [*pawl.InvalidError] for anything else and for fewer than four digits.
func PartOfID(part string) (digits string, err error) {
	digits = strings.ToLower(strings.ReplaceAll(part, "-", ""))
	if strings.Trim(digits, "0123456789abcdef") != "" || len(digits) < leastDigits {
		return "", invalid("id", "%q is not the beginning or the end of an ID, with %d hexadecimal digits or more",
			ellipsis.Truncate(part, 64), leastDigits)
	}
	return digits, nil
}

// A cursor has a version byte, a checksum of the rest and of the scope of the list, and the place
// where the list continues. Its text is base64.
const (
	cursorVersion = 1
	cursorHeader  = 1 + 4
	maxCursor     = 2 << 10 // bytes of the text
)

var (
	cursorText = base64.RawURLEncoding.Strict()
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// FilterScope returns the scope of a list of jobs, for cursors.
func FilterScope(f pawl.Filter) string {
	since, before := f.DiedSince, f.DiedBefore
	return fmt.Sprintf("jobs %q %q %q %q %q %d.%d %d.%d %q %v", f.State, f.Queue, f.Kind, f.Group, f.Reason,
		since.Unix(), since.Nanosecond(), before.Unix(), before.Nanosecond(), f.Order, f.Newest)
}

// FormatCursor returns the cursor of a place in a list; see [pawl.Listing.Next]. A place has at
// most 1 KiB.
func FormatCursor(place []byte, scope string) string {
	b := append(make([]byte, cursorHeader, cursorHeader+len(place)), place...)
	b[0] = cursorVersion
	binary.BigEndian.PutUint32(b[1:], cursorSum(place, scope))
	return cursorText.EncodeToString(b)
}

// ParseCursor returns the place of a cursor that [FormatCursor] made for the same scope, and a
// [*pawl.InvalidError] for any other text. Anybody can forge a cursor, so the caller checks the
// place like any input.
func ParseCursor(text, scope string) (place []byte, err error) {
	var b []byte
	if len(text) <= maxCursor {
		b, err = cursorText.DecodeString(text)
	}
	if err != nil || len(b) < cursorHeader || b[0] != cursorVersion || binary.BigEndian.Uint32(b[1:]) != cursorSum(b[cursorHeader:], scope) {
		return nil, BadCursor()
	}
	return b[cursorHeader:], nil
}

func cursorSum(place []byte, scope string) uint32 {
	return crc32.Update(crc32.Checksum([]byte(scope), castagnoli), castagnoli, place)
}

// BadCursor returns the error for a text that is not a cursor of this list.
func BadCursor() error {
	return invalid("after", "it does not come from an earlier part of this list; begin without it")
}
