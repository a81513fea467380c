package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
)

// maxDepth is how deeply a payload may nest, as deep as package pawl lets
// arguments be.
const maxDepth = 32

var (
	errEndsEarly = errors.New("it ends too early")
	errTooDeep   = errors.New("it is nested too deeply")
	errTrailing  = errors.New("it is more than one value")
	errCode      = errors.New("it has a byte that begins no value")
)

// messagePackJSON writes one MessagePack value as JSON on one line. It believes
// nothing: no declared length makes it allocate, nesting is bounded, and the value
// must be all there is. Of the JSON it keeps somewhat more than limit bytes, then it
// only checks the rest; whole says that nothing was left out.
//
// JSON has less than MessagePack: bytes become base64, NaN and the infinities
// texts, a key that is no text becomes one, a timestamp becomes an RFC 3339 text
// and another extension an object of its type and bytes.
func messagePackJSON(b []byte, limit int) (text []byte, whole bool, err error) {
	m := &messagePack{in: b, jsonWriter: jsonWriter{limit: limit, whole: true}}
	if err := m.value(0); err != nil {
		return nil, false, err
	}
	if m.at != len(b) {
		return nil, false, errTrailing
	}
	return m.out, m.whole, nil
}

// messagePack walks over a value and writes it.
type messagePack struct {
	in []byte
	at int
	jsonWriter
}

// take returns the next n bytes.
func (m *messagePack) take(n uint64) ([]byte, error) {
	if n > uint64(len(m.in)-m.at) {
		return nil, errEndsEarly
	}
	b := m.in[m.at : m.at+int(n)]
	m.at += int(n)
	return b, nil
}

// number reads a big-endian number of 1, 2, 4 or 8 bytes.
func (m *messagePack) number(width int) (uint64, error) {
	b, err := m.take(uint64(width))
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[8-width:], b)
	return binary.BigEndian.Uint64(wide[:]), nil
}

// value writes the value at m.at and passes it.
func (m *messagePack) value(depth int) error {
	if depth > maxDepth {
		return errTooDeep
	}
	head, err := m.take(1)
	if err != nil {
		return err
	}
	switch code := head[0]; {
	case code <= 0x7f:
		m.raw(strconv.Itoa(int(code)))
	case code >= 0xe0:
		m.raw(strconv.Itoa(int(int8(code))))
	case code <= 0x8f:
		return m.object(uint64(code&0x0f), depth)
	case code <= 0x9f:
		return m.array(uint64(code&0x0f), depth)
	case code <= 0xbf:
		return m.string(uint64(code & 0x1f))
	case code == 0xc0:
		m.raw("null")
	case code == 0xc2:
		m.raw("false")
	case code == 0xc3:
		m.raw("true")
	case code >= 0xd4 && code <= 0xd8:
		return m.extension(1 << (code - 0xd4))
	case code == 0xc1:
		return errCode
	default:
		return m.sized(code, depth)
	}
	return nil
}

// sized writes a value whose number or length follows its first byte.
func (m *messagePack) sized(code byte, depth int) error {
	n, err := m.number(widths[code-0xc4])
	if err != nil {
		return err
	}
	switch {
	case code <= 0xc6:
		return m.bytes(n)
	case code <= 0xc9:
		return m.extension(n)
	case code == 0xca:
		m.float(float64(math.Float32frombits(uint32(n))), 32)
	case code == 0xcb:
		m.float(math.Float64frombits(n), 64)
	case code <= 0xcf:
		m.raw(strconv.FormatUint(n, 10))
	case code <= 0xd3:
		unused := 64 - 8*widths[code-0xc4] // shifted out and in again for the sign
		m.raw(strconv.FormatInt(int64(n<<unused)>>unused, 10))
	case code <= 0xdb:
		return m.string(n)
	case code <= 0xdd:
		return m.array(n, depth)
	default:
		return m.object(n, depth)
	}
	return nil
}

// widths is how wide the number behind each code from 0xc4 to 0xdf is.
var widths = [...]int{
	1, 2, 4, 1, 2, 4, // bytes, extensions
	4, 8, 1, 2, 4, 8, 1, 2, 4, 8, // floats, unsigned and signed numbers
	0, 0, 0, 0, 0, // fixed extensions, which have none
	1, 2, 4, 2, 4, 2, 4, // texts, arrays, maps
}

func (m *messagePack) string(n uint64) error {
	b, err := m.take(n)
	if err == nil {
		m.text(string(b))
	}
	return err
}

func (m *messagePack) bytes(n uint64) error {
	b, err := m.take(n)
	if err == nil {
		m.text(base64.StdEncoding.EncodeToString(b))
	}
	return err
}

func (m *messagePack) array(n uint64, depth int) error {
	m.raw("[")
	for i := range n {
		if i > 0 {
			m.raw(",")
		}
		if err := m.value(depth + 1); err != nil {
			return err
		}
	}
	m.raw("]")
	return nil
}

func (m *messagePack) object(n uint64, depth int) error {
	m.raw("{")
	for i := range n {
		if i > 0 {
			m.raw(",")
		}
		if err := m.key(depth + 1); err != nil {
			return err
		}
		m.raw(":")
		if err := m.value(depth + 1); err != nil {
			return err
		}
	}
	m.raw("}")
	return nil
}

// key writes a key as a text: a plain one as it is, a number or truth value as its
// JSON, an array or map as its bytes in hex, since quoting those at each level
// would double their size.
func (m *messagePack) key(depth int) error {
	from := m.at
	key := &messagePack{in: m.in, at: m.at, jsonWriter: jsonWriter{limit: m.limit, whole: true}}
	if err := key.value(depth); err != nil {
		return err
	}
	m.at = key.at
	switch {
	case len(key.out) > 0 && key.out[0] == '"':
		if !key.whole {
			m.whole = false
		}
		m.raw(string(key.out))
	case len(key.out) > 0 && (key.out[0] == '[' || key.out[0] == '{'):
		m.text("0x" + hex.EncodeToString(m.in[from:m.at]))
	default:
		m.raw(`"` + string(key.out) + `"`)
	}
	return nil
}
