package hostile

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// forgery stores something in a sound file, below its root bucket.
type forgery struct {
	name string
	put  func(h *hostile, root *bbolt.Bucket) error
}

var forgeries = []forgery{
	{"a record with absurd fields", (*hostile).putRecord},
	{"a record with absurd fields", (*hostile).putRecord},
	{"a record with a bomb as its payload", (*hostile).putBomb},
	{"a record of other MessagePack", (*hostile).putMessagePack},
	{"a row of a state", (*hostile).putStateRow},
	{"a row of a state", (*hostile).putStateRow},
	{"rows that lead nowhere, many", (*hostile).putMany},
	{"a failure in a history", (*hostile).putFailure},
	{"a queue", (*hostile).putQueue},
	{"a queue", (*hostile).putQueue},
	{"a key", (*hostile).putKey},
	{"a time that has come", (*hostile).putExpiry},
	{"a row of any bytes", (*hostile).putNoise},
	{"no row", (*hostile).deleteRow},
	{"no bucket", (*hostile).deleteBucket},
	{"a bucket in place of a row", (*hostile).nestBucket},
	{"a sequence at its end", (*hostile).putSequence},
}

// in returns a bucket, which an earlier forgery may have removed.
func in(root *bbolt.Bucket, name string) *bbolt.Bucket {
	b, err := root.CreateBucketIfNotExists([]byte(name))
	if err != nil {
		panic(err) // the name is valid, and the transaction writes
	}
	return b
}

// job draws a job of the file.
func (h *hostile) job() pawl.Envelope {
	if e := h.jobs[h.anyID()]; e != nil {
		return *e
	}
	return pawl.Envelope{ID: h.anyID(), Kind: "k", Queue: "a", Origin: "a"}
}

func putJob(root *bbolt.Bucket, e *pawl.Envelope, apart int) error {
	return in(root, "jobs").Put(e.ID[:], driver.AppendRecord(nil, e, apart))
}

func (h *hostile) putRecord(root *bbolt.Bucket) error {
	e, apart := h.job(), 0
	absurd := int(h.number())
	for range 1 + h.rand.IntN(3) {
		switch h.rand.IntN(19) {
		case 0:
			e.Kind = h.text()
		case 1:
			e.Queue = h.text()
		case 2:
			e.Origin = h.text()
		case 3:
			e.Created = h.time()
		case 4:
			e.NotBefore = h.time()
		case 5:
			e.Priority = int8(h.rand.Uint32())
		case 6:
			e.MaxRetries, e.Attempts = absurd, int(h.number())
		case 7:
			e.Crashes = absurd
		case 8:
			e.Failures = absurd
		case 9:
			e.Timeout, e.Retain = time.Duration(h.number()), time.Duration(h.number())
		case 10:
			e.Headers = map[string]string{h.text(): h.text(), "x": h.text()}
		case 11:
			e.Death = &pawl.Death{Reason: pawl.Reason(h.text()), At: h.time()}
		case 12:
			e.UniqueKey, e.UniqueIn = h.text(), pawl.States()[:h.rand.IntN(len(pawl.States())+1)]
		case 13:
			e.IdempotencyKey, e.IdempotencyTTL = h.text(), time.Duration(h.number())
		case 14:
			e.Deadline = h.time()
		case 15:
			e.Completed = h.time()
		case 16:
			apart = max(1, absurd)
		case 17:
			e.Seq = h.number()
		case 18:
			e.Signature, e.KeyID, e.BackoffSince, e.Cancelled = h.bytes(5000), h.text(), h.time(), true
		}
	}
	if e.Payload == nil && apart == 0 {
		e.Payload = []byte{}
	}
	return putJob(root, &e, apart)
}

// bombs are payloads that make a careless decoder allocate gigabytes or recurse deeply.
var bombs = []string{
	"\xdd\xff\xff\xff\xff", "\xdf\xff\xff\xff\xff", "\xdb\xff\xff\xff\xff", "\xc6\xff\xff\xff\xff", "\xc9\xff\xff\xff\xff\x05",
	"\xdc\xff\xff", "\xde\xff\xff", "\x91\x91\x91\x91\xdd\xff\xff\xff\xff", "\x81\xa1k\xdf\xff\xff\xff\xff",
	"\xc7\x08\x05\x81\xa0\xdd\xff\xff\xff\xff\x00", "\xc1", "",
}

