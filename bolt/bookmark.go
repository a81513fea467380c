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
	bookmarkVersion = 1
	bookmarkHeader  = 1 + 4 + 1
	maxBookmark     = 2 << 10 // bytes of the text; no key is longer
)

var bookmarkText = base64.RawURLEncoding.Strict()

// filterScope returns the scope of a list of jobs by filter.
func filterScope(f pawl.Filter) string {
	return fmt.Sprintf("jobs %q %q %q %q %x %x %q %v", f.State, f.Queue, f.Kind, f.Reason,
		appendTime(nil, f.DiedSince), appendTime(nil, f.DiedBefore), f.Order, f.Newest)
}

func formatBookmark(part int, last []byte, scope string) string {
	b := make([]byte, bookmarkHeader, bookmarkHeader+len(last))
	b[0], b[bookmarkHeader-1] = bookmarkVersion, byte(part)
	b = append(b, last...)
	binary.BigEndian.PutUint32(b[1:], bookmarkSum(b, scope))
	return bookmarkText.EncodeToString(b)
}

// parseBookmark parses a cursor that formatBookmark wrote for the same scope. The reader of the
// rows checks whether the part exists and the key belongs to it.
func parseBookmark(text, scope string) (part int, last []byte, err error) {
	var b []byte
	if len(text) <= maxBookmark {
		b, err = bookmarkText.DecodeString(text)
	}
	switch {
	case err != nil || len(b) < bookmarkHeader || b[0] != bookmarkVersion || binary.BigEndian.Uint32(b[1:]) != bookmarkSum(b, scope):
		return 0, nil, errNoBookmark()
	case len(b) == bookmarkHeader:
		return int(b[bookmarkHeader-1]), nil, nil
	}
	return int(b[bookmarkHeader-1]), b[bookmarkHeader:], nil
}

func bookmarkSum(b []byte, scope string) uint32 {
	return crc32.Update(crc32.Checksum([]byte(scope), castagnoli), castagnoli, b[bookmarkHeader-1:])
}

func errNoBookmark() error {
	return &pawl.InvalidError{Field: "after", Reason: "it does not come from an earlier part of this list; begin without it"}
}
