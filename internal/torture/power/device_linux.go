package power

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// copiesOfADevice is the number of copies for one process.
const copiesOfADevice = 5

// prepareDevice makes a file system of each type as the start of tries.
func prepareDevice(env *harness.Env) (func(*harness.Try) error, error) {
	for n, fs := range present() {
		if err := fs.format(blank(env.Dir, n)); err != nil {
			return nil, err
		}
	}
	return func(t *harness.Try) error {
		n := int(t.Seed % uint64(len(present())))
		d := &device{t: t, fs: present()[n], file: filepath.Join(t.Dir, "disk")}
		if err := harness.CopyFile(blank(env.Dir, n), d.file); err != nil {
			return err
		}
		if err := d.run(); err != nil {
			return fmt.Errorf("%s %s: %w", d.fs.name, d.fs.options, err)
		}
		return nil
	}, nil
}

func blank(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("blank-%d", n)) }

// device is a file system with a process at work on it.
type device struct {
	t      *harness.Try
	fs     fileSystem
	file   string
	below  *mounted
	worker *exec.Cmd
	said   string // the file with the story of the process
	copies int    // so far
	story  deviceStory
}

func (d *device) run() (err error) {
	if d.below, err = d.fs.mount(d.file, filepath.Join(d.t.Dir, "mount")); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.below.unmount()) }()
	stop, err := d.start()
	if err != nil {
		return err
	}
	defer stop()
	for range copiesOfADevice {
		select {
		case <-d.t.Ctx.Done():
			return nil
		case <-time.After(time.Duration(d.t.Rand.Int64N(int64(60 * time.Millisecond)))):
		}
		if err := d.cut(); err != nil {
			return err
		}
		if d.t.Count(1); d.t.Enough() {
			return nil
		}
	}
	return nil
}

// start starts the process. It writes its story to a file, so the whole story up to a stop
// can be read at once.
func (d *device) start() (stop func(), err error) {
	cmd, err := harness.Command(d.t.Ctx, nil, "device-work", d.below.folder, d.t.Seed)
	if err != nil {
		return nil, err
	}
	d.worker, d.said = cmd, filepath.Join(d.t.Dir, "story")
	out, err := os.Create(d.said)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if _, err := cmd.StdinPipe(); err != nil { // the pipe closes when this process ends
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}, nil
}

// cut copies the device while the process is stopped, and checks the copy.
func (d *device) cut() error {
	if err := d.stop(); err != nil {
		return err
	}
	d.copies++
	// Each copy is a separate file: the system may release the previous device late, and
	// would then show its cached content.
	image := filepath.Join(d.t.Dir, fmt.Sprint("copy-", d.copies))
	err := d.copyAtRest(image)
	text, readErr := os.ReadFile(d.said)
	goOn := d.worker.Process.Signal(syscall.SIGCONT)
	if err := errors.Join(err, readErr, goOn); err != nil {
		return err
	}
	if err := d.story.hearAll(string(text)); err != nil {
		return err
	}
	m, err := d.fs.mount(image, filepath.Join(d.t.Dir, "copied"))
	if err != nil {
		return fmt.Errorf("cannot mount the copy: %w", err)
	}
	err = errors.Join(d.story.judgeCopy(d.t.Ctx, m.folder), m.unmount())
	if err == nil {
		err = os.Remove(image)
	}
	return err
}

// stop stops all threads of the process.
func (d *device) stop() error {
	pid := d.worker.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return err
		case status.Stopped():
			return nil
		default:
			text, _ := os.ReadFile(d.said)
			return fmt.Errorf("the process ended: %.2000s", text[max(0, len(text)-2000):])
		}
	}
}

// copyAtRest makes a consistent copy of the device. It repeats the copy if the kernel has
// written to the device in the meantime.
func (d *device) copyAtRest(image string) error {
	for range 200 {
		before, underWay, err := d.below.written()
		if err != nil {
			return err
		}
		if err := harness.CopyFile(d.file, image); err != nil {
			return err
		}
		after, still, err := d.below.written()
		if err != nil {
			return err
		}
		if before == after && underWay == "0" && still == "0" {
			return nil
		}
	}
	return errors.New("the device does not come to rest")
}

// deviceStory is the story of the process copies so far.
type deviceStory struct {
	concurrentStory
	read int // bytes
}

// hearAll processes the new lines. The last one may be incomplete.
func (s *deviceStory) hearAll(text string) error {
	for line := range strings.Lines(text[s.read:]) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		s.read += len(line)
		if err := s.hear(strings.TrimSuffix(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// judgeCopy checks the queue on a copy.
func (s *deviceStory) judgeCopy(ctx context.Context, folder string) error {
	if _, err := inspect(filepath.Join(folder, queueFile), true); err != nil {
		return err
	}
	return s.judgeFolder(ctx, folder)
}
