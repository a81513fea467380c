// Package oracle knows what a queue promised before a crash. A workload reports each
// operation before it begins and after its answer. From the story up to the crash, the
// oracle derives the possible states of each job, and compares them with the file. It uses
// the oracle of package queuetest for the effect of an operation on a job.
package oracle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gopawl/pawl"
)

// later is a time that no try reaches.
const later = 1000 * time.Hour

// Queues are the queues that a workload uses. Some have limits, see limits.
var Queues = []string{"a", "b", "limited", "ordered", "held"}

// JobOf makes the job of an ID. All of its content follows from the ID, so a story names jobs only by ID,
// and a check compares every byte.
func JobOf(id pawl.ID) *pawl.Envelope {
	e := jobOf(id)
	e.Payload = bytes.Clone(e.Payload)
	return &e
}

// jobs remembers the jobs of the last IDs, since a check asks for each of them many times.
var jobs = struct {
	sync.Mutex
	of map[pawl.ID]pawl.Envelope
}{of: make(map[pawl.ID]pawl.Envelope)}

const mostJobs = 1000

// jobOf is JobOf for this package, which changes no payload.
func jobOf(id pawl.ID) pawl.Envelope {
	jobs.Lock()
	defer jobs.Unlock()
	e, ok := jobs.of[id]
	if !ok {
		if len(jobs.of) == mostJobs {
			clear(jobs.of)
		}
		e = makeJob(id)
		jobs.of[id] = e
	}
	return e
}

func makeJob(id pawl.ID) pawl.Envelope {
	r, queue, priority, size := begin(id)
	e := pawl.Envelope{
		ID:         id,
		Kind:       "k",
		Queue:      queue,
		Priority:   priority,
		MaxRetries: 1000, // only the workload makes jobs dead
		Payload:    payload(size, r),
	}
	one := func(in int) bool { return r.IntN(in) == 0 }
	if one(8) {
		e.Delay = later
	}
	if one(4) {
		e.UniqueKey = "u" + id.String()
	}
	if one(4) {
		e.IdempotencyKey = "i" + id.String()
	}
	if one(8) {
		e.Deadline = made(id).AddDate(100, 0, 0) // far beyond the clock of any try
	}
	if one(8) {
		e.Retain = later
	}
	if l := limits[e.Queue]; (l.RunningPerKey > 0 || l.InOrder != pawl.OrderNone) && !one(8) {
		e.Key = anyKey(id, r)
		e.Cost = 2 * r.IntN(3)
		if l.Fair {
			e.Weight = 2 * r.IntN(3)
		}
	}
	return e
}

// made returns the time in an ID.
func made(id pawl.ID) time.Time { return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:]) >> 16)) }

// begin draws what a job begins with. Its payload is small, sometimes one that does not fit in a record, and rarely
// one of many pages.
func begin(id pawl.ID) (r *rand.Rand, queue string, priority int8, size int) {
	r = rand.New(rand.NewPCG(sum(id), 0))
	queue, priority = Queues[r.IntN(len(Queues))], int8(r.IntN(3))
	return r, queue, priority, anySize(r)
}

// PayloadSize is the size of the payload of the job of an ID.
func PayloadSize(id pawl.ID) int {
	_, _, _, size := begin(id)
	return size
}

func sum(id pawl.ID) uint64 {
	h := fnv.New64a()
	h.Write(id[:])
	return h.Sum64()
}

func anySize(r *rand.Rand) int {
	size := r.IntN(200)
	switch r.IntN(32) {
	case 0, 1, 2, 3:
		size = r.IntN(4000)
	case 4:
		size = r.IntN(64 << 10)
	}
	return size
}

func payload(size int, r *rand.Rand) []byte {
	b := make([]byte, size)
	for at := 0; at < len(b); at += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], r.Uint64())
		copy(b[at:], word[:])
	}
	return b
}

// ResultOf returns the result of each successful attempt of a job with retention, and nil for another job.
// It follows from the ID.
func ResultOf(e *pawl.Envelope) []byte {
	if e.Retain <= 0 {
		return nil
	}
	r := rand.New(rand.NewPCG(sum(e.ID), 1))
	return append(e.ID[:len(e.ID):len(e.ID)], payload(anySize(r), r)...)
}

// sameResult requires that a completed job has its result, entirely, and that no other job has one.
func sameResult(e *pawl.Envelope) error {
	var want []byte
	if e.State == pawl.Completed {
		want = ResultOf(e)
	}
	if !bytes.Equal(e.Result, want) {
		return fmt.Errorf("job %s is %s and has a result of %d bytes, and not the one of %d bytes", e.ID, e.State, len(e.Result), len(want))
	}
	return nil
}

// SameJob requires that a job, apart from its state, has the content that follows from its ID.
func SameJob(e *pawl.Envelope) error {
	want := jobOf(e.ID)
	switch {
	case !bytes.Equal(e.Payload, want.Payload):
		return fmt.Errorf("job %s has another payload than it was given", e.ID)
	case e.Queue != want.Queue, e.Kind != want.Kind, e.Priority != want.Priority, e.UniqueKey != want.UniqueKey,
		e.IdempotencyKey != want.IdempotencyKey, e.Key != want.Key, e.Cost != want.Cost, e.Weight != want.Weight, e.Retain != want.Retain, !e.Deadline.Equal(want.Deadline):
		return fmt.Errorf("job %s is not as it was given: %+v", e.ID, e)
	}
	return nil
}
