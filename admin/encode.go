package admin

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// EncodeJSON turns JSON into the payload that the handler of a kind decodes, as if the arguments
// had been of that kind's Go type. Whole numbers are exact and have up to 64 bits; a JSON string
// fits a string and a []byte. Two types of MessagePack have no JSON form and are objects with
// one key: {"$time":"2026-03-01T12:00:00Z"} is a time.Time, and {"$base64":"AP8="} is bytes.
//
// It rejects, with the line and column: invalid JSON, more than one value, a whole number that
// does not fit, a duplicate key of an object, bytes that are not UTF-8, and nesting of more than
// 32 levels. Errors are [pawl.InvalidError].
func EncodeJSON(text []byte) ([]byte, error) {
	e := &encoder{text: text, dec: json.NewDecoder(bytes.NewReader(text))}
	e.dec.UseNumber()
	err := e.check()
	if err == nil {
		err = e.value(0)
	}
	if err != nil {
		line, column := position(text, e.from)
		return nil, invalid("JSON", "line %d, column %d: %s", line, column, err)
	}
	return e.out, nil
}

// The keys of objects that stand for types JSON lacks.
const (
	base64Key = "$base64"
	timeKey   = "$time"
)

// encoder reads tokens and writes MessagePack.
type encoder struct {
	text []byte
	dec  *json.Decoder
	out  []byte
	from int // where the last token begins, or where the text is wrong
}

// check rejects anything but exactly one value, so that reading tokens cannot fail later.
func (e *encoder) check() error {
	if at := invalidUTF8(e.text); at >= 0 {
		e.from = at
		return errors.New(`bytes that are no UTF-8; write them as {"` + base64Key + `":"…"}`)
	}
	err := json.NewDecoder(bytes.NewReader(e.text)).Decode(new(json.RawMessage))
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		e.from = len(e.text)
		return errors.New("it ends too early")
	}
	var syntax *json.SyntaxError
	if err = json.Unmarshal(e.text, new(json.RawMessage)); errors.As(err, &syntax) {
		e.from = int(syntax.Offset) - 1 // Offset counts the bytes read, including the bad one
	}
	return err
}

// token reads the next token and records where it begins.
func (e *encoder) token() (json.Token, error) {
	at := int(e.dec.InputOffset())
	for at < len(e.text) && strings.IndexByte(" \t\r\n,:", e.text[at]) >= 0 {
		at++
	}
	e.from = at
	return e.dec.Token()
}

func (e *encoder) value(depth int) error {
	token, err := e.token()
	if err != nil {
		return err
	}
	return e.write(token, depth)
}

func (e *encoder) write(token json.Token, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	switch v := token.(type) {
	case nil:
		e.out = append(e.out, 0xc0)
	case bool:
		e.out = append(e.out, 0xc2)
		if v {
			e.out[len(e.out)-1] = 0xc3
		}
	case string:
		e.data(v, 0xa0, 32, 0xd9)
	case json.Number:
		return e.number(string(v))
	case json.Delim:
		if v == '[' {
			return e.list(depth)
		}
		return e.object(depth)
	}
	return nil
}

func (e *encoder) list(depth int) error {
	start, n := len(e.out), 0
	for ; e.dec.More(); n++ {
		if err := e.value(depth + 1); err != nil {
			return err
		}
	}
	if _, err := e.token(); err != nil { // end of the list
		return err
	}
	e.head(start, n, 0x90, 0xdc)
	return nil
}

func (e *encoder) object(depth int) error {
	start, seen := len(e.out), make(map[string]bool)
	for e.dec.More() {
		token, err := e.token()
		if err != nil {
			return err
		}
		key, ok := token.(string)
		if !ok {
			return errors.New("a key that is no text")
		}
		if seen[key] {
			return fmt.Errorf("the key %q is there twice", truncate(key))
		}
		seen[key] = true
		e.data(key, 0xa0, 32, 0xd9)
		if err := e.value(depth + 1); err != nil {
			return err
		}
	}
	if _, err := e.token(); err != nil { // end of the object
		return err
	}
	if len(seen) == 1 && (seen[base64Key] || seen[timeKey]) {
		return e.special(start)
	}
	e.head(start, len(seen), 0x80, 0xde)
	return nil
}

