package recurring

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// A system runs in a process of its own, which can be killed. The process is this program, with its task in
// its environment. It ends with its input.
const variable = "PAWL_RECURRING"

// task is what a process does until it is stopped.
type task struct {
	System string
	Dir    string
	URL    string // of the server, if there is one
	Log    string // file for the times
	Load   *load  // the jobs whose rate is limited; nil for the schedule
	Loads  bool   // enqueue them
}

// Child runs the task of this process, if it has one.
func Child() bool {
	text := os.Getenv(variable)
	if text == "" {
		return false
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var t task
	err := json.Unmarshal([]byte(text), &t)
	if err == nil {
		err = t.run(ctx)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %s: %v\n", t.System, err)
		os.Exit(1)
	}
	return true
}

func (t task) run(ctx context.Context) error {
	for _, s := range contenders() {
		if s.name != t.System {
			continue
		}
		file, err := os.OpenFile(t.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		defer file.Close()
		l := &times{file: file}
		if t.Load == nil {
			return s.schedule(ctx, t, l)
		}
		return s.rate(ctx, t, l)
	}
	return fmt.Errorf("no such system")
}

// times is a file with a line for each attempt of a job: the time of its tick, or of its start, in nanoseconds, and
// the ID of the job. A kill may have a job run twice, which is not a tick too many.
type times struct {
	mu   sync.Mutex
	file *os.File
}

func (t *times) add(at time.Time, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := fmt.Fprintln(t.file, at.UnixNano(), id); err != nil {
		panic(err) // the counts would be wrong
	}
}

// start starts the process of a task.
func (t task) start(ctx context.Context) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, stdin: stdin, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{} // closed at its end
	err   error         // how it ended, after that
}

// timeout is how long a process may take to end.
const timeout = 20 * time.Second

// end sends a signal, and waits for the end of the process. An end before the signal is an error.
func (p *process) end(sig syscall.Signal) error {
	select {
	case <-p.done:
		return fmt.Errorf("the process ended by itself: %v", p.err)
	default:
	}
	_ = p.cmd.Process.Signal(sig) // it may end just now
	select {
	case <-p.done:
		return nil
	case <-time.After(timeout):
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	return fmt.Errorf("the process did not end within %v of %v", timeout, sig)
}
