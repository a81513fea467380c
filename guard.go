package pawl

import (
	"encoding/binary"
	"fmt"
)

// maxDepth is how deeply MessagePack may nest, in arguments as in records.
const maxDepth = 32

// guard checks that b is exactly one well-formed MessagePack value before any
// decoder sees it: every declared length fits into the bytes that are left,
// nesting is bounded, nothing follows. The decoder of msgpack v5.4.1 trusts
// declared lengths, so five hostile bytes make it allocate 34 GB. It also
// recurses without a bound, and ignores trailing bytes.
func guard(b []byte) error {
	_, err := scan(b)
	return err
}

// scan does what guard does, and also returns the offsets in b, in ascending
// order, where the data of an extension begin like a map. The decoder takes an
// extension where it expects a map: it skips the header and reads a map from
// the data, which nothing has checked. So a decoder must not read a code at
// these offsets.
func scan(b []byte) (posing []int, err error) {
	s := scanner{b: b}
	end, err := s.skip(0, 0)
	if err != nil {
		return nil, err
	}
	if end != len(b) {
		return nil, fmt.Errorf("%w: %d bytes after the end of a MessagePack value", ErrCorrupt, len(b)-end)
	}
	return s.posing, nil
}

type scanner struct {
	b      []byte
	posing []int
}

// skip returns the offset after the value that starts at b[at].
func (s *scanner) skip(at, depth int) (int, error) {
	b := s.b
	if depth > maxDepth {
		return 0, fmt.Errorf("%w: MessagePack nested deeper than %d levels", ErrCorrupt, maxDepth)
	}
	if at >= len(b) {
		return 0, errTruncated
	}
	code := b[at]
	at++
	switch {
	case code <= 0x7f || code >= 0xe0: // small integers
		return at, nil
	case code <= 0x8f:
		return s.skipMany(at, 2*uint64(code&0x0f), depth)
	case code <= 0x9f:
		return s.skipMany(at, uint64(code&0x0f), depth)
	case code <= 0xbf:
		return advance(b, at, uint64(code&0x1f))
	}
	switch code {
	case 0xc0, 0xc2, 0xc3: // nil, false, true
		return at, nil
	case 0xcc, 0xd0:
		return advance(b, at, 1)
	case 0xcd, 0xd1:
		return advance(b, at, 2)
	case 0xca, 0xce, 0xd2:
		return advance(b, at, 4)
	case 0xcb, 0xcf, 0xd3:
		return advance(b, at, 8)
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8: // fixed extensions: a type byte and 1 to 16 bytes
		return s.extension(at, 1<<(code-0xd4))
	case 0xc4, 0xc5, 0xc6, 0xd9, 0xda, 0xdb: // binary and strings
		width := 1 << ((code - 0xc4) % 3)
		if code >= 0xd9 {
			width = 1 << (code - 0xd9)
		}
		n, at, err := length(b, at, width)
		if err != nil {
			return 0, err
		}
		return advance(b, at, n)
	case 0xc7, 0xc8, 0xc9: // extensions
		n, at, err := length(b, at, 1<<(code-0xc7))
		if err != nil {
			return 0, err
		}
		return s.extension(at, n)
	case 0xdc, 0xdd, 0xde, 0xdf: // arrays and maps
		n, at, err := length(b, at, 2<<(code&1))
		if err != nil {
			return 0, err
		}
		if code >= 0xde {
			n *= 2
		}
		return s.skipMany(at, n, depth)
	}
	return 0, fmt.Errorf("%w: MessagePack code %#x", ErrCorrupt, code)
}

// skipMany passes n values, each of at least one byte.
func (s *scanner) skipMany(at int, n uint64, depth int) (int, error) {
	if n > uint64(len(s.b)-at) {
		return 0, errTruncated
	}
	var err error
	for ; n > 0; n-- {
		if at, err = s.skip(at, depth+1); err != nil {
			return 0, err
		}
	}
	return at, nil
}

// extension skips a type byte and n bytes of data. Data of one byte cannot be kept
// from the decoder, because it reads that byte as a code for real extensions, too.
// As an empty or small map the byte leads to values that were checked. As the head
// of a larger map it is refused.
func (s *scanner) extension(at int, n uint64) (int, error) {
	end, err := advance(s.b, at, n+1)
	if err != nil || n == 0 {
		return end, err
	}
	code := s.b[at+1]
	long := code == 0xde || code == 0xdf
	switch {
	case n == 1 && long:
		return 0, fmt.Errorf("%w: MessagePack extension with the data %#x", ErrCorrupt, code)
	case n > 1 && (long || code&0xf0 == 0x80):
		s.posing = append(s.posing, at+1)
	}
	return end, nil
}

func advance(b []byte, at int, n uint64) (int, error) {
	if n > uint64(len(b)-at) {
		return 0, errTruncated
	}
	return at + int(n), nil
}

func length(b []byte, at, width int) (uint64, int, error) {
	if len(b)-at < width {
		return 0, 0, errTruncated
	}
	switch width {
	case 1:
		return uint64(b[at]), at + 1, nil
	case 2:
		return uint64(binary.BigEndian.Uint16(b[at:])), at + 2, nil
	default:
		return uint64(binary.BigEndian.Uint32(b[at:])), at + 4, nil
	}
}

var errTruncated = fmt.Errorf("%w: MessagePack value ends too early", ErrCorrupt)
