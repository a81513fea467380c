package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Servers are the systems whose queue is kept by a program of its own.
func Servers() []System {
	return []System{Asynq(), AsynqEverySec(), RiverPostgres(), Beanstalkd()}
}

const (
	// producers is how many callers a queue has connections for, so that none of them
	// waits for another's answer.
	producers = 64

	startTimeout = 30 * time.Second
	stopTimeout  = 10 * time.Second
)

// process is a program that was started here.
type process struct {
	cmd     *exec.Cmd
	end     syscall.Signal
	log     string        // file with what it prints
	done    chan struct{} // closed at its end
	stopped bool
}

// launch starts cmd with its output in log. The signal end asks it to end, also when this
// process dies without a call of stop.
func launch(cmd *exec.Cmd, end syscall.Signal, log string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	bind(cmd, end)

	p := &process{cmd: cmd, end: end, log: log, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux takes the end of the thread that started a child for the end of its
		// parent, so that thread stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // its end is judged in stop
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// await calls ready until it returns nil. A program that does not come up is stopped.
func (p *process) await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	var last error // before the context cut a call short
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ticker.C:
		case <-p.done:
			return p.ended()
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s does not answer: %w", p.cmd.Path, last), p.stop())
		}
	}
}

// stop ends the program and waits for its end. It is an error that it had ended before.
func (p *process) stop() error {
	if p.stopped {
		return nil
	}
	p.stopped = true
	select {
	case <-p.done:
		return p.ended()
	default:
	}
	// An error of Signal is a process that ended meanwhile, which done tells as well.
	_ = p.cmd.Process.Signal(p.end)
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	return fmt.Errorf("%s had to be killed", p.cmd.Path)
}

// ended describes an end that nobody asked for, with the last of what was printed.
func (p *process) ended() error {
	out, _ := os.ReadFile(p.log)
	out = bytes.TrimSpace(out[max(0, len(out)-1000):])
	return fmt.Errorf("%s ended: %v\n%s", p.cmd.Path, p.cmd.ProcessState, out)
}

// lookup finds a program on PATH or in the folders where Debian puts servers.
func lookup(program, debianPackage string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	// Servers are kept from the PATH of ordinary users, PostgreSQL's from everybody's.
	folders, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	release := func(folder string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
		return n
	}
	slices.SortFunc(folders, func(a, b string) int { return release(b) - release(a) })
	for _, folder := range append([]string{"/usr/sbin", "/usr/local/sbin"}, folders...) {
		if path, err := exec.LookPath(filepath.Join(folder, program)); err == nil {
			return path, nil
		}
	}
	return "", absent(program, "apt-get install "+debianPackage)
}

// socketPath is the path of a Unix socket. Every server here listens on one: it is
// faster than TCP on the same machine, two servers cannot ask for the same port, and
// nobody else gets at them.
func socketPath(dir, name string) (string, error) {
	const limit = 107 // of Linux; some systems have 103
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err == nil && len(path) > limit {
		err = fmt.Errorf("the path of the socket is longer than %d bytes: %s", limit, path)
	}
	return path, err
}

// output is what a program prints about itself, in one line.
func output(ctx context.Context, program string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", program, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// spread calls put for each payload, from as many goroutines as there are connections.
// It is the bulk enqueue of systems without such a command.
func spread(ctx context.Context, payloads [][]byte, put func(context.Context, []byte) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for part := range slices.Chunk(payloads, (len(payloads)+producers-1)/producers) {
		group.Go(func() error {
			for _, payload := range part {
				if err := put(ctx, payload); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