// special replaces the key and the string written from start on by the value that they stand
// for.
func (e *encoder) special(start int) error {
	p := &packed{in: e.out, at: start}
	key, _ := p.next()
	v, err := p.next()
	if err != nil || v.shape != shapeText {
		return fmt.Errorf("the value of %q is no text", key.data)
	}
	name, text := string(key.data), string(v.data)
	e.out = e.out[:start]
	if name == timeKey {
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return fmt.Errorf("the value of %q is %q, which is not of the form 2006-01-02T15:04:05Z", name, truncate(text))
		}
		e.time(t)
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("the value of %q: %w", name, err)
	}
	e.data(string(b), 0, 0, 0xc4)
	return nil
}

// time appends a timestamp of 96 bits, which fits every time.
func (e *encoder) time(t time.Time) {
	e.out = append(e.out, 0xc7, 12, 0xff)
	e.out = binary.BigEndian.AppendUint32(e.out, uint32(t.Nanosecond()))
	e.out = binary.BigEndian.AppendUint64(e.out, uint64(t.Unix()))
}

// data appends a string or bytes. Below short, the length is in the first byte; otherwise it has
// 8, 16 or 32 bits after one of the codes that begin at sized.
func (e *encoder) data(s string, fixed byte, short int, sized byte) {
	switch n := len(s); {
	case n < short:
		e.out = append(e.out, fixed|byte(n))
	case n <= math.MaxUint8:
		e.out = append(e.out, sized, byte(n))
	case n <= math.MaxUint16:
		e.out = binary.BigEndian.AppendUint16(append(e.out, sized+1), uint16(n))
	default:
		e.out = binary.BigEndian.AppendUint32(append(e.out, sized+2), uint32(n))
	}
	e.out = append(e.out, s...)
}

// head inserts the head of a list or map of n elements before what was written from start on.
func (e *encoder) head(start, n int, fixed, sized byte) {
	var head []byte
	switch {
	case n < 16:
		head = []byte{fixed | byte(n)}
	case n <= math.MaxUint16:
		head = binary.BigEndian.AppendUint16([]byte{sized}, uint16(n))
	default:
		head = binary.BigEndian.AppendUint32([]byte{sized + 1}, uint32(n))
	}
	e.out = slices.Insert(e.out, start, head...)
}

func (e *encoder) number(text string) error {
	if strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("the number %s is too large; write it as a text, in quotes", truncate(text))
		}
		e.out = binary.BigEndian.AppendUint64(append(e.out, 0xcb), math.Float64bits(f))
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n < 0 {
		e.negative(n)
		return nil
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "-"), 10, 64)
	if err != nil || text[0] == '-' && n != 0 {
		return fmt.Errorf("the whole number %s has more than 64 bits; write it as a text, in quotes", truncate(text))
	}
	switch {
	case n <= 0x7f:
		e.out = append(e.out, byte(n))
	case n <= math.MaxUint8:
		e.out = append(e.out, 0xcc, byte(n))
	case n <= math.MaxUint16:
		e.out = binary.BigEndian.AppendUint16(append(e.out, 0xcd), uint16(n))
	case n <= math.MaxUint32:
		e.out = binary.BigEndian.AppendUint32(append(e.out, 0xce), uint32(n))
	default:
		e.out = binary.BigEndian.AppendUint64(append(e.out, 0xcf), n)
	}
	return nil
}

func (e *encoder) negative(n int64) {
	switch {
	case n >= -32:
		e.out = append(e.out, byte(n))
	case n >= math.MinInt8:
		e.out = append(e.out, 0xd0, byte(n))
	case n >= math.MinInt16:
		e.out = binary.BigEndian.AppendUint16(append(e.out, 0xd1), uint16(n))
	case n >= math.MinInt32:
		e.out = binary.BigEndian.AppendUint32(append(e.out, 0xd2), uint32(n))
	default:
		e.out = binary.BigEndian.AppendUint64(append(e.out, 0xd3), uint64(n))
	}
}

// position returns an offset as a line and a column in characters, both from 1.
func position(text []byte, offset int) (line, column int) {
	before := text[:min(offset, len(text))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// invalidUTF8 returns the index of the first byte that is not UTF-8, or -1.
func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for at := 0; at < len(b); {
		r, size := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}
