// Package tmux drives programs in a terminal that nobody sees: it types, and reads what
// stands on the screen. The terminal is a tmux of its own, with its own socket and no
// settings of the user's.
package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Terminal is one terminal with a shell in it, whose prompt is "$ ".
type Terminal struct {
	folder string
	socket string
}

// ErrMissing says that tmux is not installed.
var ErrMissing = errors.New("tmux is missing; install the package of that name")

// firstPrompt is how long a shell may take to begin.
const firstPrompt = time.Minute

// Start opens a terminal of so many columns and rows, for a shell with these variables
// besides the usual ones, each "NAME=value", and returns when the shell waits for a line.
// [Terminal.Close] ends all that runs in it.
func Start(columns, rows int, env ...string) (*Terminal, error) {
	if _, err := exec.LookPath("tmux"); err != nil {
		return nil, ErrMissing
	}
	// The path of a socket is limited to about a hundred bytes.
	folder, err := os.MkdirTemp("", "tmux")
	if err != nil {
		return nil, err
	}
	t := &Terminal{folder: folder, socket: filepath.Join(folder, "socket")}
	shell := []string{"env", "-i", "PATH=" + os.Getenv("PATH"), "HOME=" + folder, "LANG=C.UTF-8", "PS1=$ ", "TERM=screen-256color"}
	shell = append(append(shell, env...), "sh", "-i")
	args := append([]string{"-u", "new-session", "-d", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows), "--"}, shell...)
	args = append(args, ";", "set", "-g", "status", "off")
	_, err = t.run(args...)
	if err == nil { // what is typed before stands in front of the prompt
		ctx, cancel := context.WithTimeout(context.Background(), firstPrompt)
		defer cancel()
		_, err = t.Wait(ctx, "the first prompt", func(screen string) bool { return strings.TrimSpace(screen) == "$" })
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Terminal) run(args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-S", t.socket, "-f", os.DevNull}, args...)...)
	cmd.Env = append(os.Environ(), "TMUX=", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("tmux %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// Close ends the terminal; what runs in it is told by SIGHUP.
func (t *Terminal) Close() error {
	_, err := t.run("kill-server")
	return errors.Join(err, os.RemoveAll(t.folder))
}

// Type types a text as it is.
func (t *Terminal) Type(text string) error {
	_, err := t.run("send-keys", "-l", "--", text)
	return err
}

// Press presses keys by their names in tmux: Enter, Escape, Tab, Down, NPage, C-c, x.
func (t *Terminal) Press(keys ...string) error {
	_, err := t.run(append([]string{"send-keys", "--"}, keys...)...)
	return err
}

// Resize gives the terminal another size.
func (t *Terminal) Resize(columns, rows int) error {
	_, err := t.run("resize-window", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows))
	return err
}

// Screen is what stands on the screen, line by line, without spaces at their ends.
func (t *Terminal) Screen() (string, error) { return t.run("capture-pane", "-p") }

// Colored is the same with the sequences for its colours.
func (t *Terminal) Colored() (string, error) { return t.run("capture-pane", "-e", "-p") }

// Wait reads the screen until it is as seen wants it, and returns it. The error names what
// was waited for and has the last screen in it.
func (t *Terminal) Wait(ctx context.Context, what string, seen func(screen string) bool) (string, error) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		screen, err := t.Screen()
		if err != nil {
			return "", err
		}
		if seen(screen) {
			return screen, nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return screen, fmt.Errorf("waited in vain for %s; the screen is:\n%s", what, screen)
		}
	}
}
