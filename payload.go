package pawl

import (
	"bytes"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// payloadLimit is the most bytes of arguments that q takes, where it says so.
func payloadLimit(q Enqueuer) int {
	if l, ok := q.(interface{ MaxPayload() int }); ok {
		return l.MaxPayload()
	}
	return DefaultMaxPayload
}

// encodePayload turns arguments into MessagePack. The writer refuses to grow past
// the limit, which also ends the endless walk through a value that contains
// itself.
func encodePayload(args any, limit int) ([]byte, error) {
	w := limitedBuffer{limit: limit}
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	enc.Reset(&w)
	if err := enc.Encode(args); err != nil {
		if w.full {
			return nil, fmt.Errorf("%w: more than %d bytes; enqueue a reference to the data instead", ErrPayloadTooLarge, limit)
		}
		return nil, fmt.Errorf("%w: %T: %w", ErrPayloadEncoding, args, err)
	}
	if err := guard(w.buf.Bytes()); err != nil {
		return nil, fmt.Errorf("%w: %T: %w", ErrPayloadEncoding, args, err)
	}
	return w.buf.Bytes(), nil
}

// decodePayload is the inverse of encodePayload. The bytes may come from a file
// that anybody wrote.
func decodePayload(b []byte, args any) error {
	if err := guard(b); err != nil {
		return fmt.Errorf("%w: %w", ErrPayloadEncoding, err)
	}
	if err := msgpack.Unmarshal(b, args); err != nil {
		return fmt.Errorf("%w: %w", ErrPayloadEncoding, err)
	}
	return nil
}

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
