package power

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
	"github.com/gopawl/pawl/internal/withid"
)

// errIO is the error of a failing disk.
var errIO = syscall.EIO

func (s *sequence) jobs(n int) []*pawl.Envelope {
	jobs := make([]*pawl.Envelope, n)
	for i := range jobs {
		jobs[i] = oracle.JobOf(pawl.NewID(time.Now()))
	}
	return jobs
}

func (s *sequence) enqueue() error {
	n := 1
	if s.rand.IntN(4) == 0 {
		n = 2 + s.rand.IntN(20)
	}
	return s.step("enqueue", func() error { return withid.Enqueue(s.ctx, s.q, s.jobs(n)...) })
}

func (s *sequence) enqueueLarge() error {
	jobs := s.jobs(1)
	jobs[0].Payload = make([]byte, 50_000+s.rand.IntN(250_000))
	for i := range jobs[0].Payload {
		jobs[0].Payload[i] = byte(s.rand.Uint32())
	}
	return s.step("enqueue large", func() error { return withid.Enqueue(s.ctx, s.q, jobs...) })
}

func (s *sequence) fetch() error {
	return s.step("fetch", func() error {
		leases, err := s.q.Fetch(s.ctx, pawl.Request{Queues: oracle.Queues, Max: 1 + s.rand.IntN(6), Wait: pawl.WaitNot})
		if errors.Is(err, pawl.ErrEmpty) {
			return nil
		}
		s.leases = append(s.leases, leases...)
		return err
	})
}

// settle settles one lease, or acks a few together.
func (s *sequence) settle() error {
	if len(s.leases) == 0 {
		return s.fetch()
	}
	l := s.leases[0]
	s.leases = s.leases[1:]
	if s.rand.IntN(10) == 0 {
		n := s.rand.IntN(len(s.leases) + 1)
		acks := append(slices.Clone(s.leases[:n]), l)
		s.leases = s.leases[n:]
		return s.step("ack some", func() error { return s.q.Settle(s.ctx, oracle.Acks(acks)...) })
	}
	v := oracle.AnyVerb(s.rand)
	err := s.step(v.Name, func() error { return v.Do(s.ctx, s.q, l) })
	if err == nil && v.Name == "abandon" { // otherwise the job may run again, and another step may make it dead or remove it
		s.dead = append(s.dead, l.ID)
	}
	return err
}

// manage does the work of an operator.
func (s *sequence) manage() error {
	if len(s.dead) > 0 && s.rand.IntN(2) == 0 {
		id := s.dead[0]
		s.dead = s.dead[1:]
		if s.rand.IntN(2) == 0 {
			return s.step("retry", func() error { return s.q.Retry(s.ctx, id, true) })
		}
		return s.step("delete", func() error { return s.q.Delete(s.ctx, id) })
	}
	switch queue := oracle.Queues[s.rand.IntN(len(oracle.Queues))]; s.rand.IntN(3) {
	case 0:
		return s.step("pause", func() error { return s.q.Pause(s.ctx, queue) })
	case 1:
		return s.step("resume", func() error { return s.q.Resume(s.ctx, queue) })
	}
	return s.step("reap", func() error {
		_, err := s.q.Reap(s.ctx)
		return err
	})
}

// transaction does work of the app, and acks and stores jobs with it.
func (s *sequence) transaction() error {
	var acked *pawl.Lease
	if len(s.leases) > 0 {
		acked, s.leases = s.leases[0], s.leases[1:]
	}
	return s.step("transaction", func() error {
		return s.q.Update(s.ctx, func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("app"))
			if err != nil {
				return err
			}
			if err := b.Put(fmt.Append(nil, s.n), make([]byte, s.rand.IntN(3000))); err != nil {
				return err
			}
			if err := withid.EnqueueTx(s.q, tx, s.jobs(s.rand.IntN(3))...); err != nil || acked == nil {
				return err
			}
			return s.q.AckTx(tx, acked)
		})
	})
}

func (s *sequence) reopen() error {
	if err := s.step("close", s.close); err != nil {
		return err
	}
	return s.step("open again", s.open)
}

// copy makes a backup or a compact copy.
func (s *sequence) copy() error {
	name := fmt.Sprintf("copy-%d.db", s.n+1)
	harness.Emit("copy", s.n+1, name)
	if s.rand.IntN(2) == 0 {
		return s.step("backup", func() error { return s.q.Backup(s.ctx, s.folder+"/"+name) })
	}
	return s.step("compact", func() error { return s.q.Compact(s.ctx, s.folder+"/"+name) })
}
