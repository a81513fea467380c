package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bench/system"
)

// Cases that watch or kill a process start this program again, with a role in its
// environment and the folder of a queue as its first argument. Such a child says in one
// line that it is ready, and then lives until it is killed or its input ends, as it
// does when its parent is gone.
const roleVariable = "PAWL_BENCH_ROLE"

const (
	roleLease = "lease" // commit something, and lease as many jobs as the second argument says
	roleIdle  = "idle"  // hold a queue with idle workers
	roleEmpty = "empty" // hold nothing
)

var roles = map[string]func(args []string) error{
	roleLease: leaseRole,
	roleIdle:  idleRole,
	roleWork:  workRole,
	roleEmpty: func([]string) error { return untilOrphaned() },
}

// child plays this process's role, if it has one.
func child() bool {
	name := os.Getenv(roleVariable)
	if name == "" {
		return false
	}
	role := roles[name]
	if role == nil {
		role = func([]string) error { return errors.New("no such role") }
	}
	if err := role(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %s: %v\n", name, err)
		os.Exit(1)
	}
	return true
}

const readyLine = "ready\n"

// untilOrphaned tells the parent that this process is ready, and waits for its end.
func untilOrphaned() error {
	if _, err := io.WriteString(os.Stdout, readyLine); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func leaseRole(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	q, err := system.OpenPawl(args[0])
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := q.Enqueue(ctx, small); err != nil {
		return err
	}
	for n > 0 {
		leases, err := q.Bolt.Fetch(ctx, pawl.Request{Max: min(n, bulk), Wait: pawl.WaitNot})
		if err != nil {
			return err
		}
		n -= len(leases)
	}
	return untilOrphaned() // without a close
}

func idleRole(args []string) error {
	q, err := system.OpenPawl(args[0])
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	worked := make(chan error, 1)
	go func() { worked <- q.Work(ctx, workers, func([]byte) {}) }()
	err = untilOrphaned()
	stop()
	return errors.Join(err, <-worked, q.Close())
}

// process is a child that is ready.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser // its end is that of the child
	stdout *bufio.Reader
}

// start starts a child and waits until it is ready.
func (t *trial) start(role string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(t.ctx, self, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd, stdin, bufio.NewReader(stdout)}
	if line, _ := p.stdout.ReadString('\n'); line != readyLine {
		p.kill()
		return nil, fmt.Errorf("a child in the role of %s did not say that it is ready but %q: %s", role, line, &stderr)
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends a child at once and waits until it is gone. Its error would only say that
// it was killed.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// The layout of the two meta pages that a bbolt file begins with: the offsets in a page
// behind its header.
const (
	metaHeader   = 16
	metaMagic    = metaHeader
	metaPageSize = metaHeader + 8
	metaTxid     = metaHeader + 48
	metaEnd      = metaTxid + 8

	bboltMagic = 0xED0CDAED
)

// lastCommit is the number of the last commit in a bbolt file. It reads the file as any
// program can, so it needs no lock.
func lastCommit(path string) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var last uint64
	var at int64
	for range 2 {
		var page [metaEnd]byte
		if _, err := f.ReadAt(page[:], at); err != nil {
			return 0, err
		}
		if magic := binary.NativeEndian.Uint32(page[metaMagic:]); magic != bboltMagic {
			return 0, fmt.Errorf("%s has no meta page of bbolt at %d", path, at)
		}
		last = max(last, binary.NativeEndian.Uint64(page[metaTxid:]))
		at = int64(binary.NativeEndian.Uint32(page[metaPageSize:]))
	}
	return last, nil
}
