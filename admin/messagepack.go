package admin

import (
	"encoding/binary"
	"errors"
	"math"
)

// maxDepth is how deeply a payload may nest, the same as package pawl permits for arguments.
const maxDepth = 32

var (
	errEndsEarly = errors.New("it ends too early")
	errTooDeep   = errors.New("it is nested too deeply")
	errTrailing  = errors.New("it is more than one value")
	errCode      = errors.New("it has a byte that begins no value")
)

// packed reads untrusted MessagePack. No declared length makes it allocate, and callers that
// descend count the depth.
type packed struct {
	in []byte
	at int
}

// shape is a type of MessagePack value.
type shape uint8

const (
	shapeNil shape = iota
	shapeBool
	shapeInt  // a negative number
	shapeUint // any other whole number
	shapeFloat32
	shapeFloat64
	shapeText
	shapeBytes
	shapeExtension
	shapeList
	shapeMap
)

// item is one value, or the beginning of a list or map.
type item struct {
	shape shape
	n     uint64 // the bits of a number, or 1 for true; the number of elements or pairs
	data  []byte // of a string, bytes or extension
	kind  int8   // of an extension
}

// take returns the next n bytes.
func (p *packed) take(n uint64) ([]byte, error) {
	if n > uint64(len(p.in)-p.at) {
		return nil, errEndsEarly
	}
	b := p.in[p.at : p.at+int(n)]
	p.at += int(n)
	return b, nil
}

// number reads a big-endian number of 0, 1, 2, 4 or 8 bytes.
func (p *packed) number(width int) (uint64, error) {
	b, err := p.take(uint64(width))
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[8-width:], b)
	return binary.BigEndian.Uint64(wide[:]), nil
}

// next reads the value at p.at; of a list or map only its head.
func (p *packed) next() (item, error) {
	head, err := p.take(1)
	if err != nil {
		return item{}, err
	}
	switch code := head[0]; {
	case code <= 0x7f:
		return item{shape: shapeUint, n: uint64(code)}, nil
	case code <= 0x8f:
		return item{shape: shapeMap, n: uint64(code & 0x0f)}, nil
	case code <= 0x9f:
		return item{shape: shapeList, n: uint64(code & 0x0f)}, nil
	case code <= 0xbf:
		return p.data(shapeText, uint64(code&0x1f))
	case code >= 0xe0:
		return item{shape: shapeInt, n: uint64(int8(code))}, nil
	case code == 0xc0:
		return item{shape: shapeNil}, nil
	case code == 0xc1:
		return item{}, errCode
	case code <= 0xc3:
		return item{shape: shapeBool, n: uint64(code & 1)}, nil
	case code >= 0xd4 && code <= 0xd8:
		return p.extension(1 << (code - 0xd4))
	default:
		return p.sized(code)
	}
}

// widths is the width of the number after each code from 0xc4 to 0xdf.
var widths = [...]int{
	1, 2, 4, 1, 2, 4, // bytes, extensions
	4, 8, 1, 2, 4, 8, 1, 2, 4, 8, // floats, unsigned and signed numbers
	0, 0, 0, 0, 0, // fixed extensions, which have none
	1, 2, 4, 2, 4, 2, 4, // strings, lists, maps
}

// sized reads a value whose number or length follows its first byte.
func (p *packed) sized(code byte) (item, error) {
	width := widths[code-0xc4]
	n, err := p.number(width)
	if err != nil {
		return item{}, err
	}
	switch {
	case code <= 0xc6:
		return p.data(shapeBytes, n)
	case code <= 0xc9:
		return p.extension(n)
	case code == 0xca:
		return item{shape: shapeFloat32, n: n}, nil
	case code == 0xcb:
		return item{shape: shapeFloat64, n: n}, nil
	case code <= 0xcf:
		return item{shape: shapeUint, n: n}, nil
	case code <= 0xd3:
		unused := 64 - 8*width // shifted left and right to extend the sign
		if signed := int64(n<<unused) >> unused; signed < 0 {
			return item{shape: shapeInt, n: uint64(signed)}, nil
		}
		return item{shape: shapeUint, n: n}, nil
	case code <= 0xdb:
		return p.data(shapeText, n)
	case code <= 0xdd:
		return item{shape: shapeList, n: n}, nil
	default:
		return item{shape: shapeMap, n: n}, nil
	}
}

func (p *packed) data(s shape, n uint64) (item, error) {
	b, err := p.take(n)
	return item{shape: s, data: b}, err
}

// extension reads n bytes that follow a byte for their type.
func (p *packed) extension(n uint64) (item, error) {
	b, err := p.take(n + 1)
	if err != nil {
		return item{}, err
	}
	return item{shape: shapeExtension, kind: int8(b[0]), data: b[1:]}, nil
}

// skip moves past the value at p.at, with everything in it.
func (p *packed) skip(depth int) error {
	if depth > maxDepth {
		return errTooDeep
	}
	v, err := p.next()
	if err != nil {
		return err
	}
	parts := uint64(0)
	switch v.shape {
	case shapeList:
		parts = v.n
	case shapeMap:
		parts = 2 * v.n // does not overflow: n has 32 bits
	}
	for range parts {
		if err := p.skip(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// wellFormed reports why b is not exactly one value.
func wellFormed(b []byte) error {
	p := &packed{in: b}
	if err := p.skip(0); err != nil {
		return err
	}
	if p.at != len(b) {
		return errTrailing
	}
	return nil
}

// float returns the value of an item that is a float.
func (v *item) float() float64 {
	if v.shape == shapeFloat32 {
		return float64(math.Float32frombits(uint32(v.n)))
	}
	return math.Float64frombits(v.n)
}
