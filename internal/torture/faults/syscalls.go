package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
)

// Syscalls makes each system call of one run fail in turn, in each way that its kind can
// fail. Consecutive seeds try all faults.
var Syscalls = &harness.Family{
	Name:  "syscalls",
	Goals: "R3 R2",
	Method: "every system call on the queue's files in a run of 50 commits fails (EIO, ENOSPC, and others), " +
		"writes half, writes half and then fails with ENOSPC, or is the last before SIGKILL",
	Unit: "runs with a fault",
	PR:   faultsOfScript, Nightly: faultsOfScript, Share: 75, Parallel: 4,
	Missing: missingSupervision,
	Prepare: eachFault(faultsOfScript, func(_ context.Context, every []at) ([]at, error) { return every, nil }),
}

// eachFault returns the Prepare of a family that tries some of the faults of the fixed script, but
// not more than its goal.
func eachFault(goal int, some func(ctx context.Context, every []at) ([]at, error)) func(*harness.Env) (func(*harness.Try) error, error) {
	return func(env *harness.Env) (func(*harness.Try) error, error) {
		every, err := everyFault(env.Ctx, fixedScript)
		if err != nil {
			return nil, err
		}
		all, err := some(env.Ctx, every)
		if err == nil && len(all) > goal {
			err = fmt.Errorf("the run has %d possible faults, and the goal of the family is %d; raise it", len(all), goal)
		}
		return func(t *harness.Try) error { return faulty(t, fixedScript, pick(all, t.Seed)) }, err
	}
}

// pick returns a fault. Consecutive seeds try all faults, and are far from each other in the
// script.
func pick(all []at, seed uint64) at {
	n := uint64(len(all))
	const stride = 1_000_003 // a prime
	return all[seed%n*stride%n]
}

// RandomSyscalls makes a random system call fail in different runs.
var RandomSyscalls = &harness.Family{
	Name:   "syscalls-random",
	Goals:  "R3 R2",
	Method: "like syscalls, with a random failing call in one of 64 different runs",
	Unit:   "runs with a fault",
	PR:     100, Nightly: 20_000, Share: 6, Parallel: 4,
	Missing: missingSupervision,
	Prepare: func(env *harness.Env) (func(*harness.Try) error, error) {
		const scripts = 64
		var known [scripts]func() ([]at, error)
		for n := range known {
			known[n] = sync.OnceValues(func() ([]at, error) { return everyFault(env.Ctx, random(n)) })
		}
		return func(t *harness.Try) error {
			n := t.Rand.IntN(scripts)
			all, err := known[n]()
			if err != nil {
				return err
			}
			return faulty(t, random(n), all[t.Rand.IntN(len(all))])
		}, nil
	},
}

// scripted is a run of calls: a role and its seed.
type scripted struct {
	role string
	seed uint64
}

// fixedScript is the run in which each call fails, and faultsOfScript an upper bound of its faults.
var fixedScript = scripted{"faults-script", 1}

const faultsOfScript = 3100

// random returns a run other than the fixed one.
func random(n int) scripted { return scripted{"faults-script", uint64(n + 2)} }

// at is a fault of the n-th call of a kind, counted from 0 over all threads of a run. Runs of
// one script differ slightly: bbolt takes free pages in random order.
type at struct {
	n int
	call
	fault
	then *later // a second fault, nil for none
}

// later is a fault of the n-th call since the queue's file was reopened.
type later struct {
	n int
	call
	fault
}

func (a at) String() string {
	text := fmt.Sprintf("%s number %d, of %q, %s", a.kind, a.n, a.file, a.name)
	if a.then != nil {
		text += fmt.Sprintf("; then call %d of the next open, %s of %q, %s", a.then.n, a.then.kind, a.then.file, a.then.name)
	}
	return text
}

func failing(errno syscall.Errno) fault { return fault{name: errno.Error(), errno: errno} }

// faultsOf returns the faults of a kind of call.
func faultsOf(kind string) []fault {
	all := []fault{failing(syscall.EIO), {name: "killed before it", kill: true}}
	switch kind {
	case "pwrite64", "write":
		full := failing(syscall.ENOSPC)
		full.name, full.more = "no space left on device, also for the next writes", 8
		all = append(all, full, fault{name: "half of it", part: true},
			fault{name: "half of it, then ENOSPC", part: true, errno: syscall.ENOSPC})
	case "ftruncate", "linkat":
		all = append(all, failing(syscall.ENOSPC))
	case "openat":
		all = append(all, failing(syscall.ENOSPC), failing(syscall.EMFILE))
	case "mmap":
		all[0] = failing(syscall.ENOMEM)
	}
	return all
}

// everyFault runs a script without faults and returns all possible faults.
func everyFault(ctx context.Context, s scripted) (all []at, err error) {
	r, err := runScript(ctx, s, func(int, call) fault { return fault{} })
	if err != nil {
		return nil, err
	}
	count := make(map[string]int)
	for _, c := range r.calls {
		for _, f := range faultsOf(c.kind) {
			all = append(all, at{count[c.kind], c, f, nil})
		}
		count[c.kind]++
	}
	return all, nil
}

