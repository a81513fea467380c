package hostile

import (
	"encoding/binary"
	"math"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// Forgeries by an attacker who knows the queue's format: rows and records with right
// checksums and wrong content.

// row changes bytes of a row in place and seals it.
func (h *hostile) row() {
	e := h.anyRow()
	if e.bucket == "jobs" {
		h.record()
		return
	}
	if !h.within(e.key, e.end-e.key) || e.end-e.value <= 4 {
		return
	}
	h.scribble(h.file[e.value : e.end-4])
	sealRow(e.bucket, h.file[e.key:e.value], h.file[e.value:e.end])
	h.forged = true
	h.say("of %s", e.bucket)
}

// record is row for the record of a job.
func (h *hostile) record() {
	for range 64 {
		e := h.anyRow()
		if e.bucket == "jobs" && e.end-e.value > 5 && h.within(e.value, e.end-e.value) {
			b := h.file[e.value:e.end]
			h.scribble(b[5:min(len(b), 5+200)])
			sealJob(h.file[e.key:e.value], b)
			h.forged = true
			h.say("of job %x", h.file[e.key:e.value])
			return
		}
	}
}

// scribble changes bytes and keeps their number.
func (h *hostile) scribble(b []byte) {
	for range 1 + h.rand.IntN(3) {
		at := h.rand.IntN(len(b))
		switch h.rand.IntN(5) {
		case 0:
			b[at] ^= 1 << h.rand.IntN(8)
		case 1:
			for ; at < len(b); at++ {
				b[at] = 0xff
			}
		case 2:
			clear(b[at:])
		case 3:
			for n := min(len(b)-at, 8); n > 0; n-- {
				b[at+n-1] = byte(h.rand.Uint32())
			}
		case 4:
			if at+8 <= len(b) {
				binary.BigEndian.PutUint64(b[at:], h.number())
			}
		}
	}
}

// formatVersion changes the version of the file's format.
func (h *hostile) formatVersion() {
	for _, e := range h.rows {
		if e.bucket != "meta" || !h.within(e.key, e.end-e.key) || e.end-e.value != 8 {
			continue
		}
		version := uint32(h.number())
		if h.rand.IntN(2) == 0 {
			version = uint32(h.rand.IntN(5))
		}
		binary.BigEndian.PutUint32(h.file[e.value:], version)
		seal(h.file[e.key:e.value], h.file[e.value:e.end])
		h.forged = true
		h.say("%d", version)
	}
}

// otherRow stores a row with bbolt that no queue would store.
func (h *hostile) otherRow() {
	if h.changed() { // bbolt may not survive earlier mutations
		h.row()
		return
	}
	h.forged = true
	if err := h.store(h.putAny); err != nil {
		h.say("refused: %v", err)
	}
}

// putAny stores among the rows of the queue, or of workflows if there are some.
func (h *hostile) putAny(tx *bbolt.Tx) error {
	if flows := tx.Bucket(flowsName); flows != nil && h.rand.IntN(2) == 0 {
		return h.putSome(flows, flowForgeries)
	}
	return h.putSome(tx.Bucket(rootName), forgeries)
}

// changed reports whether a mutation has changed the base.
func (h *hostile) changed() bool { return h.size != 0 || string(h.file) != string(h.sources[0].whole) }

// store runs a transaction on the file. bbolt writes several buckets in random order, so
// store rewrites the result in a fixed order.
func (h *hostile) store(put func(*bbolt.Tx) error) error {
	path := h.scratch
	if err := os.WriteFile(path, h.file, 0o600); err != nil {
		return err
	}
	defer os.Remove(path)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: h.freelist == 0, FreelistType: bbolt.FreelistArrayType})
	if err != nil {
		return err
	}
	// After an error, the file has the earlier rows or none. Both files are worth
	// trying.
	err = db.Update(put)
	if closeErr := db.Close(); closeErr != nil {
		return closeErr
	}
	again := path + ".again"
	defer os.Remove(again)
	if err := inOrder(path, again, h.freelist == 0, steady{}); err != nil {
		return err
	}
	l, layoutErr := layoutOf(again)
	if layoutErr != nil {
		return layoutErr
	}
	next := *h.base
	next.layout = l
	h.base, h.file = &next, append([]byte(nil), l.whole...)
	return err
}

func (h *hostile) putSome(root *bbolt.Bucket, from []forgery) error {
	for range 1 + h.rand.IntN(2) {
		forgery := from[h.rand.IntN(len(from))]
		h.say("%s", forgery.name)
		if err := forgery.put(h, root); err != nil {
			return err
		}
	}
	return nil
}

// anyID draws the ID of a job, or of no job.
func (h *hostile) anyID() pawl.ID {
	if len(h.ids) == 0 || h.rand.IntN(8) == 0 {
		return jobID(h.rand.Uint64(), 0)
	}
	return h.ids[h.rand.IntN(len(h.ids))]
}

// bytes draws up to most bytes.
func (h *hostile) bytes(most int) []byte {
	b := make([]byte, h.rand.IntN(most+1))
	for i := range b {
		b[i] = byte(h.rand.Uint32())
	}
	return b
}

// time draws a time that no real clock shows.
func (h *hostile) time() time.Time {
	return []time.Time{
		{}, time.Unix(0, 0), time.Unix(math.MaxInt64, 999_999_999), time.Unix(math.MinInt64, 0), time.Unix(1<<62, 1), time.Unix(-1<<62, 1),
		time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), began, began.Add(-1), began.Add(1),
		time.Unix(int64(h.rand.Uint64()), 0),
	}[h.rand.IntN(12)]
}

// text draws a text that a terminal, a parser or a limit may not expect.
func (h *hostile) text() string {
	return []string{
		"", "\x00", "\x1b[2J\x1b[31m", "\u202e", "\xff\xfe", "a\nb\r\tc", string(make([]byte, 255)), string(make([]byte, 256)),
		string(make([]byte, 70_000)), "a", "b", string(h.bytes(300)), "\"},{\"", "%s%n", "../../etc/passwd",
	}[h.rand.IntN(15)]
}

// putSealed stores a row under a right checksum.
func putSealed(b *bbolt.Bucket, key, value []byte) error {
	sealed := append(value[:len(value):len(value)], 0, 0, 0, 0)
	seal(key, sealed)
	return b.Put(key, sealed)
}
