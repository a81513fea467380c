package workflow

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/gopawl/pawl"
)

// unpacker reads what a [packer] wrote. Anything else makes it fail. After a failure, what it returns is
// meaningless.
type unpacker struct {
	b      []byte
	failed bool
}

// done reports whether all bytes were read without a failure.
func (u *unpacker) done() bool { return !u.failed && len(u.b) == 0 }

// take returns the next n bytes, or nil after a failure.
func (u *unpacker) take(n int) []byte {
	if u.failed || n < 0 || n > len(u.b) {
		u.failed = true
		return nil
	}
	b := u.b[:n]
	u.b = u.b[n:]
	return b
}

// code reads a byte. It returns 0 after a failure.
func (u *unpacker) code() byte {
	if u.failed || len(u.b) == 0 {
		u.failed = true
		return 0
	}
	c := u.b[0]
	u.b = u.b[1:]
	return c
}

// is reads a code, and fails unless it is the given one.
func (u *unpacker) is(code byte) { u.failed = u.code() != code || u.failed }

// null reports whether a nil comes next, and reads it.
func (u *unpacker) null() bool {
	if u.failed || len(u.b) == 0 || u.b[0] != msgpcode.Nil {
		return false
	}
	u.b = u.b[1:]
	return true
}

// length reads a number of 1, 2, or 4 bytes.
func (u *unpacker) length(width int) (n int) {
	for _, c := range u.take(width) {
		n = n<<8 | int(c)
	}
	if n < 0 { // an int has 32 bits here
		u.failed = true
		return 0
	}
	return n
}

// count reads the length of a list. Each of its values has at least one byte.
func (u *unpacker) count() (n int) {
	switch c := u.code(); {
	case msgpcode.IsFixedArray(c):
		n = int(c & msgpcode.FixedArrayMask)
	case c == msgpcode.Array16:
		n = u.length(2)
	case c == msgpcode.Array32:
		n = u.length(4)
	default:
		u.failed = true
	}
	if n > len(u.b) {
		u.failed = true
	}
	if u.failed {
		return 0
	}
	return n
}

// list reads the length of a list, and fails unless it is n.
func (u *unpacker) list(n int) { u.failed = u.count() != n || u.failed }

func (u *unpacker) text() string { return string(u.characters()) }

// word is like text, for a value that is usually one of the given words.
func (u *unpacker) word(words []string) string {
	b := u.characters()
	for _, w := range words {
		if string(b) == w {
			return w
		}
	}
	return string(b)
}

func (u *unpacker) characters() []byte {
	switch c := u.code(); {
	case msgpcode.IsFixedString(c):
		return u.take(int(c & msgpcode.FixedStrMask))
	case c == msgpcode.Str8:
		return u.take(u.length(1))
	case c == msgpcode.Str16:
		return u.take(u.length(2))
	case c == msgpcode.Str32:
		return u.take(u.length(4))
	}
	u.failed = true
	return nil
}

// bytes copies bytes.
func (u *unpacker) bytes() []byte {
	if u.null() {
		return nil
	}
	var b []byte
	switch u.code() {
	case msgpcode.Bin8:
		b = u.take(u.length(1))
	case msgpcode.Bin16:
		b = u.take(u.length(2))
	case msgpcode.Bin32:
		b = u.take(u.length(4))
	default:
		u.failed = true
	}
	return bytes.Clone(b)
}

func (u *unpacker) bool() bool {
	c := u.code()
	u.failed = u.failed || c != msgpcode.True && c != msgpcode.False
	return c == msgpcode.True
}

// int64 reads an integer. It fails if a packer would have written the integer in another form, which is
// rare.
func (u *unpacker) int64() int64 {
	if len(u.b) > 0 && (u.b[0] == msgpcode.Int64 || msgpcode.IsFixedNum(u.b[0])) {
		if c := u.code(); c != msgpcode.Int64 {
			return int64(int8(c))
		}
		return int64(u.number())
	}
	return int64(u.below(math.MaxInt64))
}

func (u *unpacker) int() int {
	n := u.int64()
	u.failed = u.failed || int64(int(n)) != n
	return int(n)
}

// uint64 reads an integer that is not negative.
func (u *unpacker) uint64() uint64 {
	switch c := u.code(); {
	case c <= msgpcode.PosFixedNumHigh:
		return uint64(c)
	case c == msgpcode.Uint8:
		return uint64(u.length(1))
	case c == msgpcode.Uint16:
		return uint64(u.length(2))
	case c == msgpcode.Uint32:
		if b := u.take(4); b != nil {
			return uint64(binary.BigEndian.Uint32(b))
		}
	case c == msgpcode.Uint64:
		return u.number()
	default:
		u.failed = true
	}
	return 0
}

// below reads an integer that is not negative, and fails if it exceeds most.
func (u *unpacker) below(most uint64) uint64 {
	n := u.uint64()
	u.failed = u.failed || n > most
	return n
}

func (u *unpacker) number() uint64 {
	if b := u.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (u *unpacker) uint32() uint32 { return uint32(u.below(math.MaxUint32)) }

func (u *unpacker) uint8() uint8 { return uint8(u.below(math.MaxUint8)) }

// noID is how older builds store a missing ID.
var noID = []byte(pawl.ID{}.String())

func (u *unpacker) id() (id pawl.ID) {
	if u.null() {
		return id
	}
	u.is(msgpcode.Bin8)
	u.is(idText)
	if b := u.take(idText); !u.failed && !bytes.Equal(b, noID) {
		u.failed = id.UnmarshalText(b) != nil
	}
	return id
}

func (u *unpacker) texts() (all []string) {
	if u.null() {
		return nil
	}
	all = make([]string, u.count())
	for i := range all {
		all[i] = u.text()
	}
	return all
}

// pairs reads the length of a list of pairs. A pair has at least 3 bytes.
func (u *unpacker) pairs() int {
	n := u.count()
	if n > len(u.b)/3 {
		u.failed = true
		return 0
	}
	return n
}

func (u *unpacker) chain() (all []errorText) {
	if u.null() {
		return nil
	}
	all = make([]errorText, u.pairs())
	for i := range all {
		u.list(2)
		all[i] = errorText{Type: u.text(), Text: u.text()}
	}
	return all
}

func (u *unpacker) attributes() (all []attribute) {
	if u.null() {
		return nil
	}
	all = make([]attribute, u.pairs())
	for i := range all {
		u.list(2)
		all[i] = attribute{Name: u.text(), Value: u.text()}
	}
	return all
}
