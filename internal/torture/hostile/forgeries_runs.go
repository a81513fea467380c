package hostile

import (
	"encoding/binary"
	"math"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl/driver"
)

// flowForgeries store something among the rows of workflows, below their root bucket.
var flowForgeries = []forgery{
	{"a run with absurd fields", putAbsurd("runs")},
	{"a run with absurd fields", putAbsurd("runs")},
	{"an entry with absurd fields", putAbsurd("steps")},
	{"an entry with absurd fields", putAbsurd("steps")},
	{"an entry twice", (*hostile).putEntryTwice},
	{"a value that lies apart", (*hostile).putBlob},
	{"a name that leads elsewhere", (*hostile).putName},
	{"a signal", (*hostile).putSignal},
	{"an item with absurd fields", putAbsurd("items")},
	{"a stream with absurd fields", putAbsurd("streams")},
	{"an answer with absurd fields", putAbsurd("answers")},
	{"a place", (*hostile).putPlace},
	{"a place", (*hostile).putPlace},
	{"a time at which to remove a run", (*hostile).putEnded},
	{"a run that is blocked", (*hostile).putBlocked},
	{"a row of workflows of any bytes", (*hostile).putFlowNoise},
	{"no row", (*hostile).deleteRow},
	{"no bucket", (*hostile).deleteBucket},
	{"a bucket in place of a row", (*hostile).nestBucket},
}

// rowForm is the first byte of a value.
const rowForm = 1

// putFlowRow stores a row with a right checksum in the named bucket.
func putFlowRow(root *bbolt.Bucket, bucket string, key, content []byte) error {
	sealed := append([]byte{rowForm}, content...)
	sealed = append(sealed, 0, 0, 0, 0)
	sealFlow(bucket, key, sealed)
	return in(root, bucket).Put(key, sealed)
}

// absurd changes some fields of a row and encodes it again.
func (h *hostile) absurd(content []byte) []byte {
	var fields []any
	if err := driver.DecodePayload(content, &fields); err != nil || len(fields) == 0 || h.rand.IntN(8) == 0 {
		return []byte(bombs[h.rand.IntN(len(bombs))])
	}
	for range 1 + h.rand.IntN(3) {
		at := h.rand.IntN(len(fields))
		fields[at] = h.like(fields[at])
	}
	b, err := driver.EncodePayload(fields)
	if err != nil {
		return content
	}
	if h.rand.IntN(16) == 0 {
		b = append(b[:h.rand.IntN(len(b))], bombs[h.rand.IntN(len(bombs))]...)
	}
	return b
}

// like draws a value of the same type as another, or sometimes of any type.
func (h *hostile) like(v any) any {
	if h.rand.IntN(8) == 0 {
		return []any{nil, -1, math.NaN(), true, "", []any{}, map[string]any{"a": 1}, []byte{}}[h.rand.IntN(8)]
	}
	states := []string{"running", "sleeping", "waiting", "blocked", "done", "failed", "cancelled", "terminated", "paused", "dead", "pending"}
	kinds := []string{"step", "step-tx", "sleep", "wait", "child", "race", "version", "undo"}
	switch v := v.(type) {
	case string:
		if h.rand.IntN(2) == 0 {
			return append(states, kinds...)[h.rand.IntN(len(states)+len(kinds))]
		}
		return h.text()
	case []byte:
		if id := h.anyRun(); len(v) == len(id) && h.rand.IntN(2) == 0 {
			return id[:]
		}
		return h.bytes(6000)
	case bool:
		return !v
	case []any:
		return []any{h.text(), h.text(), []any{h.text(), h.text()}}[:h.rand.IntN(4)]
	case nil:
		return []any{[]byte{1}, []any{"go"}, []any{[]any{"*t", "x"}}}[h.rand.IntN(3)]
	}
	if h.rand.IntN(2) == 0 {
		return h.rand.IntN(12) - 2
	}
	return int64(h.number())
}

// rowOf draws a row of a bucket, if possible of one run.
func (h *hostile) rowOf(b *bbolt.Bucket) (key, content []byte) {
	run := h.anyRun()
	c := b.Cursor()
	k, v := c.Seek(run[:])
	if k == nil { // few runs have rows in the bucket
		k, v = c.First()
	}
	for range h.rand.IntN(6) {
		if next, value := c.Next(); next != nil {
			k, v = next, value
		}
	}
	if len(v) < 5 {
		return nil, nil
	}
	return append([]byte(nil), k...), append([]byte(nil), v[1:len(v)-4]...)
}

