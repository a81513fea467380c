package workflow

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// fingerprint returns a checksum that is equal for equal values, as [driver.EncodePayload]
// encodes them. The encodings may differ: the entries of a map have any order, and an entry
// with a zero value does not count. So a struct keeps its fingerprint after a deploy that adds
// a field, as long as that field is zero and neither a time nor an array. Maps that differ only
// in zero values have equal fingerprints too.
func fingerprint(encoded []byte) []byte { return summarize(encoded, true) }

// sameValue reports whether two encoded values are equal, including entries with zero values.
func sameValue(a, b []byte) bool { return bytes.Equal(summarize(a, false), summarize(b, false)) }

func summarize(encoded []byte, omitZero bool) []byte {
	sum, _, err := summaryOf(msgpack.NewDecoder(bytes.NewReader(encoded)), omitZero)
	if err != nil {
		sum = digest('v', encoded)
	}
	return sum[:16]
}

// summaryOf also reports whether the value is zero: nil, false, 0, or empty.
func summaryOf(d *msgpack.Decoder, omitZero bool) (sum []byte, zero bool, err error) {
	code, err := d.PeekCode()
	if err != nil {
		return nil, false, err
	}
	list := msgpcode.IsFixedArray(code) || code == msgpcode.Array16 || code == msgpcode.Array32
	if !list && !msgpcode.IsFixedMap(code) && code != msgpcode.Map16 && code != msgpcode.Map32 {
		raw, err := d.DecodeRaw()
		return digest('v', raw), isZero(raw), err
	}
	var n int
	if list {
		n, err = d.DecodeArrayLen()
	} else {
		n, err = d.DecodeMapLen()
	}
	var parts [][]byte
	for ; n > 0 && err == nil; n-- {
		var part, value []byte
		omit := false
		if part, _, err = summaryOf(d, omitZero); err == nil && !list {
			value, omit, err = summaryOf(d, omitZero)
			part = digest('e', part, value)
		}
		if !omit || !omitZero {
			parts = append(parts, part)
		}
	}
	if list {
		return digest('l', parts...), len(parts) == 0, err
	}
	slices.SortFunc(parts, bytes.Compare)
	return digest('m', parts...), len(parts) == 0, err
}

// isZero reports whether a value that is neither a list nor a map is zero: all bits of its size
// and content are 0.
func isZero(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	switch raw[0] {
	case msgpcode.Nil, msgpcode.False, msgpcode.FixedStrLow, 0:
		return true
	case msgpcode.Uint8, msgpcode.Uint16, msgpcode.Uint32, msgpcode.Uint64,
		msgpcode.Int8, msgpcode.Int16, msgpcode.Int32, msgpcode.Int64,
		msgpcode.Float, msgpcode.Double,
		msgpcode.Str8, msgpcode.Str16, msgpcode.Str32, msgpcode.Bin8, msgpcode.Bin16, msgpcode.Bin32:
		return len(bytes.Trim(raw[1:], "\x00")) == 0
	}
	return false
}

// digest returns a checksum of one part, or of several parts of equal length, and of their
// type.
func digest(what byte, parts ...[]byte) []byte {
	h := sha256.New()
	h.Write([]byte{what})
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}
