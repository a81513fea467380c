// Package cluster starts PostgreSQL clusters for tests, for examples, and for programs that kill
// servers. It needs the server's programs alone, which Debian's package postgresql has.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// superuser is the role of every client. No cluster listens on the network, and whoever may open
// its folder needs no password.
const superuser = "pawl"

// startLimit is how long a server may take to start, recovery included.
const startLimit = 2 * time.Minute

// Cluster is a PostgreSQL server with its data. Its methods are for one goroutine.
type Cluster struct {
	Folder string // has the socket, the data, and the log

	programs string // their folder
	as       *syscall.SysProcAttr
	settings []string
	guard    *exec.Cmd
	guarding io.Closer
	server   *exec.Cmd     // nil before the first start
	ended    chan struct{} // closed when it has ended
}

// Missing reports what this machine lacks for a cluster, "" for nothing.
func Missing() string {
	if _, err := findPrograms(); err != nil {
		return err.Error()
	}
	if _, err := attributes(); err != nil {
		return err.Error()
	}
	return ""
}

// findPrograms returns the folder of the server's programs, those of Debian's newest version first.
func findPrograms() (string, error) {
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Reverse(folders)
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "initdb")); err == nil {
			return folder, nil
		}
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	return "", errors.New("PostgreSQL is missing: there is no initdb; on Debian, install the package postgresql")
}

// New makes a cluster in a folder of its own, which it creates. Settings such as "fsync=off" are for
// each start. The caller starts the cluster, and closes it. Every user of the system must be able
// to pass through the folders above, because a server does not run as root.
func New(ctx context.Context, folder string, settings ...string) (*Cluster, error) {
	c, err := in(folder, settings)
	if err != nil {
		return nil, err
	}
	err = c.run(ctx, "initdb", "-D", c.data(), "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	return c.guarded(err)
}

// Standby makes a cluster that follows this one, which runs. Name is that of the standby for
// synchronous_standby_names.
func (c *Cluster) Standby(ctx context.Context, folder, name string, settings ...string) (*Cluster, error) {
	s, err := in(folder, settings)
	if err != nil {
		return nil, err
	}
	err = s.run(ctx, "pg_basebackup", "-D", s.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync",
		"-d", fmt.Sprintf("host='%s' user=%s application_name=%s", c.Folder, superuser, name))
	return s.guarded(err)
}

// in makes the folder of a cluster.
func in(folder string, settings []string) (*Cluster, error) {
	programs, err := findPrograms()
	if err != nil {
		return nil, err
	}
	as, err := attributes()
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	return &Cluster{Folder: folder, programs: programs, as: as, settings: settings}, give(folder)
}

// guardScript waits for the end of its input, which is that of this process even if that is killed,
// and ends the server then.
const guardScript = `cat >/dev/null; "$0" stop -s -m immediate -D "$1" 2>/dev/null; rm -rf "$1"`

// guarded starts the guard of a cluster that was made with this error.
func (c *Cluster) guarded(err error) (*Cluster, error) {
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.Folder))
	}
	c.guard = c.command(context.Background(), "/bin/sh", "-c", guardScript, filepath.Join(c.programs, "pg_ctl"), c.data())
	if c.guarding, err = c.guard.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.guard.Start(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Cluster) data() string { return filepath.Join(c.Folder, "data") }

// URL is how clients reach the server.
func (c *Cluster) URL() string { return URLOf(c.Folder) }

// URLOf is how clients reach a server behind sockets in these folders: the one that accepts writes,
// if there are several.
func URLOf(folders ...string) string {
	target := ""
	if len(folders) > 1 {
		target = "&target_session_attrs=read-write"
	}
	return fmt.Sprintf("postgres:///postgres?host=%s&user=%s%s", strings.Join(folders, ","), superuser, target)
}

// Socket is the name of the server's socket in its folder.
const Socket = ".s.PGSQL.5432"

// command returns a command that runs as the user of the server. A signal from the terminal does not
// reach it.
func (c *Cluster) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = c.Folder
	cmd.SysProcAttr = c.as
	return cmd
}

// run runs a program of the server.
func (c *Cluster) run(ctx context.Context, name string, args ...string) error {
	out, err := c.command(ctx, filepath.Join(c.programs, name), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// Start starts the server and waits until it accepts connections. The processes of a server that was
// killed keep its memory for a while, in which another one gives up.
func (c *Cluster) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		if err := c.launch(); err != nil {
			return err
		}
		for !c.hasEnded() {
			if c.run(ctx, "pg_isready", "-q", "-h", c.Folder) == nil {
				return nil
			}
			if ctx.Err() != nil {
				c.Kill(syscall.SIGKILL)
				log, _ := os.ReadFile(c.log())
				return fmt.Errorf("PostgreSQL did not start: %w: %s", ctx.Err(), log)
			}
			time.Sleep(poll)
		}
	}
}

// poll is how long to wait before the next look at a server that starts.
const poll = 20 * time.Millisecond

func (c *Cluster) log() string { return filepath.Join(c.Folder, "log") }

// launch starts the process of the server.
func (c *Cluster) launch() error {
	log, err := os.OpenFile(c.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"-D", c.data(), "-k", c.Folder, "-c", "listen_addresses="}
	for _, setting := range c.settings {
		args = append(args, "-c", setting)
	}
	c.server = c.command(context.Background(), filepath.Join(c.programs, "postgres"), args...)
	c.server.Stdout, c.server.Stderr = log, log
	if err := c.server.Start(); err != nil {
		return err
	}
	server, ended := c.server, make(chan struct{})
	c.ended = ended
	go func() {
		_ = server.Wait()
		close(ended)
	}()
	return nil
}

// hasEnded reports whether the process of the server has ended.
func (c *Cluster) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Kill sends a signal that ends the server, and waits for that: SIGQUIT for an immediate shutdown,
// or SIGKILL for its first process, whose others then end by themselves.
func (c *Cluster) Kill(signal syscall.Signal) {
	_ = c.server.Process.Signal(signal)
	<-c.ended
}

// Promote makes a standby the primary.
func (c *Cluster) Promote(ctx context.Context) error {
	return c.run(ctx, "pg_ctl", "promote", "-s", "-w", "-D", c.data())
}

// Close ends the server, if it runs, and removes the cluster.
func (c *Cluster) Close() {
	_ = c.guarding.Close()
	_ = c.guard.Wait()
	if c.server != nil {
		c.Kill(syscall.SIGKILL) // it has ended already, unless the guard could not do that
	}
	_ = os.RemoveAll(c.Folder)
}
