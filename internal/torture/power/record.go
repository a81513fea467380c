package power

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/trace"
)

// recording is a workload and the log of it.
type recording struct {
	ctx    context.Context
	dir    string
	rand   *rand.Rand
	strace []string // more arguments, such as calls to fail
	log    *trace.Log
	parts  int
}

// newRecording starts with an empty folder.
func newRecording(ctx context.Context, dir string, r *rand.Rand) (*recording, error) {
	l, err := trace.NewWork(dir)
	return &recording{ctx: ctx, dir: dir, rand: r, log: l}, err
}

// run adds a process in a role to the log. If killAt is positive, it kills the process soon
// after that line.
func (r *recording) run(role string, f flavour, many, before, killAt int) error {
	r.parts++
	file := filepath.Join(r.dir, fmt.Sprintf("calls-%d", r.parts))
	more := r.strace
	if killAt > 0 { // slow syncs, so that it often dies inside one
		more = append(more, "-e", fmt.Sprintf("inject=fdatasync:delay_enter=%d", slowly.Microseconds()))
	}
	c, err := harness.Start(r.ctx, trace.Wrap(file, more...), role,
		r.log.Folder, r.rand.Uint64(), f, many, before)
	if err != nil {
		return err
	}
	if killAt > 0 {
		if err := killChild(c, killAt, time.Duration(r.rand.Int64N(int64(4*slowly)))); err != nil {
			return err
		}
	}
	c.Rest()
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if text := complaint.ReplaceAllString(c.Stderr(), ""); text != "" {
		return errors.New(text)
	}
	if err := r.log.AddFile(file); err != nil {
		return err
	}
	return os.Remove(file)
}

// slowly is the minimum time of a sync in a process that will be killed.
const slowly = 2 * time.Millisecond

// complaint is what strace prints when a process dies inside a delayed call.
var complaint = regexp.MustCompile(`(?m)^strace: dispatch_event: .*$\n?`)

// killChild kills the process that strace runs, a while after a number of lines.
func killChild(c *harness.Child, lines int, later time.Duration) error {
	process := (*os.Process)(nil)
	for n := 0; n < lines; n++ {
		line, err := c.Line()
		if err != nil {
			return err
		}
		if word, ok := strings.CutPrefix(line, "pid "); ok {
			pid, err := strconv.Atoi(word)
			if err != nil {
				return err
			}
			if process, err = os.FindProcess(pid); err != nil {
				return err
			}
		}
	}
	if process == nil {
		return errors.New("the child did not report its process ID")
	}
	<-time.After(later)
	return process.Kill()
}
