package pawl

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"sync"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// A record is an envelope as bytes:
//
//	1 byte   format version
//	4 bytes  CRC-32C of all that follows, little-endian
//	rest     a MessagePack array, the payload last
//
// The fields that few jobs have are one value, nil for other jobs; version 1 lacks
// it. The payload comes last, so that a reader takes it as a slice of the record. A
// store may keep a large payload apart: then the value is nil, and the number before
// it is the size of the payload.
const (
	recordVersion = 2
	recordHeader  = 5
	recordFields  = 21
	rareFields    = 16 // one more if the job has a tag, two if it has a cost, three if it has a weight
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// recordEncoder is an encoder with its buffer, reused.
type recordEncoder struct {
	buf bytes.Buffer
	enc *msgpack.Encoder
}

var recordEncoders = sync.Pool{New: func() any {
	r := new(recordEncoder)
	r.enc = msgpack.NewEncoder(&r.buf)
	return r
}}

// appendRecord appends e to dst in the form in which it is stored. If apart is not 0, the
// payload is left out, and apart is its size in bytes. A record has neither what
// inspection fills in nor what is for Enqueue only.
func appendRecord(dst []byte, e *Envelope, apart int) []byte {
	r := recordEncoders.Get().(*recordEncoder)
	defer recordEncoders.Put(r)
	r.buf.Reset()
	r.envelope(e, apart)

	dst = append(slices.Grow(dst, recordHeader+r.buf.Len()), recordVersion)
	dst = binary.LittleEndian.AppendUint32(dst, checksum(r.buf.Bytes()))
	return append(dst, r.buf.Bytes()...)
}

// envelope writes the fields. Writes to a bytes.Buffer do not fail, so it ignores the
// encoder's errors.
func (r *recordEncoder) envelope(e *Envelope, apart int) {
	r.enc.EncodeArrayLen(recordFields)
	r.enc.EncodeUint(e.Seq)
	r.enc.EncodeBytes(e.ID[:])
	r.enc.EncodeString(e.Kind)
	r.enc.EncodeString(e.Origin)
	r.enc.EncodeString(e.Queue)
	r.time(e.Created)
	r.time(e.NotBefore)
	r.enc.EncodeInt(int64(e.Priority))
	r.enc.EncodeInt(int64(e.MaxRetries))
	r.enc.EncodeInt(int64(e.Attempts))
	r.enc.EncodeInt(int64(e.Crashes))
	r.enc.EncodeInt(int64(e.Failures))
	r.enc.EncodeInt(int64(e.Timeout))
	r.strategy(e.Policy)
	r.headers(e.Headers)
	r.death(e.Death)
	r.rare(e)
	r.enc.EncodeInt(int64(apart))
	if apart != 0 {
		r.enc.EncodeNil()
		return
	}
	r.enc.EncodeBytesLen(len(e.Payload))
	r.buf.Write(e.Payload)
}

// time writes seconds and nanoseconds separately: one number of nanoseconds would
// overflow in the year 2262.
func (r *recordEncoder) time(t time.Time) {
	r.enc.EncodeInt(t.Unix())
	r.enc.EncodeInt(int64(t.Nanosecond()))
}

func (r *recordEncoder) strategy(s *Strategy) {
	if s == nil {
		r.enc.EncodeNil()
		return
	}
	r.enc.EncodeArrayLen(7)
	r.enc.EncodeUint(uint64(s.form))
	r.enc.EncodeInt(int64(s.base))
	r.enc.EncodeFloat64(s.multiplier)
	r.enc.EncodeBool(s.capped)
	r.enc.EncodeInt(int64(s.max))
	r.enc.EncodeUint(uint64(s.jitter))
	r.enc.EncodeFloat64(s.fraction)
}

func (r *recordEncoder) headers(h map[string]string) {
	if len(h) == 0 {
		r.enc.EncodeNil()
		return
	}
	keys := make([]string, 0, len(h))
	for key := range h {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	r.enc.EncodeMapLen(len(h))
	for _, key := range keys {
		r.enc.EncodeString(key)
		r.enc.EncodeString(h[key])
	}
}

func (r *recordEncoder) death(d *Death) {
	if d == nil {
		r.enc.EncodeNil()
		return
	}
	r.enc.EncodeArrayLen(3)
	r.enc.EncodeString(string(d.Reason))
	r.time(d.At)
}

// rare writes what few jobs have.
func (r *recordEncoder) rare(e *Envelope) {
	if !e.isRare() {
		r.enc.EncodeNil()
		return
	}
	fields := rareFields
	switch {
	case e.Weight > 1:
		fields += 3
	case e.Cost > 1:
		fields += 2
	case e.FairTag != 0:
		fields++
	}
	r.enc.EncodeArrayLen(fields)
	r.enc.EncodeString(e.IdempotencyKey)
	r.enc.EncodeInt(int64(e.IdempotencyTTL))
	r.enc.EncodeString(e.UniqueKey)
	r.enc.EncodeUint(uint64(maskOf(e.UniqueIn)))
	r.optional(e.Deadline)
	r.enc.EncodeInt(int64(e.Retain))
	r.enc.EncodeString(e.KeyID)
	r.enc.EncodeBytes(e.Signature)
	r.enc.EncodeBool(e.Cancelled)
	r.optional(e.BackoffSince)
	r.optional(e.Completed)
	r.enc.EncodeString(e.Key)
	r.enc.EncodeBytes(e.Result)
	r.enc.EncodeString(e.Group)
	r.enc.EncodeBytes(e.Cursor)
	r.enc.EncodeBool(e.HoldsKey)
	if fields > rareFields {
		r.enc.EncodeInt(e.FairTag)
	}
	if fields > rareFields+1 {
		r.enc.EncodeInt(int64(e.Cost))
	}
	if fields > rareFields+2 {
		r.enc.EncodeInt(int64(e.Weight))
	}
}

func (e *Envelope) isRare() bool {
	return e.IdempotencyKey != "" || e.IdempotencyTTL != 0 || e.UniqueKey != "" || len(e.UniqueIn) > 0 ||
		!e.Deadline.IsZero() || e.Retain != 0 || e.KeyID != "" || e.Signature != nil ||
		e.Cancelled || !e.BackoffSince.IsZero() || !e.Completed.IsZero() || e.Key != "" || e.Result != nil || e.Group != "" || e.Cursor != nil || e.HoldsKey || e.FairTag != 0 || e.Cost > 1 || e.Weight > 1
}

// optional writes a time that may be zero.
func (r *recordEncoder) optional(t time.Time) {
	if t.IsZero() {
		r.enc.EncodeNil()
		return
	}
	r.enc.EncodeArrayLen(2)
	r.time(t)
}

// maskOf is a set of states as bits, in the order of States.
func maskOf(states []State) (mask uint16) {
	for i, state := range States() {
		if slices.Contains(states, state) {
			mask |= 1 << i
		}
	}
	return mask
}

func statesOf(mask uint16) (states []State) {
	for i, state := range States() {
		if mask&(1<<i) != 0 {
			states = append(states, state)
		}
	}
	return states
}