// putAbsurd changes fields of a row of a bucket.
func putAbsurd(bucket string) func(*hostile, *bbolt.Bucket) error {
	return func(h *hostile, root *bbolt.Bucket) error {
		key, content := h.rowOf(in(root, bucket))
		if key == nil {
			return nil
		}
		return putFlowRow(root, bucket, key, h.absurd(content))
	}
}

func (h *hostile) putEntryTwice(root *bbolt.Bucket) error {
	key, content := h.rowOf(in(root, "steps"))
	if len(key) != 20 {
		return nil
	}
	binary.BigEndian.PutUint32(key[16:], []uint32{0, 1, 2, 1000, math.MaxUint32, uint32(h.number())}[h.rand.IntN(6)])
	return putFlowRow(root, "steps", key, content)
}

func (h *hostile) putBlob(root *bbolt.Bucket) error {
	run := h.anyRun()
	key := binary.BigEndian.AppendUint32(run[:], []uint32{0, 1, 2, 3, math.MaxUint32, uint32(h.number())}[h.rand.IntN(6)])
	return putFlowRow(root, "blobs", key, [][]byte{nil, {0xc0}, []byte(bombs[h.rand.IntN(len(bombs))]), h.bytes(9000)}[h.rand.IntN(4)])
}

func (h *hostile) putName(root *bbolt.Bucket) error {
	run, name := h.anyRun(), []string{"waits", "calls/child", h.text()}[h.rand.IntN(3)]
	return putFlowRow(root, "ids", []byte("story\x00"+name), run[:h.rand.IntN(2)*16])
}

func (h *hostile) putSignal(root *bbolt.Bucket) error {
	run := h.anyRun()
	key := append(run[:], []string{"go\x00", "go", "", h.text() + "\x00"}[h.rand.IntN(4)]...)
	if key = binary.BigEndian.AppendUint64(key, h.number()); len(key) > 30_000 {
		return nil // too long for bbolt
	}
	return putFlowRow(root, "signals", key, []byte(append([]string{"\xa1a", "\xa2ab"}, bombs...)[h.rand.IntN(2+len(bombs))]))
}

// putPlace stores a row of the places of a flow, or of a key of its runs: the head, a place that a run has, or a run in
// line.
func (h *hostile) putPlace(root *bbolt.Bucket) error {
	key := append([]byte([]string{"narrow", "paced", "story", h.text()}[h.rand.IntN(4)]), 0)
	key = append(append(key, []string{"", "a", "b", h.text()}[h.rand.IntN(4)]...), 0)
	if len(key) > 30_000 {
		return nil // too long for bbolt
	}
	run := h.anyRun()
	switch h.rand.IntN(3) {
	case 0:
		head := binary.AppendUvarint(nil, h.number())
		if h.rand.IntN(2) == 0 {
			head = binary.AppendVarint(head, h.time().UnixNano())
		}
		return putFlowRow(root, "places", key, head[:len(head)-h.rand.IntN(2)*h.rand.IntN(len(head))])
	case 1:
		return putFlowRow(root, "places", append(append(key, 1), run[:]...), nil)
	}
	key = binary.BigEndian.AppendUint64(append(key, 2), []uint64{1, 2, 3, h.number()}[h.rand.IntN(4)])
	return putFlowRow(root, "places", key, run[:16-h.rand.IntN(2)*h.rand.IntN(16)])
}

func (h *hostile) putEnded(root *bbolt.Bucket) error {
	run := h.anyRun()
	at := uint64(h.time().UnixNano()) ^ 1<<63
	key := append(binary.BigEndian.AppendUint64(nil, at), run[:]...)
	return putFlowRow(root, "ended", key[:len(key)-h.rand.IntN(2)*h.rand.IntN(20)], nil)
}

func (h *hostile) putBlocked(root *bbolt.Bucket) error {
	run := h.anyRun()
	return putFlowRow(root, "blocked", run[:16-h.rand.IntN(2)*h.rand.IntN(16)], []byte("1"))
}

func (h *hostile) putFlowNoise(root *bbolt.Bucket) error {
	bucket, _ := h.bucket(root)
	run := h.anyRun()
	key := append(run[:h.rand.IntN(17)], h.bytes(40)...)
	if len(key) == 0 {
		key = []byte{0}
	}
	return putFlowRow(root, string(bucket), key, h.bytes(300))
}
