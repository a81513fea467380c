package worker

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Options are the settings of a worker. A nil *Options, and every zero field, means
// the default.
type Options struct {
	// Queues names the queues to work on; they take turns. The default is
	// pawl.DefaultQueue. Workers of one queue may handle different kinds: a worker
	// fetches only jobs of kinds that it handles, and leaves the others in the queue.
	Queues []string

	// Weights says how many turns a queue has while a queue of weight 1 has one, from 1 to
	// pawl.MaxWeight. A queue that is not named has weight 1.
	Weights map[string]int

	// RetryShare is the share of retries among the jobs of each queue, while it has both retries and
	// first attempts; see pawl.Request. By default both share one order.
	RetryShare float64

	// Concurrency is how many handlers run at the same time. The default is GOMAXPROCS.
	Concurrency int

	// Timeout bounds an attempt whose job has no timeout. The default is none.
	Timeout time.Duration

	// Middleware wraps every handler, the first outermost. It runs in the goroutine of the handler
	// and under its timeout. A panic in it counts as a panic of the handler.
	Middleware []Middleware

	// Verify, if set, checks the signature of each job. A job that these keys do not verify does
	// not run: it becomes dead with pawl.ReasonSignature, its payload is not decoded, and no
	// attempt is counted. For a queue of forwarded dead jobs, use pawl.Keyring.Forwarded.
	Verify *pawl.Keyring

	// Gates has the gate for each need of the worker's kinds, by its name; see [pawl.Needs]. Jobs whose
	// gate is closed stay in their queue.
	Gates map[string]*Gate

	// Policy is the policy of jobs that have none and whose kind has none. The default is
	// pawl.DefaultStrategy.
	Policy pawl.Policy

	// Drain is how long running handlers may continue after a stop begins, before their contexts end.
	// The default is 4 s.
	//
	// Docker and many supervisors kill a process 10 s after SIGTERM, and a killed process
	// counts as a crash of every job that ran in it. With the defaults a stop takes at most
	// 8.5 s: Drain, StopGrace, and 1.5 s to release what is left. Raise Drain together with
	// the time that the supervisor waits.
	Drain time.Duration

	// StopGrace is how long a stop waits for handlers to return after it has ended their contexts.
	// Then it releases their jobs. The default is 3 s.
	StopGrace time.Duration

	// StuckGrace is how long a handler may continue after its timeout, or its job's deadline,
	// before its attempt is counted as failed. Its slot stays taken until it returns, and its
	// job does not run again in this Worker before that. The default is 30 s.
	StuckGrace time.Duration

	// Logger gets a line for each failed attempt that will be retried, and for each problem of the
	// worker. A queue logs the attempts after which a job is dead. The default is hclog.Default().
	Logger pawl.Logger
}

// complete fills in the defaults, calls refuse with every mistake, and returns the request that
// all fetches have in common.
func (o *Options) complete(refuse func(error)) pawl.Request {
	for _, limit := range [...]struct {
		name string
		d    time.Duration
	}{{"Timeout", o.Timeout}, {"Drain", o.Drain}, {"StopGrace", o.StopGrace}, {"StuckGrace", o.StuckGrace}} {
		if limit.d < 0 {
			refuse(&pawl.InvalidError{Field: limit.name, Reason: fmt.Sprintf("%v is negative", limit.d)})
		}
	}
	if o.Concurrency < 0 {
		refuse(&pawl.InvalidError{Field: "Concurrency", Reason: fmt.Sprintf("%d is negative", o.Concurrency)})
	}
	o.Middleware, o.Gates = slices.Clone(o.Middleware), maps.Clone(o.Gates)
	if slices.ContainsFunc(o.Middleware, func(m Middleware) bool { return m == nil }) {
		refuse(&pawl.InvalidError{Field: "Middleware", Reason: "one of it is nil"})
		o.Middleware = nil
	}
	request, err := driver.CheckRequest(pawl.Request{Queues: o.Queues, Weights: o.Weights, RetryShare: o.RetryShare, Max: 1})
	if err != nil {
		refuse(err)
	}
	if o.Policy, err = driver.CheckPolicy(o.Policy); err != nil {
		refuse(err)
	}
	o.Concurrency = cmp.Or(o.Concurrency, runtime.GOMAXPROCS(0))
	o.Drain = cmp.Or(o.Drain, 4*time.Second)
	o.StopGrace = cmp.Or(o.StopGrace, 3*time.Second)
	o.StuckGrace = cmp.Or(o.StuckGrace, 30*time.Second)
	if o.Policy == nil {
		o.Policy = pawl.DefaultStrategy()
	}
	if o.Logger == nil {
		o.Logger = hclog.Default()
	}
	return request
}
