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
	strace []string // more arguments, such as calls to let fail
	log    *trace.Log
	parts  int
}

// newRecording begins with an empty folder.
func newRecording(ctx context.Context, dir string, r *rand.Rand) (_ *recording, err error) {
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	folder := filepath.Join(dir, "work")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	l, err := trace.NewLog(folder)
	return &recording{ctx: ctx, dir: dir, rand: r, log: l}, err
}

// run adds a process in a role to the log. It is killed by the line of a number, if that is
// above 0, and a bit later.
func (r *recording) run(role string, f flavour, many, before, killAt int) error {
	r.parts++
	file := filepath.Join(r.dir, fmt.Sprintf("calls-%d", r.parts))
	more := r.strace
	if killAt > 0 { // syncs take long, so that it dies inside of one
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

// slowly is how long a sync takes at least in a process that is to be killed.
const slowly = 2 * time.Millisecond

// complaint is what strace says when a process dies inside of a call that was to take long.
var complaint = regexp.MustCompile(`(?m)^strace: dispatch_event: .*$\n?`)

// killChild kills the process that strace runs, when it has told so many lines, and a while
// later.
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
		return errors.New("the child did not tell its number")
	}
	<-time.After(later)
	return process.Kill()
}
