package trace

import (
	"errors"
	"fmt"
	"strings"
)

// process follows the calls of one process.
type process struct {
	log  *Log
	open map[int64]*descriptor
	ops  map[*Call][]*Op // ops of the calls that have begun
}

// descriptor is an open file of the folder, or the folder.
type descriptor struct {
	file     int
	folder   bool
	position int64
	appends  bool // or its position is unknown
}

// calls are the traced calls. The log refuses the calls of the last line, in case a build
// writes with them. The comparison with the folder detects all other writes.
var calls = []string{"openat", "open", "creat", "close", "dup", "dup2", "dup3", "fcntl", "lseek",
	"read", "write", "pwrite64", "ftruncate", "fsync", "fdatasync",
	"link", "linkat", "unlink", "unlinkat", "rename", "renameat", "renameat2",
	"writev", "pwritev", "pwritev2", "fallocate"}

func (p *process) moment(m moment) error {
	if m.begin {
		return p.begin(m.call)
	}
	if m.call.Known { // otherwise the process died inside it
		for _, op := range p.ops[m.call] {
			p.log.Events = append(p.log.Events, Event{op, false})
		}
	}
	delete(p.ops, m.call)
	return p.end(m.call)
}

// did adds an op of a call that has started.
func (p *process) did(c *Call, op Op) {
	op.Failed = c.Failed()
	if !op.Failed {
		Rewrite(p.log.names, &op)
	}
	p.ops[c] = append(p.ops[c], &op)
	p.log.Events = append(p.log.Events, Event{&op, true})
}

var errPosition = errors.New("the position of this write is unknown")

// begin handles the start of a call that changes something.
func (p *process) begin(c *Call) error {
	switch c.Name {
	case "openat", "open", "creat":
		return p.opening(c)
	case "linkat", "link", "unlinkat", "unlink", "renameat", "renameat2", "rename":
		return p.naming(c)
	case "close":
		fd, err := c.number(0)
		delete(p.open, fd)
		return err
	case "dup", "dup2", "dup3", "fcntl":
		return nil
	}
	fd, err := c.number(0)
	if err != nil {
		return err
	}
	if fd == 1 && c.Name == "write" {
		for line := range strings.Lines(c.Args[1]) {
			p.did(c, Op{Kind: Say, Text: strings.TrimSuffix(line, "\n")})
		}
		return nil
	}
	d := p.open[fd]
	if d == nil {
		return nil
	}
	return p.changing(c, d)
}

// changing handles a call on an open file of the folder.
func (p *process) changing(c *Call, d *descriptor) error {
	switch c.Name {
	case "write", "pwrite64":
		return p.writing(c, d)
	case "read":
		d.position += max(c.Result, 0)
		return nil
	case "ftruncate":
		size, err := c.number(1)
		p.did(c, Op{Kind: Truncate, File: d.file, Size: size})
		return err
	case "fsync", "fdatasync":
		kind := Sync
		switch {
		case d.folder:
			kind = SyncFolder
		case c.Name == "fdatasync":
			kind = DataSync
		}
		p.did(c, Op{Kind: kind, File: d.file})
		return nil
	case "lseek":
		if from := c.Args[2]; from != "SEEK_SET" {
			d.appends = true
			return nil
		}
		var err error
		d.position, err = c.number(1)
		return err
	}
	return errors.New("the log does not understand this call")
}

func (p *process) writing(c *Call, d *descriptor) (err error) {
	op := Op{Kind: Write, File: d.file, At: d.position, Data: []byte(c.Args[1])}
	switch {
	case c.clipped:
		return errors.New("the data is cut off")
	case c.Name == "pwrite64":
		if op.At, err = c.number(3); err != nil {
			return err
		}
	case d.appends:
		return errPosition
	default:
		d.position += max(c.Result, 0)
	}
	if c.Known && c.Result >= 0 {
		op.Data = op.Data[:c.Result]
	}
	p.did(c, op)
	return nil
}

// opening records that an open creates or truncates a file.
func (p *process) opening(c *Call) error {
	path, flags := openArguments(c)
	name := p.log.inFolder(path)
	if name == "" || name == "." {
		return nil
	}
	number, exists := p.log.names[name]
	switch {
	case !exists && strings.Contains(flags, "O_CREAT"):
		p.did(c, Op{Kind: Create, File: p.log.next, Name: name})
		p.log.next++
	case exists && strings.Contains(flags, "O_TRUNC"):
		p.did(c, Op{Kind: Truncate, File: number})
	}
	return nil
}

func openArguments(c *Call) (path, flags string) {
	switch {
	case c.Name == "openat" && len(c.Args) > 2:
		return c.Args[1], c.Args[2]
	case c.Name == "open" && len(c.Args) > 1:
		return c.Args[0], c.Args[1]
	}
	return c.Args[0], "O_CREAT|O_TRUNC"
}

// naming handles a call that changes names. All paths are absolute.
func (p *process) naming(c *Call) error {
	var paths []string
	for _, arg := range c.Args {
		if strings.HasPrefix(arg, "/") {
			paths = append(paths, arg)
		}
	}
	name := ""
	if len(paths) > 0 {
		name = p.log.inFolder(paths[0])
	}
	if name == "" {
		return nil
	}
	op := Op{Kind: Unlink, Name: name, File: p.log.names[name]}
	if len(paths) == 2 {
		op.To = p.log.inFolder(paths[1])
		if op.Kind = Link; strings.HasPrefix(c.Name, "rename") {
			op.Kind = Rename
		}
		if op.To == "" {
			return fmt.Errorf("a file leaves the folder for %s", paths[1])
		}
	}
	p.did(c, op)
	return nil
}

// end handles the end of a call that changes descriptors.
func (p *process) end(c *Call) error {
	if !c.Known || c.Result < 0 {
		return nil
	}
	switch c.Name {
	case "openat", "open", "creat":
		path, flags := openArguments(c)
		if name := p.log.inFolder(path); name != "" {
			p.open[c.Result] = &descriptor{
				file: p.log.names[name], folder: name == ".",
				appends: strings.Contains(flags, "O_APPEND"),
			}
		}
	case "dup", "dup2", "dup3":
		return p.copied(c)
	case "fcntl":
		if strings.HasPrefix(c.Args[1], "F_DUPFD") {
			return p.copied(c)
		}
	}
	return nil
}

func (p *process) copied(c *Call) error {
	fd, err := c.number(0)
	delete(p.open, c.Result)
	if d := p.open[fd]; d != nil {
		p.open[c.Result] = d
	}
	return err
}
