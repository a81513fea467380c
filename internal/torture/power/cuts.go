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
	"github.com/gopawl/pawl/internal/torture/oracle"
	"github.com/gopawl/pawl/internal/torture/trace"
)

// cuts cuts the power between the events of a log, and looks at what is left.
type cuts struct {
	log    *trace.Log
	story  story
	rand   *rand.Rand
	folder string             // where images are laid out
	from   int                // the first event to cut at
	rounds int                // how often to draw an image of each mode
	least  int                // images to look at, about
	heard  func(where string) // before each image
	after  func()             // after each
}

// run walks through the log. Of its moments it takes as many as give the number of images
// that is asked for, drawn at random, and from each the image of every mode.
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
		r := rand.New(rand.NewPCG(c.rand.Uint64(), uint64(i))) // so that one image can be made again alone
		if !matters || i < c.from || r.Float64() > odds {
			continue
		}
		if err := c.moment(ctx, d, i, r); err != nil {
			return err
		}
	}
	return nil
}

// possible is how many images there are, one for each mode.
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

// moment looks at the different images that a power cut after an event may leave.
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
		c.heard(where)
		goesOn := r.IntN(4) == 0
		if err := c.look(ctx, img, goesOn); err != nil {
			kept := c.keep(img)
			return fmt.Errorf("power cut after event %d, %s; spared: %s: %w%s", event, c.event(event), m, err, kept)
		}
		c.after()
	}
	return nil
}

func (c *cuts) event(n int) string {
	e := c.log.Events[n]
	what := "the end of "
	if e.Begin {
		what = "the begin of "
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

// look judges an image, and sees whether the queue goes on from there.
func (c *cuts) look(ctx context.Context, img image, goesOn bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if err := putBeside(c.folder, img); err != nil {
		return err
	}
	if err := c.story.judge(ctx, c.folder, img); err != nil || !goesOn {
		return err
	}
	if err := carryOn(ctx, filepath.Join(c.folder, queueFile)); err != nil {
		return fmt.Errorf("the queue does not go on: %w", err)
	}
	return nil
}

// carryOn opens what a crash left, stores a job, and finds it after another open.
func carryOn(ctx context.Context, path string) error {
	job := oracle.JobOf(pawl.NewID(time.Now()))
	if err := within(path, func(q *bolt.Queue) error { return q.Enqueue(ctx, job) }); err != nil {
		return err
	}
	return within(path, func(q *bolt.Queue) error {
		_, err := q.Job(ctx, job.ID)
		return err
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

// keep lays an image out where it stays, as the crash left it.
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
