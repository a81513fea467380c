package bolt

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/gopawl/pawl"
)

// A cursor says where a list continues. It has a version byte, a checksum of the rest and the
// scope of the list, the number of the range of rows, and the key of the last row read in it,
// which may be gone by now. Its text is base64.
const (
	cursorVersion = 1
	cursorHeader  = 1 + 4 + 1
	maxCursor     = 2 << 10 // bytes of the text; no key is longer
)

var cursorText = base64.RawURLEncoding.Strict()

// filterScope returns the scope of a list of jobs by filter.
func filterScope(f pawl.Filter) string {
	return fmt.Sprintf("jobs %q %q %q %q %x %x %q %v", f.State, f.Queue, f.Kind, f.Reason,
		appendTime(nil, f.DiedSince), appendTime(nil, f.DiedBefore), f.Order, f.Newest)
}

func formatCursor(part int, last []byte, scope string) string {
	b := make([]byte, cursorHeader, cursorHeader+len(last))
	b[0], b[cursorHeader-1] = cursorVersion, byte(part)
	b = append(b, last...)
	binary.BigEndian.PutUint32(b[1:], cursorSum(b, scope))
	return cursorText.EncodeToString(b)
}

// parseCursor parses a cursor that formatCursor wrote for the same scope. The reader of the
// rows checks whether the part exists and the key belongs to it.
func parseCursor(text, scope string) (part int, last []byte, err error) {
	var b []byte
	if len(text) <= maxCursor {
		b, err = cursorText.DecodeString(text)
	}
	switch {
	case err != nil || len(b) < cursorHeader || b[0] != cursorVersion || binary.BigEndian.Uint32(b[1:]) != cursorSum(b, scope):
		return 0, nil, errBadCursor()
	case len(b) == cursorHeader:
		return int(b[cursorHeader-1]), nil, nil
	}
	return int(b[cursorHeader-1]), b[cursorHeader:], nil
}

func cursorSum(b []byte, scope string) uint32 {
	return crc32.Update(crc32.Checksum([]byte(scope), castagnoli), castagnoli, b[cursorHeader-1:])
}

func errBadCursor() error {
	return &pawl.InvalidError{Field: "after", Reason: "it does not come from an earlier part of this list; begin without it"}
}
