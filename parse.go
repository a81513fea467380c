package pawl

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// parseRecord reads what [appendRecord] wrote. Its errors match [ErrCorrupt]. The
// payload of the result is a part of b, which must not change afterwards. Apart is
// the size of a payload that the record leaves out, or 0 if it has the payload.
func parseRecord(b []byte) (e *Envelope, apart int, err error) {
	if err := checkRecord(b); err != nil {
		return nil, 0, err
	}
	body := b[recordHeader:]
	if err := guard(body); err != nil {
		return nil, 0, err
	}
	r := recordDecoders.Get().(*recordDecoder)
	defer recordDecoders.Put(r)
	r.reset(body)
	e = new(Envelope)
	apart = r.envelope(e, body, b[0])
	r.limits(e)
	if r.err != nil {
		return nil, 0, fmt.Errorf("%w: record: %w", ErrCorrupt, r.err)
	}
	return e, apart, nil
}

// limits refuses what no queue would have stored: names are in the keys of rows, which have a limit of their
// own.
func (r *recordDecoder) limits(e *Envelope) {
	for _, s := range []string{e.Kind, e.Origin, e.Queue, e.IdempotencyKey, e.UniqueKey, e.Key, e.KeyID, e.Group} {
		if len(s) > MaxNameBytes {
			r.fail(fmt.Errorf("a name of %d bytes", len(s)))
		}
	}
}

// checkRecord checks the version and the checksum of a record without decoding
// it. Its errors match [ErrCorrupt].
func checkRecord(b []byte) error {
	switch {
	case len(b) < recordHeader:
		return fmt.Errorf("%w: a record of %d bytes", ErrCorrupt, len(b))
	case b[0] < 1 || b[0] > recordVersion:
		return fmt.Errorf("%w: record of version %d, this build reads versions 1 to %d", ErrCorrupt, b[0], recordVersion)
	case binary.LittleEndian.Uint32(b[1:]) != checksum(b[recordHeader:]):
		return fmt.Errorf("%w: the checksum of a record does not match", ErrCorrupt)
	}
	return nil
}

// recordDecoder reads fields until the first error, which it keeps.
type recordDecoder struct {
	src  bytes.Reader
	body []byte // what src reads
	dec  *msgpack.Decoder
	err  error
}

var recordDecoders = sync.Pool{New: func() any {
	r := new(recordDecoder)
	r.dec = msgpack.NewDecoder(&r.src)
	return r
}}

func (r *recordDecoder) reset(b []byte) {
	r.src.Reset(b)
	r.dec.Reset(&r.src)
	r.body, r.err = b, nil
}

func (r *recordDecoder) envelope(e *Envelope, body []byte, version byte) (apart int) {
	fields := recordFields
	if version == 1 {
		fields--
	}
	if n := r.arrayLen(); r.err == nil && n != fields {
		r.fail(fmt.Errorf("%d fields in place of %d", n, fields))
	}
	e.Seq = r.uint()
	r.id(&e.ID)
	e.Kind = r.string()
	e.Origin = r.string()
	e.Queue = r.string()
	e.Created = r.time()
	e.NotBefore = r.time()
	e.Priority = int8(r.within(math.MinInt8, math.MaxInt8))
	e.MaxRetries = r.count()
	e.Attempts = r.count()
	e.Crashes = r.count()
	e.Failures = r.count()
	e.Timeout = time.Duration(r.int())
	e.Policy = r.strategy()
	e.Headers = r.headers()
	e.Death = r.death()
	if version > 1 {
		r.rare(e)
	}
	apart = r.count()
	size := r.bytesLen()
	if r.err == nil && (size < 0) != (apart != 0) {
		r.fail(errors.New("the payload is neither here nor apart, or both"))
	}
	if size >= 0 {
		e.Payload = body[len(body)-size:]
	}
	return apart
}

func (r *recordDecoder) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *recordDecoder) arrayLen() int {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeArrayLen()
	r.fail(err)
	return n
}

// bytesLen reads the length of a binary value, -1 for nil. The guard has checked that the bytes are there.
func (r *recordDecoder) bytesLen() int {
	if r.err != nil {
		return -1
	}
	n, err := r.dec.DecodeBytesLen()
	r.fail(err)
	return n
}

func (r *recordDecoder) uint() uint64 {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeUint64()
	r.fail(err)
	return n
}

func (r *recordDecoder) int() int64 {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeInt64()
	r.fail(err)
	return n
}

// within reads an integer from low to high.
func (r *recordDecoder) within(low, high int64) int64 {
	n := r.int()
	if r.err == nil && (n < low || n > high) {
		r.fail(fmt.Errorf("%d where a number from %d to %d belongs", n, low, high))
	}
	return n
}

func (r *recordDecoder) count() int { return int(r.within(0, math.MaxInt)) }

func (r *recordDecoder) float() float64 {
	if r.err != nil {
		return 0
	}
	f, err := r.dec.DecodeFloat64()
	r.fail(err)
	return f
}

func (r *recordDecoder) bool() bool {
	if r.err != nil {
		return false
	}
	b, err := r.dec.DecodeBool()
	r.fail(err)
	return b
}

