package admin

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
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
	e.enc = msgpack.NewEncoder(&e.out)
	e.dec.UseNumber()
	err := e.check()
	if err == nil {
		err = e.value(0)
	}
	if err != nil {
		line, column := position(text, e.from)
		return nil, invalid("JSON", "line %d, column %d: %s", line, column, err)
	}
	return e.out.Bytes(), nil
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
	enc  *msgpack.Encoder // writes to out
	out  bytes.Buffer
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
		return e.enc.EncodeNil()
	case bool:
		return e.enc.EncodeBool(v)
	case string:
		return e.enc.EncodeString(v)
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
	start, n := e.out.Len(), 0
	for ; e.dec.More(); n++ {
		if err := e.value(depth + 1); err != nil {
			return err
		}
	}
	if _, err := e.token(); err != nil { // end of the list
		return err
	}
	return e.head(start, n, e.enc.EncodeArrayLen)
}

func (e *encoder) object(depth int) error {
	start, seen := e.out.Len(), make(map[string]bool)
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
		if err := e.enc.EncodeString(key); err != nil {
			return err
		}
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
	return e.head(start, len(seen), e.enc.EncodeMapLen)
}

// special replaces the key and the string written from start on by the value that they stand
// for.
func (e *encoder) special(start int) error {
	p := &packed{in: e.out.Bytes(), at: start}
	key, _ := p.next()
	v, err := p.next()
	if err != nil || v.shape != shapeText {
		return fmt.Errorf("the value of %q is no text", key.data)
	}
	name, text := string(key.data), string(v.data)
	e.out.Truncate(start)
	if name == timeKey {
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return fmt.Errorf("the value of %q is %q, which is not of the form 2006-01-02T15:04:05Z", name, truncate(text))
		}
		return e.time(t)
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("the value of %q: %w", name, err)
	}
	return e.enc.EncodeBytes(b)
}

// time appends a timestamp of 96 bits, which fits every time.
func (e *encoder) time(t time.Time) error {
	b := binary.BigEndian.AppendUint32([]byte{0xc7, 12, 0xff}, uint32(t.Nanosecond()))
	_, err := e.out.Write(binary.BigEndian.AppendUint64(b, uint64(t.Unix())))
	return err
}

// head inserts the head of a list or map of n elements before what was written from start on.
func (e *encoder) head(start, n int, encode func(n int) error) error {
	body := bytes.Clone(e.out.Bytes()[start:])
	e.out.Truncate(start)
	if err := encode(n); err != nil {
		return err
	}
	_, err := e.out.Write(body)
	return err
}

func (e *encoder) number(text string) error {
	if strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("the number %s is too large; write it as a text, in quotes", truncate(text))
		}
		return e.enc.EncodeFloat64(f)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return e.enc.EncodeInt(n)
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("the whole number %s has more than 64 bits; write it as a text, in quotes", truncate(text))
	}
	return e.enc.EncodeUint(n)
}

// position returns an offset as a line and a column in characters, both from 1.
func position(text []byte, offset int) (line, column int) {
	before := text[:min(offset, len(text))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// invalidUTF8 returns the index of the first byte that is not UTF-8, or -1.
func invalidUTF8(b []byte) int {
	for at, r := range string(b) {
		if r == utf8.RuneError && !bytes.HasPrefix(b[at:], []byte("\uFFFD")) {
			return at
		}
	}
	return -1
}
