package admin

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// DecodeJSON writes a payload, which is one MessagePack value, as JSON on one line. It trusts
// nothing: no declared length makes it allocate, it rejects a value that nests more than 32
// deep, and the value must fill the payload. It keeps slightly more than limit bytes of the
// JSON, and only checks the rest; whole reports that nothing was left out.
//
// JSON has fewer types than MessagePack: bytes become base64, NaN and the infinities become
// strings, a key that is not a string becomes one, a timestamp becomes an RFC 3339 string, and
// any other extension becomes an object with its type and bytes. Control characters that a
// terminal would obey are escaped.
func DecodeJSON(payload []byte, limit int) (text []byte, whole bool, err error) {
	d := &decoder{packed: packed{in: payload}, limit: limit, whole: true}
	if err := d.value(0); err != nil {
		return nil, false, err
	}
	if d.at != len(payload) {
		return nil, false, errTrailing
	}
	return d.out, d.whole, nil
}

// decoder walks over a value and writes it.
type decoder struct {
	packed
	out   []byte
	limit int
	whole bool // nothing was dropped
}

// value writes the value at d.at and moves past it.
func (d *decoder) value(depth int) error {
	if depth > maxDepth {
		return errTooDeep
	}
	v, err := d.next()
	if err != nil {
		return err
	}
	switch v.shape {
	case shapeList:
		return d.list(v.n, depth)
	case shapeMap:
		return d.object(v.n, depth)
	case shapeExtension:
		if t, ok := v.timestamp(); !ok {
			d.raw(`{"extension":` + strconv.Itoa(int(v.kind)) + `,"data":`)
			d.base64(v.data)
			d.raw("}")
		} else {
			d.text(Stamp{t}.String())
		}
	case shapeText:
		d.text(string(v.data))
	case shapeBytes:
		d.base64(v.data)
	default:
		plain, number := v.plain()
		if number {
			d.raw(plain)
		} else {
			d.text(plain)
		}
	}
	return nil
}

// plain writes nil, a Boolean or a number; ok is false for a number that JSON cannot express.
func (v *item) plain() (text string, ok bool) {
	switch v.shape {
	case shapeNil:
		return "null", true
	case shapeBool:
		return strconv.FormatBool(v.n == 1), true
	case shapeInt:
		return strconv.FormatInt(int64(v.n), 10), true
	case shapeUint:
		return strconv.FormatUint(v.n, 10), true
	}
	f, bits := v.float(), 64
	if v.shape == shapeFloat32 {
		bits = 32
	}
	return strconv.FormatFloat(f, 'g', -1, bits), !math.IsNaN(f) && !math.IsInf(f, 0)
}

// timestamp reads the extension of type -1, in any of its three lengths.
func (v *item) timestamp() (t time.Time, ok bool) {
	b := v.data
	switch {
	case v.kind != -1:
	case len(b) == 4:
		return time.Unix(int64(binary.BigEndian.Uint32(b)), 0), true
	case len(b) == 8:
		both := binary.BigEndian.Uint64(b)
		return time.Unix(int64(both&(1<<34-1)), int64(both>>34)), true
	case len(b) == 12:
		return time.Unix(int64(binary.BigEndian.Uint64(b[4:])), int64(binary.BigEndian.Uint32(b))), true
	}
	return t, false
}

func (d *decoder) list(n uint64, depth int) error {
	d.raw("[")
	for i := range n {
		if i > 0 {
			d.raw(",")
		}
		if err := d.value(depth + 1); err != nil {
			return err
		}
	}
	d.raw("]")
	return nil
}

func (d *decoder) object(n uint64, depth int) error {
	d.raw("{")
	for i := range n {
		if i > 0 {
			d.raw(",")
		}
		if err := d.key(depth + 1); err != nil {
			return err
		}
		d.raw(":")
		if err := d.value(depth + 1); err != nil {
			return err
		}
	}
	d.raw("}")
	return nil
}

// key writes a key as a string: a string unchanged, a number or Boolean as its JSON, and a list,
// map or extension as its bytes in hex, since quoting those at each level would double their
// size.
func (d *decoder) key(depth int) error {
	from := d.at
	if depth > maxDepth {
		return errTooDeep
	}
	v, err := d.next()
	if err != nil {
		return err
	}
	text, ok := v.scalar()
	if !ok {
		d.at = from
		if err := d.skip(depth); err != nil {
			return err
		}
		text = "0x" + hex.EncodeToString(d.in[from:d.at])
	}
	d.text(text)
	return nil
}

// scalar returns the text that the JSON of a value contains. A list, a map, and an extension other than a time have
// none.
func (v *item) scalar() (text string, ok bool) {
	switch v.shape {
	case shapeList, shapeMap:
		return "", false
	case shapeText:
		return string(v.data), true
	case shapeBytes:
		return base64.StdEncoding.EncodeToString(v.data), true
	case shapeExtension:
		t, ok := v.timestamp()
		return Stamp{t}.String(), ok
	}
	text, _ = v.plain()
	return text, true
}

// full reports whether the limit is reached while there is more to write.
func (d *decoder) full() bool {
	if len(d.out) >= d.limit {
		d.whole = false
	}
	return !d.whole
}

func (d *decoder) raw(text string) {
	if !d.full() {
		d.out = append(d.out, text...)
	}
}

// base64 writes bytes, and encodes only those that are kept.
func (d *decoder) base64(b []byte) {
	if d.full() {
		return
	}
	if room := d.limit - len(d.out); len(b) > room {
		b, d.whole = b[:room], false
	}
	d.out = append(d.out, '"')
	d.out = base64.StdEncoding.AppendEncode(d.out, b)
	d.out = append(d.out, '"')
}

// text writes a JSON string. Bytes that are not UTF-8 become U+FFFD.
func (d *decoder) text(s string) {
	if d.full() {
		return
	}
	if room := d.limit - len(d.out); len(s) > room {
		for room > 0 && !utf8.RuneStart(s[room]) {
			room--
		}
		if s, d.whole = s[:room], false; s == "" {
			return
		}
	}
	d.out = appendQuoted(d.out, s)
}

// appendQuoted appends a JSON string. It escapes what a terminal would not show as one plain
// character; a program reads the same string.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for at := 0; at < len(s); {
		r, size := utf8.DecodeRuneInString(s[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, `\ufffd`...)
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case unicode.IsPrint(r):
			dst = append(dst, s[at:at+size]...)
		case r <= 0xffff:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		}
		at += size
	}
	return append(dst, '"')
}