// runScript runs a script in its own folder.
func runScript(ctx context.Context, s scripted, plan func(int, call) fault) (ran, error) {
	dir, err := harness.MemoryFolder()
	if err != nil {
		return ran{}, err
	}
	defer os.RemoveAll(dir)
	r, err := supervise(ctx, dir, nil, plan, s.role, filepath.Join(dir, queueName), s.seed)
	if err = errors.Join(err, r.ended); err != nil {
		return r, fmt.Errorf("%w: %s", err, r.stderr)
	}
	return r, nil
}

const queueName = "jobs.db"

// faulty runs a script with a fault, and then opens its file without faults.
func faulty(t *harness.Try, s scripted, a at) error {
	p := &injection{at: a, index: -1, again: -1}
	r, err := supervise(t.Ctx, t.Dir, p.kinds(), p.plan, s.role, filepath.Join(t.Dir, queueName), s.seed)
	if err != nil {
		return err
	}
	if p.index < 0 || p.then != nil && !p.both {
		t.Count(0) // this run had fewer calls
		return nil
	}
	if err := p.judge(t.Ctx, t.Dir, &r); err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	return nil
}

// killed runs a script, kills it, and judges its output and its files.
func killed(t *harness.Try, s scripted, a at, judge func(lines []string, q *bolt.Queue) error) error {
	p := &injection{at: a, index: -1, again: -1}
	path := filepath.Join(t.Dir, queueName)
	r, err := supervise(t.Ctx, t.Dir, p.kinds(), p.plan, s.role, path, s.seed)
	switch {
	case err != nil:
		return err
	case p.index < 0:
		t.Count(0) // this run had fewer calls
		return nil
	case r.stderr != "":
		return fmt.Errorf("%s: the process said: %s", a, r.stderr)
	}
	if err := withQueue(path, func(q *bolt.Queue) error { return judge(r.lines, q) }); err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	return nil
}

// injection makes one call of a run fail.
type injection struct {
	at
	seen  int
	index int  // index of the call among all calls, once it came
	both  bool // the second call came
	again int  // index of the call that reopens the queue's file
}

// kinds returns the kinds of calls that the plan and the judge of a run need, nil for all: a second
// fault is at a call of any kind.
func (p *injection) kinds() []string {
	switch {
	case p.then != nil:
		return nil
	case isSync(p.call): // what comes after it matters
		return []string{"fsync", "fdatasync", "pwrite64", "write", "ftruncate", "linkat", "renameat", "openat", "newfstatat"}
	}
	return []string{p.kind}
}

func (p *injection) plan(n int, c call) (f fault) {
	if p.index >= 0 && p.again < 0 && c.file == queueName && (c.kind == "newfstatat" || c.kind == "openat") {
		p.again = n
	}
	switch {
	case p.lasting && p.index >= 0 && p.again < 0 && isSync(c):
		return p.fault
	case p.then != nil && p.again >= 0 && n == p.again+p.then.n:
		p.both = true
		return p.then.fault
	}
	if c.kind != p.kind {
		return f
	}
	switch since := p.seen - p.n; {
	case since == 0:
		p.index = n
		f = p.fault
		if f.part {
			f.errno = 0
		}
	case since == 1 && p.part && n == p.index+1:
		f.errno = p.errno // the other half fails
	case since > 0 && since <= p.more:
		f = p.fault
	}
	p.seen++
	return f
}

// judge requires that the queue kept all promises in a run with a fault.
func (p *injection) judge(ctx context.Context, dir string, r *ran) error {
	killed := p.kill || p.then != nil && p.then.kill
	unlinked := p.kind == "unlinkat" || p.then != nil && p.then.kind == "unlinkat"
	if r.stderr != "" || r.ended != nil && !killed {
		return fmt.Errorf("the process ended with %v and said: %s", r.ended, r.stderr)
	}
	var h childReport
	err := h.hear(r.lines)
	if left := leftovers(dir); len(left) > 0 && !killed && !unlinked {
		err = errors.Join(err, fmt.Errorf("it left %v", left))
	}
	if !killed {
		err = errors.Join(err, r.builtOn(p.index), r.reported(p.index, &h, len(extra(dir)) > 0))
	}
	err = errors.Join(err, h.check(ctx, filepath.Join(dir, queueName)), h.checkBackup(ctx, filepath.Join(dir, backupName), p.at))
	if left := extra(dir); len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("files remain after an open without faults: %v", left))
	}
	return err
}

// missingSupervision tries to supervise system calls.
func missingSupervision() string {
	dir, err := harness.MemoryFolder()
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(dir)
	r, err := supervise(context.Background(), dir, nil, func(int, call) fault { return fault{} }, "faults-nothing", filepath.Join(dir, "file"))
	switch {
	case err != nil:
		return fmt.Sprintf("cannot supervise system calls here (seccomp, Linux 5.9): %v", err)
	case len(r.calls) == 0:
		return "cannot supervise system calls here: the kernel reports none"
	}
	return ""
}

func init() {
	harness.Role("faults-nothing", func(args harness.Args) error { return os.WriteFile(args[0], []byte("nothing"), 0o600) })
}