func (h *hostile) putBomb(root *bbolt.Bucket) error {
	e := h.job()
	b := []byte(bombs[h.rand.IntN(len(bombs))])
	if h.rand.IntN(3) == 0 {
		b = make([]byte, 100_000)
		for i := range b {
			b[i] = 0x91 // nested lists
		}
	}
	e.Payload = b
	if len(b) < 1024 || h.rand.IntN(2) == 0 {
		return putJob(root, &e, 0)
	}
	if err := putSealed(in(root, "payloads"), e.ID[:], b); err != nil {
		return err
	}
	return putJob(root, &e, len(b))
}

func (h *hostile) putMessagePack(root *bbolt.Bucket) error {
	id, b := h.anyID(), h.bytes(80)
	if h.rand.IntN(2) == 0 { // a record with changed bytes
		e := h.job()
		b = driver.AppendRecord(nil, &e, 0)[5:]
		h.scribble(b[:min(len(b), 120)])
	}
	if h.rand.IntN(4) == 0 {
		b = append(b[:h.rand.IntN(len(b)+1)], bombs[h.rand.IntN(len(bombs))]...)
	}
	record := append([]byte{byte(h.rand.IntN(4)), 0, 0, 0, 0}, b...)
	sealRecord(record)
	return in(root, "jobs").Put(id[:], record)
}

// stateBuckets have a row for each job, with the widths of their keys and values.
var stateBuckets = []struct {
	name       string
	key, value int
}{{"ready", 30, 17}, {"delayed", 21, 47}, {"leased", 16, 38}, {"failed", 24, 25}, {"completed", 20, 25}, {"unique", 12, 16}, {"effects", 9, 28}}

func (h *hostile) putStateRow(root *bbolt.Bucket) error {
	b := stateBuckets[h.rand.IntN(len(stateBuckets))]
	key, value := h.bytes(60), h.bytes(60)
	if h.rand.IntN(4) > 0 {
		key, value = make([]byte, b.key), make([]byte, b.value)
		h.scribble(key)
		h.scribble(value)
	}
	if id := h.anyID(); b.name == "leased" && len(key) >= 16 {
		copy(key, id[:])
	} else if len(value) >= 16 {
		copy(value, id[:])
	}
	if len(key) > 4 && h.rand.IntN(2) == 0 { // the number of an existing queue
		copy(key, []byte{0, 0, 0, byte(1 + h.rand.IntN(2))})
	}
	if len(key) == 0 {
		key = []byte{0}
	}
	return putSealed(in(root, b.name), key, value)
}

func (h *hostile) putMany(root *bbolt.Bucket) error {
	b := in(root, []string{"ready", "failed", "delayed", "expiry", "history"}[h.rand.IntN(5)])
	for n := range 500 {
		key := binary.BigEndian.AppendUint64([]byte{0, 0, 0, 1, byte(h.rand.IntN(7)), 127, 128}, uint64(n))
		key = append(key, make([]byte, 11)...)
		if err := putSealed(b, key, make([]byte, 17)); err != nil {
			return err
		}
	}
	return nil
}

func (h *hostile) putFailure(root *bbolt.Bucket) error {
	id := h.anyID()
	key := binary.BigEndian.AppendUint32(id[:], uint32(h.number()))
	return putSealed(in(root, "history"), key, append(h.bytes(16), h.text()...))
}

func (h *hostile) putQueue(root *bbolt.Bucket) error {
	number, name := h.queueNumber(), h.text()
	row := h.numbers([]byte{byte(h.rand.IntN(2))}, 2)
	row = h.fields(append(append(row, byte(len(name))), name...), queueFields)
	b := in(root, "queues")
	if err := putSealed(b, append([]byte{0}, number...), row); err != nil {
		return err
	}
	if h.rand.IntN(2) == 0 {
		if err := putSealed(b, slices.Concat([]byte{4}, number, h.queueNumber()), h.numbers(nil, 14)); err != nil { // the counts of a line
			return err
		}
	}
	return putSealed(b, append([]byte{1}, name...), number)
}

// queueNumber draws the number of a queue or of a kind, usually one of the file.
func (h *hostile) queueNumber() []byte {
	return binary.BigEndian.AppendUint32(nil, uint32([]uint64{0, 1, 2, 3, 4, 5, h.number()}[h.rand.IntN(7)]))
}

// numbers appends numbers of 4 bytes, small or absurd.
func (h *hostile) numbers(b []byte, n int) []byte {
	for range n {
		b = binary.BigEndian.AppendUint32(b, uint32([]uint64{0, 1, 2, h.number()}[h.rand.IntN(4)]))
	}
	return b
}

