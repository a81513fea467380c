package pawl

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// encodePayload turns arguments into MessagePack. It stops when they are larger than any
// queue takes. A queue refuses what is larger than its own limit.
func encodePayload(args any) ([]byte, error) {
	if err := checkEndless(args); err != nil {
		return nil, err
	}
	w := payloadWriters.Get().(*payloadWriter)
	defer w.giveBack()
	w.enc.Reset(w)
	w.enc.SetCustomStructTag(fieldTag)
	if err := w.enc.Encode(args); err != nil {
		if w.full {
			return nil, fmt.Errorf("%w: more than %d bytes; enqueue a reference to the data instead", ErrPayloadTooLarge, w.limit)
		}
		return nil, fmt.Errorf("%w: %T: %w", ErrPayloadEncoding, args, err)
	}
	if err := guard(w.buf.Bytes()); err != nil {
		return nil, fmt.Errorf("%w: %T: %v", ErrPayloadEncoding, args, err)
	}
	return bytes.Clone(w.buf.Bytes()), nil
}

// payloadWriter is an encoder with its buffer, reused.
type payloadWriter struct {
	limitedBuffer
	enc *msgpack.Encoder
}

var payloadWriters = sync.Pool{New: func() any {
	return &payloadWriter{limitedBuffer{limit: MaxBatchBytes}, msgpack.NewEncoder(nil)}
}}

// giveBack keeps a writer for the next payload, unless its buffer has become large.
func (w *payloadWriter) giveBack() {
	if w.buf.Cap() <= DefaultMaxPayload {
		w.buf.Reset()
		w.full = false
		payloadWriters.Put(w)
	}
}

// decodePayload is the inverse of encodePayload. Its error names the field that does not fit.
func decodePayload(b []byte, args any, unknownFields bool) error {
	err := decodeValue(b, args, unknownFields)
	if t := reflect.TypeOf(args); err != nil && !errors.As(err, new(*misfit)) && t != nil && t.Kind() == reflect.Pointer {
		if place := misplaced(b, t.Elem(), 0); place != "" {
			err = fmt.Errorf("%s: %w", place, err)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPayloadEncoding, err)
	}
	return nil
}

// decodeValue is decodePayload without the name. The bytes may come from a file that
// anybody wrote. The decoder panics on a nil in place of a time.Time and on a list as a
// key; decodeValue returns an error for these. The decoder also loses what a type cannot
// hold, so [fits] checks that first.
func decodeValue(b []byte, args any, unknownFields bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	posing, err := scan(b)
	if err == nil {
		err = fits(b, target(args), unknownFields)
	}
	if err != nil {
		return err
	}
	r := payloadReaders.Get().(*payloadReader) // not given back after a panic
	r.Reset(b)
	r.posing = posing
	r.dec.Reset(r)
	r.dec.SetCustomStructTag(fieldTag)
	err = r.dec.Decode(args)
	if len(b) <= DefaultMaxPayload { // the decoder's buffer may have become as large
		r.Reset(nil)
		r.posing = nil
		payloadReaders.Put(r)
	}
	return err
}

// target returns the place that the decoder fills through args: behind the pointer, and
// behind the pointer that an interface there holds.
func target(args any) slot {
	v := reflect.ValueOf(args)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return slot{nilable: true} // the decoder refuses it
	}
	v = v.Elem()
	if v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	return slotOf(v.Type())
}

// payloadReader is a decoder with its bytes, reused. It does not read extensions whose
// data begin like a map; see [scan]. A decoder reads codes byte by byte, and the data of
// an extension whole.
type payloadReader struct {
	bytes.Reader
	posing []int
	dec    *msgpack.Decoder
}

var payloadReaders = sync.Pool{New: func() any { return &payloadReader{dec: msgpack.NewDecoder(nil)} }}

func (r *payloadReader) ReadByte() (byte, error) {
	at := int(r.Size()) - r.Len()
	if _, found := slices.BinarySearch(r.posing, at); found {
		return 0, errExtension
	}
	return r.Reader.ReadByte()
}

var errExtension = fmt.Errorf("%w: an extension in place of a map", ErrCorrupt)

// limitedBuffer is a bytes.Buffer that stops at a limit.
type limitedBuffer struct {
	buf   bytes.Buffer
	limit int
	full  bool
}

func (w *limitedBuffer) Write(p []byte) (int, error) {
	if w.buf.Len()+len(p) > w.limit {
		w.full = true
		return 0, ErrPayloadTooLarge
	}
	return w.buf.Write(p)
}

func (w *limitedBuffer) WriteByte(c byte) error {
	if w.buf.Len() >= w.limit {
		w.full = true
		return ErrPayloadTooLarge
	}
	return w.buf.WriteByte(c)
}