func (r *recordDecoder) string() string {
	if r.err != nil {
		return ""
	}
	s, err := r.dec.DecodeString()
	r.fail(err)
	return s
}

func (r *recordDecoder) id(id *ID) {
	n := r.bytesLen()
	if r.err == nil && n != len(id) {
		r.fail(fmt.Errorf("an ID of %d bytes", n))
	}
	if r.err == nil {
		r.fail(r.dec.ReadFull(id[:]))
	}
}

func (r *recordDecoder) time() time.Time {
	seconds, nanos := r.int(), r.int()
	if r.err == nil && (nanos < 0 || nanos >= 1e9) {
		r.fail(fmt.Errorf("a time with %d nanoseconds", nanos))
	}
	return time.Unix(seconds, nanos)
}

func (r *recordDecoder) strategy() *Strategy {
	n := r.arrayLen()
	if r.err != nil || n == -1 {
		return nil
	}
	if n != 7 {
		r.fail(fmt.Errorf("a policy of %d fields", n))
	}
	s := Strategy{
		form:       form(r.within(0, int64(formExponential))),
		base:       time.Duration(r.int()),
		multiplier: r.float(),
		capped:     r.bool(),
		max:        time.Duration(r.int()),
		jitter:     jitter(r.within(0, int64(jitterFull))),
		fraction:   r.float(),
	}.checked()
	r.fail(s.err)
	return &s
}

func (r *recordDecoder) headers() map[string]string {
	if r.err != nil {
		return nil
	}
	// DecodeMapLen also takes an extension and reads on inside its data, which the guard has not checked.
	if code, err := r.dec.PeekCode(); err == nil && msgpcode.IsExt(code) {
		r.fail(errors.New("headers in an extension"))
		return nil
	}
	n, err := r.dec.DecodeMapLen()
	r.fail(err)
	if r.err != nil || n <= 0 {
		return nil
	}
	h := make(map[string]string, min(n, MaxHeaders))
	for range n {
		key := r.string()
		h[key] = r.string()
	}
	return h
}

func (r *recordDecoder) death() *Death {
	n := r.arrayLen()
	if r.err != nil || n == -1 {
		return nil
	}
	if n != 3 {
		r.fail(fmt.Errorf("a death of %d fields", n))
	}
	return &Death{Reason: Reason(r.string()), At: r.time()}
}

func (r *recordDecoder) rare(e *Envelope) {
	n := r.arrayLen()
	if r.err != nil || n == -1 {
		return
	}
	if n < rareFields || n > rareFields+3 {
		r.fail(fmt.Errorf("%d rare fields in place of %d", n, rareFields))
	}
	if !r.skip(beforeKey) {
		e.IdempotencyKey = r.string()
		e.IdempotencyTTL = time.Duration(r.int())
		e.UniqueKey = r.string()
		e.UniqueIn = statesOf(uint16(r.within(0, 1<<len(States())-1)))
		e.Deadline = r.optional()
		e.Retain = time.Duration(r.int())
		e.KeyID = r.string()
		e.Signature = r.bytes()
		e.Cancelled = r.bool()
		e.BackoffSince = r.optional()
		e.Completed = r.optional()
	}
	e.Key = r.string()
	if !r.skip(afterKey) {
		e.Result = r.bytes()
		e.Group = r.string()
		e.Cursor = r.bytes()
		e.HoldsKey = r.bool()
	}
	switch n {
	case rareFields + 1:
		e.FairTag = r.within(1, 1<<62)
	case rareFields + 2:
		e.FairTag = r.within(0, 1<<62)
		e.Cost = int(r.within(2, MaxCost))
	case rareFields + 3:
		e.FairTag = r.within(0, 1<<62)
		e.Cost = int(r.within(0, MaxCost))
		e.Weight = int(r.within(2, MaxTurns))
	}
}

// The rare fields before and after the key, of a job without any of them. Most jobs with a key have no more.
const (
	beforeKey = "\xa0\x00\xa0\x00\xc0\x00\xa0\xc0\xc2\xc0\xc0"
	afterKey  = "\xc0\xa0\xc0\xc2"
)

// skip skips bytes if they are the next ones. That is faster than reading them field by field.
func (r *recordDecoder) skip(next string) bool {
	rest := r.body[len(r.body)-r.src.Len():]
	if r.err != nil || len(rest) < len(next) || string(rest[:len(next)]) != next {
		return false
	}
	_, err := r.src.Seek(int64(len(next)), io.SeekCurrent)
	return err == nil
}

func (r *recordDecoder) optional() (t time.Time) {
	n := r.arrayLen()
	if r.err != nil || n == -1 {
		return t
	}
	if n != 2 {
		r.fail(fmt.Errorf("a time of %d fields", n))
	}
	return r.time()
}

// bytes reads a short binary value; the guard has seen that it is there.
func (r *recordDecoder) bytes() []byte {
	n := r.bytesLen()
	if r.err != nil || n < 0 {
		return nil
	}
	b := make([]byte, n)
	r.fail(r.dec.ReadFull(b))
	return b
}
