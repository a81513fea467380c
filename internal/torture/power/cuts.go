package power

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
	"github.com/gopawl/pawl/internal/torture/trace"
	"github.com/gopawl/pawl/internal/withid"
)

// cuts simulates power cuts between the events of a log, and checks the images.
type cuts struct {
	log     *trace.Log
	story   story
	rand    *rand.Rand
	folder  string             // for images
	from    int                // the first event to cut at
	rounds  int                // images of each mode for each moment
	least   int                // the approximate number of images
	onImage func(where string) // before each image
	after   func()             // after each
}

// run walks through the log. It draws enough moments for the number of images, and checks the
// images of every mode at each.
func (c *cuts) run(ctx context.Context) error {
	d := newDisk(c.log)
	odds := float64(c.least) / float64(max(c.possible(), 1))
	for i, e := range c.log.Events {
		matters := d.apply(e)
		if e.Kind == trace.Say && e.Begin {
			if err := c.story.hear(e.Text); err != nil {
				return err
			}
		}
		r := rand.New(rand.NewPCG(c.rand.Uint64(), uint64(i))) // so that a seed can repeat a single image
		if !matters || i < c.from || r.Float64() > odds {
			continue
		}
		if err := c.moment(ctx, d, i, r); err != nil {
			return err
		}
	}
	return nil
}

// possible returns the number of images, one for each mode.
func (c *cuts) possible() (n int) {
	d := newDisk(c.log)
	for i, e := range c.log.Events {
		switch matters := d.apply(e); {
		case !matters || i < c.from:
		case d.settled():
			n++
		default:
			n += int(modes) * c.rounds
		}
	}
	return n
}

// moment checks the distinct images of a power cut after an event.
func (c *cuts) moment(ctx context.Context, d *disk, event int, r *rand.Rand) error {
	seen := make(map[uint64]bool)
	for n := range int(modes) * c.rounds {
		m := mode(n) % modes
		img := d.image(m, r)
		sum := img.sum()
		if seen[sum] {
			continue
		}
		seen[sum] = true
		where := fmt.Sprintf("%d-%s-%d", event, m, n/int(modes))
		c.onImage(where)
		goesOn := r.IntN(4) == 0
		if err := harness.Guard(func() error { return c.look(ctx, img, goesOn) }); err != nil {
			kept := c.keep(img)
			return fmt.Errorf("power cut after event %d, %s; survivors: %s: %w%s", event, c.event(event), m, err, kept)
		}
		c.after()
	}
	return nil
}

func (c *cuts) event(n int) string {
	e := c.log.Events[n]
	what := "the end of "
	if e.Begin {
		what = "the start of "
	}
	what += e.Kind.String()
	switch e.Kind {
	case trace.Say:
		return fmt.Sprintf("%s %q", what, e.Text)
	case trace.Write:
		return fmt.Sprintf("%s of %d bytes at %d of file %d", what, len(e.Data), e.At, e.File)
	}
	return fmt.Sprintf("%s of file %d %s %s", what, e.File, e.Name, e.To)
}

// look judges an image, and sometimes lets the queue continue from it.
func (c *cuts) look(ctx context.Context, img image, goesOn bool) error {
	if err := putBeside(c.folder, img); err != nil {
		return err
	}
	if err := c.story.judge(ctx, c.folder, img); err != nil || !goesOn {
		return err
	}
	if err := carryOn(ctx, filepath.Join(c.folder, queueFile)); err != nil {
		return fmt.Errorf("the queue cannot continue: %w", err)
	}
	return nil
}

// carryOn opens the file of a crash, stores a job, requires that another open finds it, and runs
// all jobs.
func carryOn(ctx context.Context, path string) error {
	job := oracle.JobOf(pawl.NewID(time.Now()))
	if err := within(path, func(q *bolt.Queue) error { return withid.Enqueue(ctx, q, job) }); err != nil {
		return err
	}
	return within(path, func(q *bolt.Queue) error {
		if _, err := q.Job(ctx, job.ID); err != nil {
			return err
		}
		return oracle.Drain(ctx, q)
	})
}

// within opens a queue, uses it, checks it and closes it.
func within(path string, use func(*bolt.Queue) error) error {
	q, err := bolt.Open(path, oracle.Options())
	if err != nil {
		return err
	}
	err = use(q)
	return errors.Join(err, q.Check(context.Background()), q.Close())
}

// keep writes an image to a folder that stays.
func (c *cuts) keep(img image) string {
	folder := c.folder + "-failed"
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return ""
	}
	for name, content := range img.names {
		if err := content.writeTo(filepath.Join(folder, name)); err != nil {
			return ""
		}
	}
	return "; the image is in " + folder
}
