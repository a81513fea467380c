package soak

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/gopawl/pawl"
)

// Jobs of a round are numbered from 0. The content and the fate of a job follow from its
// number, so every attempt and every end can be checked.

// class is the fate of a job.
type class uint8

const (
	plain      class = iota // succeeds
	large                   // succeeds, with a payload outside its record
	slow                    // takes a few milliseconds, or until the worker stops
	retried                 // fails one to three times
	panics                  // panics once
	snoozed                 // snoozes once
	delayed                 // waits some milliseconds
	retained                // its record stays some milliseconds
	inTx                    // its handler acks it in its own transaction, with an effect
	late                    // no worker handles its kind in the first half of some rounds
	uniquePair              // an even number and the next odd one share a unique key
	onePair                 // an even number and the next odd one share an idempotency key
	permanent               // becomes dead at its first attempt, is retried, and succeeds
	exhausted               // becomes dead after its failures, and is deleted
	cancelled               // waits for an hour, is cancelled, and deleted
	stopped                 // is cancelled by its own handler, and deleted
	overdue                 // waits for an hour, and its deadline comes first
)

// parts are the shares of the classes in a hundred pairs of jobs. The rest is plain.
var parts = []struct {
	class
	part int
}{
	{large, 4}, {slow, 2}, {retried, 8}, {panics, 2}, {snoozed, 2}, {delayed, 5}, {retained, 3}, {inTx, 2}, {late, 2},
	{uniquePair, 2}, {onePair, 4}, {permanent, 2}, {exhausted, 2}, {cancelled, 1}, {stopped, 1}, {overdue, 1},
}

// table has the class of each pair of a hundred.
var table = func() (all [100]class) {
	i := 0
	for _, p := range parts {
		for range p.part {
			all[i*41%len(all)] = p.class // 41 and 100 have no common divisor, so the classes are mixed
			i++
		}
	}
	return all
}()

func classOf(n int) class { return table[n/2%len(table)] }

// failures returns the total number of a job's failures.
func failures(n int) int {
	switch classOf(n) {
	case retried:
		return 1 + n%3
	case panics:
		return 1
	case exhausted:
		return exhaustedRetries + 1
	}
	return 0
}

const exhaustedRetries = 2

// Times of jobs. They are short: a round ends when the last job has.
const (
	farAway    = time.Hour // longer than any round
	effectTime = 5 * time.Second
)

// slowness returns the time of a slow job's attempt. It is long enough that a stop
// interrupts some of these attempts.
func slowness(n int) time.Duration {
	return time.Duration(n/2/len(table)%16) * time.Millisecond
}

// existing reports whether the unique key of a job belongs to another job.
func existing(n int) bool { return classOf(n) == uniquePair && n%2 == 1 }

// queues are the queues of the jobs.
var queues = []string{"a", "b"}

// args are the arguments of a job.
type args struct {
	Round, N int
	Fill     []byte
}

var (
	kind     = pawl.Define[args]("soak", pawl.MaxRetries(5))
	lateKind = pawl.Define[args]("late")
)

// fill returns the rest of a job's payload.
func fill(round, n int) []byte {
	r := rand.New(rand.NewPCG(uint64(round), uint64(n)))
	size := r.IntN(40)
	if classOf(n) == large {
		size = 1000 + r.IntN(6000)
	}
	b := make([]byte, size, size+8)
	for at := 0; at < size; at += 8 {
		b = binary.LittleEndian.AppendUint64(b[:at], r.Uint64())
	}
	return b[:size]
}

// idOf returns the ID of a job: a version 7 UUID with its round and its number.
func idOf(round, n int) (id pawl.ID) {
	binary.BigEndian.PutUint32(id[2:], uint32(round)+1)
	id[6], id[8] = 0x70, 0x80
	binary.BigEndian.PutUint32(id[12:], uint32(n))
	return id
}

// numberOf is the inverse of idOf.
func numberOf(id pawl.ID) (round, n int) {
	return int(binary.BigEndian.Uint32(id[2:])) - 1, int(binary.BigEndian.Uint32(id[12:]))
}

// envelope makes a job.
func envelope(round, n int, now time.Time) (*pawl.Envelope, error) {
	k := kind
	pair := strconv.Itoa(n &^ 1)
	options := []pawl.Option{pawl.OnQueue(queues[n/2%3/2]), pawl.Priority(int8(n % 3))}
	add := func(o ...pawl.Option) { options = append(options, o...) }
	switch classOf(n) {
	case delayed:
		add(pawl.Delay(time.Duration(1+n%20) * time.Millisecond))
	case retained:
		add(pawl.Retain(time.Duration(1+n%10) * time.Millisecond))
	case late:
		k = lateKind
	case uniquePair:
		add(pawl.Unique(pair))
	case onePair:
		add(pawl.IdempotencyKey(fmt.Sprintf("%d/%s", round, pair)), pawl.IdempotencyTTL(effectTime))
	case exhausted:
		add(pawl.MaxRetries(exhaustedRetries))
	case cancelled:
		add(pawl.Delay(farAway), pawl.Unique(strconv.Itoa(n)))
	case overdue:
		add(pawl.At(now.Add(time.Duration(1+n%20)*time.Millisecond)), pawl.Deadline(now.Add(time.Duration(1+n%20)*time.Millisecond)))
	}
	e, err := k.Envelope(args{round, n, fill(round, n)}, options...)
	if err == nil {
		e.ID = idOf(round, n)
	}
	return e, err
}
