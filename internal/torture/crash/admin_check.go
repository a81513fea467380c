package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
	"github.com/gopawl/pawl/internal/withid"
)

// contents are the jobs of a file, without their payloads.
type contents map[pawl.ID]aJob

type aJob struct {
	kind, queue                 string
	state                       pawl.State
	attempts, crashes, failures int
	priority                    int8
}

// read opens a file for writing, as a program would, and reads its content.
func read(ctx context.Context, path string) (contents, error) {
	q, err := bolt.Open(path, still())
	if err != nil {
		return nil, err
	}
	found := make(contents)
	for e, err := range q.Jobs(ctx, pawl.Filter{}) {
		if err != nil {
			return nil, errors.Join(err, q.Close())
		}
		found[e.ID] = aJob{e.Kind, e.Queue, e.State, e.Attempts, e.Crashes, e.Failures, e.Priority}
	}
	err = q.Check(ctx)
	if err == nil {
		err = goesOn(ctx, q)
	}
	return found, errors.Join(err, q.Close())
}

// goesOn requires that a queue continues to work.
func goesOn(ctx context.Context, q *bolt.Queue) error {
	if err := withid.Enqueue(ctx, q, &pawl.Envelope{Kind: "probe", Queue: "probe"}); err != nil {
		return err
	}
	leases, err := q.Fetch(ctx, pawl.Request{Queues: []string{"probe"}, Max: 1, Wait: pawl.WaitNot})
	if err != nil {
		return err
	}
	return q.Settle(ctx, oracle.Acks(leases)...)
}

// check checks all files after the kills.
func (s *scene) check(t *harness.Try, path string, lines []string, kills int) error {
	temps, err := filepath.Glob(filepath.Join(t.Dir, ".pawl-new-*"))
	if err != nil {
		return err
	}
	const most = 2 // files of a scene: the queue's file and a copy
	if len(temps) > most*kills {
		return fmt.Errorf("%d kills left too many temporary files: %v", kills, temps)
	}
	for _, other := range s.others {
		if err := s.checkOther(t.Ctx, path+other); err != nil {
			return fmt.Errorf("the file with the name of a complete %s: %w", other[1:], err)
		}
	}
	if s.want == nil && s.name != "creation" {
		var o oracle.Oracle
		return after(t.Ctx, path, &o, lines)
	}
	found, err := read(t.Ctx, path)
	if err != nil {
		return err
	}
	return s.want.same(found)
}

// checkOther checks a copy, if it exists.
func (s *scene) checkOther(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	found, err := read(ctx, path)
	if err == nil && s.want != nil {
		err = s.want.same(found)
	}
	return err
}

// same requires that a file has this content.
func (c contents) same(found contents) error {
	if maps.Equal(c, found) {
		return nil
	}
	for id, want := range c {
		if is, ok := found[id]; !ok {
			return fmt.Errorf("job %s is lost; it was %+v (%d of %d jobs exist)", id, want, len(found), len(c))
		} else if is != want {
			return fmt.Errorf("job %s is %+v, and should be %+v", id, is, want)
		}
	}
	return fmt.Errorf("there are %d jobs, and should be %d", len(found), len(c))
}
