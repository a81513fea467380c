package workflow

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// fingerprint is the same for values that are the same, as [pawl.EncodePayload] wrote them.
// The bytes need not be: the entries of a map come in any order.
func fingerprint(encoded []byte) []byte {
	sum, err := fingerprintOf(msgpack.NewDecoder(bytes.NewReader(encoded)))
	if err != nil {
		sum = digest('v', encoded)
	}
	return sum[:16]
}

func fingerprintOf(d *msgpack.Decoder) ([]byte, error) {
	code, err := d.PeekCode()
	if err != nil {
		return nil, err
	}
	list := msgpcode.IsFixedArray(code) || code == msgpcode.Array16 || code == msgpcode.Array32
	if !list && !msgpcode.IsFixedMap(code) && code != msgpcode.Map16 && code != msgpcode.Map32 {
		raw, err := d.DecodeRaw()
		return digest('v', raw), err
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
		if part, err = fingerprintOf(d); err == nil && !list {
			value, err = fingerprintOf(d)
			part = digest('e', part, value)
		}
		parts = append(parts, part)
	}
	if list {
		return digest('l', parts...), err
	}
	slices.SortFunc(parts, bytes.Compare)
	return digest('m', parts...), err
}

// digest is a checksum of one part, or of parts of one length, and of what they are.
func digest(what byte, parts ...[]byte) []byte {
	h := sha256.New()
	h.Write([]byte{what})
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}
