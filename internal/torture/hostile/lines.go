package hostile

import (
	"errors"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// narrow returns a flow whose runs wait for places.
func narrow() *workflow.Flow[string, string] {
	return workflow.Define("narrow", waitsToGoOn, workflow.OnQueue(runsQueue), workflow.MaxOpen(2), workflow.MaxOpenPerKey(1))
}

// paced returns a flow whose runs wait for a rate.
func paced() *workflow.Flow[string, string] {
	return workflow.Define("paced", waitsToGoOn, workflow.OnQueue(runsQueue), workflow.MaxOpen(3),
		workflow.StartRate(pawl.Rate{Starts: 2, Per: time.Hour, Burst: 2}), workflow.StartRatePerKey(pawl.Rate{Starts: 1, Per: time.Hour}))
}

func waitsToGoOn(r *workflow.Run, _ string) (string, error) { return goOn.Wait(r, workflow.Forever) }

// keysOfLines are the keys of the runs of each of these flows.
var keysOfLines = []string{"a", "a", "b", "", "c"}

// makeLines makes runs that wait in line to begin.
func (c *crew) makeLines() (err error) {
	for _, f := range []*workflow.Flow[string, string]{narrow(), paced()} {
		for n, key := range keysOfLines {
			var opts []workflow.StartOption
			if key != "" {
				opts = append(opts, workflow.Key(key))
			}
			_, startErr := f.Start(c.ctx, c.Engine, fmt.Sprint(f.Name(), " ", n), "", opts...)
			err = errors.Join(err, startErr)
		}
	}
	return errors.Join(err, c.all())
}
