package flows

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/workflow"
)

// Plan is the input of a run. All its calls follow from it.
type Plan struct {
	Seed  uint64
	Depth int // levels of children and branches below it
	Round int // the number of its restarts
}

// goOn is the signal for runs.
var goOn = workflow.DefineSignal[string]("go")

// program is the flow. It calls itself as a child.
var program *workflow.Flow[Plan, uint64]

func init() {
	program = workflow.Define("program", func(r *workflow.Run, p Plan) (uint64, error) {
		c := &calls{r: r, rand: rand.New(rand.NewPCG(p.Seed, uint64(p.Round))), depth: p.Depth}
		if err := c.some(3 + c.rand.IntN(4)); err != nil {
			return 0, err
		}
		if p.Round < 2 && c.rand.IntN(6) == 0 {
			p.Round++
			return 0, workflow.Restart(r, p)
		}
		if c.rand.IntN(6) == 0 {
			return 0, errUnlucky
		}
		return c.sum, nil
	})
}

var errUnlucky = errors.New("unlucky")

// calls is the sequence of calls of a seed. Their results go into sum, and so into the result
// of the run.
type calls struct {
	r     *workflow.Run
	rand  *rand.Rand
	depth int
	sum   uint64
}

func (c *calls) some(n int) error {
	for range n {
		if err := c.one(); err != nil {
			return err
		}
	}
	return nil
}

// one makes a call. It draws the same numbers for each kind of call.
func (c *calls) one() error {
	what, a, b := c.rand.IntN(13), c.rand.IntN(4), c.rand.Uint64()
	switch {
	case what < 3:
		return c.step("step", 0)
	case what == 3:
		return c.step("hard", a) // an a of 4 fails permanently
	case what == 4:
		return c.transaction()
	case what == 5:
		return workflow.Sleep(c.r, "nap", time.Duration(b%250)*time.Millisecond)
	case what == 6:
		return c.wait(time.Duration(b%400) * time.Millisecond)
	case what == 7 && c.depth > 0:
		v, err := workflow.Call(c.r, "child", program, Plan{Seed: b, Depth: c.depth - 1})
		return c.take(v, err)
	case what == 8 && c.depth > 0:
		return c.all(b)
	case what == 9 && c.depth > 0:
		return c.race(b)
	case what == 10:
		c.r.Undo("undo", func(ctx context.Context) error {
			_, err := effect(c.r.Key())
			return err
		})
		return nil
	case what == 11:
		v, err := workflow.Version(c.r, fmt.Sprint("version-", a), 1, 2)
		return c.take(uint64(v), err)
	case what == 12:
		return workflow.Publish(c.r, "sum", c.sum)
	}
	return c.step("other", 0)
}

// take adds a result. An error of the step itself is also a result.
func (c *calls) take(v uint64, err error) error {
	var failed *workflow.StepError
	if errors.As(err, &failed) {
		v, err = uint64(len(failed.Text)), nil
	}
	c.sum = c.sum*31 + v
	return err
}

// step fails a number of times and then has an effect.
func (c *calls) step(name string, failures int) error {
	v, err := workflow.Step(c.r, name, func(ctx context.Context) (uint64, error) {
		if attemptOf(ctx) <= failures {
			return 0, errUnlucky
		}
		return effect(c.r.Key())
	}, workflow.MaxRetries(2), workflow.Backoff(pawl.Fixed(time.Duration(failures)*70*time.Millisecond)))
	return c.take(v, err)
}

// effect is the effect of a step. It reports it to the family.
func effect(key string) (uint64, error) {
	n := rand.Uint64()
	harness.Emit("effect", key, n)
	return n, nil
}

// bucketApp has a row for each transaction.
var bucketApp = []byte("app")

// transaction writes a row, which must not exist yet.
func (c *calls) transaction() error {
	v, err := workflow.StepTx(c.r, "tx", func(tx *bbolt.Tx) (uint64, error) {
		b, err := tx.CreateBucketIfNotExists(bucketApp)
		if err != nil {
			return 0, err
		}
		key := []byte(c.r.Key())
		if b.Get(key) != nil {
			harness.Emit("twice", c.r.Key())
		}
		n := rand.Uint64()
		return n, b.Put(key, strconv.AppendUint(nil, n, 10))
	})
	return c.take(v, err)
}

func (c *calls) wait(timeout time.Duration) error {
	text, err := goOn.Wait(c.r, timeout)
	return c.take(uint64(len(text)), err)
}

// branch returns the function of a branch.
func (c *calls) branch(seed uint64) func(*workflow.Run) (uint64, error) {
	return func(r *workflow.Run) (uint64, error) {
		own := &calls{r: r, rand: rand.New(rand.NewPCG(seed, 1)), depth: c.depth - 1}
		err := own.some(2)
		return own.sum, err
	}
}

func (c *calls) all(seed uint64) error {
	var branches []*workflow.Branch[uint64]
	for i := range 2 + seed%2 {
		branches = append(branches, workflow.Go(c.r, "branch", c.branch(seed+i)))
	}
	values, err := workflow.All(c.r, branches...)
	for _, v := range values {
		c.sum = c.sum*31 + v
	}
	return err
}

func (c *calls) race(seed uint64) error {
	winner, v, err := workflow.Race(c.r, "race",
		workflow.Go(c.r, "racer", c.branch(seed)), workflow.Go(c.r, "racer", c.branch(seed+1)))
	c.sum = c.sum*31 + uint64(winner)
	return c.take(v, err)
}

// attemptOf returns the attempt that the middleware put into a context.
func attemptOf(ctx context.Context) int {
	n, _ := ctx.Value(attemptKey{}).(int)
	return n
}

type attemptKey struct{}

// counting puts the number of the attempt into the context of a step.
func counting(next workflow.StepFunc) workflow.StepFunc {
	return func(ctx context.Context, s workflow.StepInfo) (any, error) {
		return next(context.WithValue(ctx, attemptKey{}, s.Attempt), s)
	}
}

// rowsOfApp reads the rows of the transactions.
func rowsOfApp(tx *bbolt.Tx) map[string]uint64 {
	rows := make(map[string]uint64)
	if b := tx.Bucket(bucketApp); b != nil {
		_ = b.ForEach(func(k, v []byte) error {
			rows[string(k)], _ = strconv.ParseUint(string(v), 10, 64)
			return nil
		})
	}
	return rows
}
