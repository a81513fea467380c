// Package tmux drives programs in a hidden terminal: it types, and reads the screen. The
// terminal is a separate tmux, with its own socket and without the user's settings.
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

// ErrMissing means that tmux is not installed.
var ErrMissing = errors.New("tmux is missing; install the package of that name")

// firstPrompt is the maximum time for a shell to start.
const firstPrompt = time.Minute

// Start opens a terminal of that many columns and rows, for a shell with these additional
// variables, each "NAME=value", and returns when the shell waits for a line. [Terminal.Close]
// ends everything that runs in it.
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
	if err == nil { // text typed earlier would appear before the prompt
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

// Close ends the terminal; its programs receive SIGHUP.
func (t *Terminal) Close() error {
	_, err := t.run("kill-server")
	return errors.Join(err, os.RemoveAll(t.folder))
}

// Type types a text unchanged.
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

// Screen returns the screen, line by line, without trailing spaces.
func (t *Terminal) Screen() (string, error) { return t.run("capture-pane", "-p") }

// Colored returns the screen with its color sequences.
func (t *Terminal) Colored() (string, error) { return t.run("capture-pane", "-e", "-p") }

// Wait reads the screen until seen reports true, and returns it. The error names what it waited
// for and contains the last screen.
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
