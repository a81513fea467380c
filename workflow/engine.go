package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
)

// Options are the settings of an engine. A nil *Options and every zero field mean the default.
type Options struct {
	// Build names the running code, such as a commit or a version. Journals record the build of
	// each entry. When one build has blocked a run, another build tries the run again. The default
	// is the beginning of the SHA-256 of the executable.
	Build string

	// Middleware wraps every attempt of every step, the first outermost: for tracing, logs,
	// limits and tests. For an attempt of a [StepTx] it runs within the transaction, which
	// delays all other writers.
	Middleware []Middleware

	// Headers, if set, returns headers for the job of a run, such as the trace that starts it. [Flow.Start] calls it
	// with its context, and [Call] with the context of the parent's handler. Other starts have no headers. The job
	// keeps its headers for all its attempts.
	Headers func(ctx context.Context) map[string]string

	// Warm is how many suspended runs stay in memory: those that were suspended last. Such a run
	// continues in the call that waits, and not from the top, so the cost of a wake does not depend
	// on the length of the journal. It keeps the goroutines of its function and its branches. The
	// default is [DefaultWarm]. A negative number keeps none.
	Warm int

	// Sign, if set, signs the jobs of runs, for workers that verify signatures.
	Sign *pawl.Keyring

	// Codec, if set, encodes and decodes the values of runs. All engines over a store need the same codec.
	Codec Codec

	// Logger gets a line for each run that is blocked or fails. The default is hclog.Default().
	Logger pawl.Logger
}

// Engine runs flows over a queue and changes runs for operators. Its methods are safe for
// concurrent use. There is nothing to close. The queue belongs to its owner.
type Engine struct {
	*Reader
	queue Store
	hub   *hub
	opts  Options

	offering sync.Once // starts offer with the first worker that needs it
}

// Open returns an engine over a store, such as a *bolt.Queue. A store may have several engines,
// which see each other's changes immediately. With nil options the engine has the options of
// the engine that runs flows over the store, if there is one.
func Open(q Store, opts *Options) *Engine {
	e := &Engine{Reader: Read(q), queue: q, hub: hubOf(q)}
	if opts == nil {
		opts = e.hub.options.Load()
	}
	if opts != nil {
		e.opts = *opts
	}
	e.codec = e.opts.Codec
	if e.opts.Warm == 0 {
		e.opts.Warm = DefaultWarm
	}
	if e.opts.Build == "" {
		e.opts.Build = executable()
	}
	if e.opts.Logger == nil {
		e.opts.Logger = hclog.Default()
	}
	return e
}

// Definition is a [Flow] of any types.
type Definition interface {
	// Name returns the name of the flow.
	Name() string

	problem() error
	kind() *pawl.Kind[struct{}]
	input() reflect.Type
	signals() []string
	openLimits() openLimits
	decode(b []byte, v any) error
	start(r *Run, input []byte) (output []byte, err error)
}

// Handle makes a worker run flows, and makes runs of these flows ready that another build has
// blocked. After Handle, and until the queue is closed, runs are removed at the end of their
// retention. Call it before the worker starts, like [worker.Handle].
//
// It returns the error of a definition, or [worker.ErrHandlerExists] if the worker already has
// a flow with the same name or a handler for the kind workflow/ and that name. In these cases
// nothing was changed. Otherwise it returns the error of the queue.
func (e *Engine) Handle(ctx context.Context, w *worker.Worker, flows ...Definition) error {
	for i, f := range flows {
		if v := reflect.ValueOf(f); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return &pawl.InvalidError{Field: "flow", Reason: fmt.Sprintf("number %d is nil; make it with Define before", i+1)}
		}
		if err := f.problem(); err != nil {
			return fmt.Errorf("flow %q: %w", f.Name(), err)
		}
		same := func(other Definition) bool { return other.Name() == f.Name() }
		if slices.ContainsFunc(flows[:i], same) || w.Handles(f.kind().Name()) {
			return fmt.Errorf("flow %q: %w; give a worker each name once", f.Name(), worker.ErrHandlerExists)
		}
	}
	e.hub.options.Store(&e.opts)
	for _, f := range flows {
		e.hub.flows.Store(f.Name(), f)
		worker.Handle(w, f.kind(), func(ctx context.Context, job *pawl.Job[struct{}]) error {
			return e.attempt(ctx, f, job.Lease)
		})
	}
	if err := e.unblock(ctx, flows); err != nil {
		return fmt.Errorf("make blocked runs ready: %w", err)
	}
	if err := e.admit(ctx, flows); err != nil {
		return fmt.Errorf("let runs begin that wait for others: %w", err)
	}
	e.hub.sweeper.Do(func() { go e.runSweeper() })
	if e.hub.shared || slices.ContainsFunc(flows, func(f Definition) bool { return f.openLimits().rated() }) {
		e.offering.Do(func() { go e.offer() })
	}
	return nil
}

// now returns the time by the queue's clock.
func (e *Engine) now() time.Time { return e.queue.Now() }

// executable returns the default name of the build.
var executable = sync.OnceValue(func() string {
	const unknown = "unknown"
	path, err := os.Executable()
	if err != nil {
		return unknown
	}
	f, err := os.Open(path)
	if err != nil {
		return unknown
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return unknown
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
})
