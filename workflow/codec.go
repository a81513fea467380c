package workflow

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl/driver"
)

// Codec changes the form in which an engine stores the values of runs: to encrypt them, as [Cipher]
// does, or to compress them. The values are inputs, results, signals, decided and published values, and items of
// streams. Names, IDs, the texts of errors, the sums of [Fingerprint], and the inputs of schedules are stored
// unchanged: operators and the engine need them.
//
// What Encode returns says how to decode it, such as the ID of a key, so that Decode reads values of all keys that are
// in use. Values that were stored without a codec stay readable, so a codec can be added later. It can be removed only
// once no run with encoded values is kept. Both methods are called concurrently, and also while others wait for the
// store, so they must not use the network. They must not change their arguments. An error of either method matches
// [ErrCodec] and blocks the run. The run keeps its journal, and is tried again when a worker starts.
type Codec interface {
	// Encode returns what is stored in place of a value.
	Encode(value []byte) (stored []byte, err error)

	// Decode returns the value for which Encode returned stored.
	Decode(stored []byte) (value []byte, err error)
}

// encodedMark is the first byte of an encoded value. No MessagePack value begins with it.
const encodedMark = 0xc1

// Encoded reports whether a stored value, such as [Reader] returns, was encoded by a [Codec].
func Encoded(stored []byte) bool { return len(stored) > 0 && stored[0] == encodedMark }

var errNoCodec = errors.New("it is encoded, and this engine has no codec; set the Codec of the engine that wrote it")

// encode returns the form in which a value is stored.
func (r *Reader) encode(what string, v any) ([]byte, error) {
	b, err := encode(what, v)
	if err != nil {
		return nil, err
	}
	return r.fits(what, b)
}

// fits encodes MessagePack as it is stored, if its stored form is not too large.
func (r *Reader) fits(what string, value []byte) ([]byte, error) {
	b, err := r.toStored(value)
	if err == nil && len(b) > MaxValue {
		err = fmt.Errorf("%s has %d bytes with its codec, at most %d are stored: %w", what, len(b), MaxValue, ErrTooLarge)
	}
	return b, err
}

// toStored encodes MessagePack as it is stored.
func (r *Reader) toStored(value []byte) (stored []byte, err error) {
	if r.codec == nil {
		return value, nil
	}
	defer codecFailed(&err, "encode")
	if stored, err = r.codec.Encode(value); err != nil {
		return nil, err
	}
	return append([]byte{encodedMark}, stored...), nil
}

// fromStored returns the MessagePack of a stored value.
func (r *Reader) fromStored(stored []byte) (value []byte, err error) {
	if !Encoded(stored) {
		return stored, nil
	}
	defer codecFailed(&err, "decode")
	if r.codec == nil {
		return nil, errNoCodec
	}
	return r.codec.Decode(stored[1:])
}

// codecFailed makes an error or a panic of a codec match [ErrCodec].
func codecFailed(err *error, verb string) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the codec panicked: %v", p)
	}
	if *err != nil {
		*err = fmt.Errorf("%w: %s a value: %w", ErrCodec, verb, *err)
	}
}

// shown returns a stored value as callers get it: decoded if the reader has a codec.
func (r *Reader) shown(stored []byte, err error) ([]byte, error) {
	if err != nil || r.codec == nil {
		return stored, err
	}
	return r.fromStored(stored)
}

// shownResult is shown for the result of a call.
func (r *Reader) shownResult(e *Entry) ([]byte, error) {
	var got selection
	if e.Kind != KindSelect || driver.DecodePayload(e.Result, &got) != nil || got.Selected < 0 || got.Selected >= len(got.Cases) {
		return r.shown(e.Result, nil)
	}
	name, value := got.Cases[got.Selected], []byte(nil)
	if strings.HasPrefix(name, signalCase) {
		var err error
		if value, err = r.shown(got.Payload, nil); err != nil {
			return nil, err
		}
	}
	b, err := packSelected(name, value, !Encoded(value)) // it is encoded still if the reader has no codec
	if err == nil && driver.DecodeKnown(b, new(struct{})) != nil {
		return packSelected(name, value, false) // the value is no payload, or too deep
	}
	return b, err
}

// packSelected returns the Result of the Entry of a Select, with a value that is a payload, or only bytes. Nil is none.
func packSelected(name string, value []byte, payload bool) ([]byte, error) {
	var b bytes.Buffer
	e := msgpack.NewEncoder(&b)
	err := errors.Join(e.EncodeMapLen(1+min(1, len(value))), e.EncodeString("case"), e.EncodeString(name))
	if len(value) > 0 {
		err = errors.Join(err, e.EncodeString("value"))
		if payload {
			b.Write(value)
		} else {
			err = errors.Join(err, e.EncodeBytes(value))
		}
	}
	return b.Bytes(), err
}

// encode encodes as the engine does. An error of the codec also stops the run, even if the function ignores the error.
func (x *execution) encode(what string, v any) ([]byte, error) {
	b, err := x.engine.encode(what, v)
	return b, x.codecStops(err)
}

// codecStops stops the run if the error comes from a codec.
func (x *execution) codecStops(err error) error {
	if errors.Is(err, ErrCodec) {
		return x.stop(err)
	}
	return err
}

// decode decodes a stored value of the run as its flow requires.
func (x *execution) decode(stored []byte, v any) error {
	b, err := x.engine.fromStored(stored)
	if err != nil {
		return x.codecStops(err)
	}
	return x.flow.decode(b, v)
}