// The tags of the fields of queues and of keys, with the usual widths of their values, and an unknown tag. A
// declared limit begins with 8 bytes as in the row of a queue, and fields follow.
var (
	queueFields = map[byte]int{1: 1, 2: 0, 3: 12, 16: 20, 17: 20, 24: 4, 25: 4, 26: 8, 27: 10, 99: 1}
	keyFields   = map[byte]int{1: 37, 2: 4, 3: 9, 4: 9, 9: 4, 16: 12, 17: 12, 18: 12, 99: 1}
)

// fields appends fields of a row.
func (h *hostile) fields(b []byte, widths map[byte]int) []byte {
	tags := slices.Sorted(maps.Keys(widths))
	for range h.rand.IntN(4) {
		tag := tags[h.rand.IntN(len(tags))]
		value := h.numbers(nil, 10)[:widths[tag]]
		switch h.rand.IntN(6) {
		case 0:
			value = h.bytes(40)
		case 1, 2:
			if len(value) > 0 {
				h.scribble(value)
			}
		}
		b = append(append(b, tag, byte(len(value))), value...)
	}
	return b
}

// putKey stores the row of a key: its lanes, and fields. A key of a job may have it, or the queue itself.
func (h *hostile) putKey(root *bbolt.Bucket) error {
	e := h.job()
	key := []string{"", e.Key, e.Key, h.text()}[h.rand.IntN(4)]
	row := h.numbers(nil, 1)
	lanes := h.rand.IntN(3)
	if row = binary.BigEndian.AppendUint32(row, uint32(lanes)); h.rand.IntN(2) == 0 {
		clear(row[:4])
	}
	for range lanes {
		row = append(append(append(row, h.queueNumber()...), h.queueNumber()...), byte(h.rand.IntN(7)))
		row = append(h.numbers(row, 2), h.numbers(nil, 6)[:21]...)
	}
	limit := slices.Concat(h.queueNumber(), []byte{byte(len(key))}, []byte(key))
	return putSealed(in(root, "keys"), limit, h.fields(row, keyFields))
}

func (h *hostile) putExpiry(root *bbolt.Bucket) error {
	at := h.time()
	key := binary.BigEndian.AppendUint64(nil, uint64(at.Unix())^1<<63)
	key = append(binary.BigEndian.AppendUint32(key, uint32(at.Nanosecond())), byte(h.rand.IntN(4)))
	id := h.anyID()
	return putSealed(in(root, "expiry"), append(key, id[:h.rand.IntN(17)]...), h.bytes(8))
}

// bucket draws a bucket of the queue.
func (h *hostile) bucket(root *bbolt.Bucket) (name []byte, b *bbolt.Bucket) {
	var names [][]byte
	_ = root.ForEachBucket(func(name []byte) error {
		names = append(names, append([]byte(nil), name...))
		return nil
	})
	name = names[h.rand.IntN(len(names))]
	return name, root.Bucket(name)
}

func (h *hostile) putNoise(root *bbolt.Bucket) error {
	_, b := h.bucket(root)
	return putSealed(b, append([]byte{byte(h.rand.IntN(3))}, h.bytes(300)...), h.bytes(3000))
}

func (h *hostile) deleteRow(root *bbolt.Bucket) error {
	_, b := h.bucket(root)
	c := b.Cursor()
	k, v := c.First()
	for range h.rand.IntN(20) {
		if next, value := c.Next(); next != nil {
			k, v = next, value
		}
	}
	if k == nil || v == nil {
		return nil
	}
	return b.Delete(append([]byte(nil), k...))
}

func (h *hostile) deleteBucket(root *bbolt.Bucket) error {
	name, _ := h.bucket(root)
	h.say("%s", strconv.Quote(string(name)))
	return root.DeleteBucket(name)
}

func (h *hostile) nestBucket(root *bbolt.Bucket) error {
	_, b := h.bucket(root)
	id := h.anyID()
	key := [][]byte{id[:], {0, 0, 0, 0, 1}, {0, 0, 0, 1}, h.bytes(30), []byte("format")}[h.rand.IntN(5)]
	if b.Get(key) != nil {
		if err := b.Delete(key); err != nil {
			return err
		}
	}
	_, err := b.CreateBucket(key)
	return err
}

func (h *hostile) putSequence(root *bbolt.Bucket) error {
	name, b := h.bucket(root)
	if h.rand.IntN(2) == 0 {
		name, b = []byte("jobs"), in(root, "jobs")
	}
	h.say("of %s", name)
	return b.SetSequence([]uint64{math.MaxUint64, math.MaxInt64, 0, h.number()}[h.rand.IntN(4)])
}
