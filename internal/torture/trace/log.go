package trace

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Log is what several processes did to a folder, one after another.
type Log struct {
	Folder string
	Names  map[string]int // the files at the start
	Files  map[int][]byte // the durable content of these files
	Events []Event

	names map[string]int // current names
	next  int            // number of the next file
}

// NewWork makes the folder "work" below another one, and returns its log.
func NewWork(dir string) (*Log, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(dir, "work")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	return NewLog(folder)
}

// NewLog returns a log that starts with the content of a folder. The path is absolute and has
// no links, and the processes use the same path.
func NewLog(folder string) (*Log, error) {
	content, err := contentOf(folder)
	if err != nil {
		return nil, err
	}
	l := &Log{Folder: folder, Names: make(map[string]int), Files: make(map[int][]byte)}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		l.Names[name], l.Files[l.next] = l.next, content[name]
		l.next++
	}
	l.names = maps.Clone(l.Names)
	return l, nil
}

func contentOf(folder string) (map[string][]byte, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	content := make(map[string][]byte)
	for _, e := range entries {
		if content[e.Name()], err = os.ReadFile(filepath.Join(folder, e.Name())); err != nil {
			return nil, err
		}
	}
	return content, nil
}

// Add adds the calls of a process that has ended, as strace wrote them. It fails if the log
// does not explain the content of the folder.
func (l *Log) Add(strace io.Reader) error {
	moments, err := parseCalls(strace)
	if err != nil {
		return err
	}
	p := process{log: l, open: make(map[int64]*descriptor), ops: make(map[*Call][]*Op)}
	first := len(l.Events)
	for _, m := range moments {
		if err := p.moment(m); err != nil {
			return fmt.Errorf("%s(%.200q): %w", m.call.Name, m.call.Args, err)
		}
	}
	content, err := contentOf(l.Folder)
	if err != nil {
		return err
	}
	l.settle(first, content)
	return l.compare(content)
}

// Story returns the lines of output before the event with a number.
func (l *Log) Story(before int) (lines []string) {
	for _, e := range l.Events[:before] {
		if e.Kind == Say && e.Begin {
			lines = append(lines, e.Text)
		}
	}
	return lines
}

// Number returns the number of the file with a name, -1 for none.
func (l *Log) Number(name string) int {
	if n, ok := l.names[name]; ok {
		return n
	}
	return -1
}

// settle handles the calls in which a process died. It compares them with the folder to
// decide which of them have happened. Those end with the process, so later syncs cover them.
func (l *Log) settle(first int, content map[string][]byte) {
	ended := make(map[*Op]bool)
	for _, e := range l.Events[first:] {
		ended[e.Op] = ended[e.Op] || !e.Begin
	}
	for _, e := range l.Events[first:] {
		if !e.Begin || ended[e.Op] || e.Failed {
			continue
		}
		if !e.IsSync() && e.Kind != Say {
			l.Events = append(l.Events, Event{Op: e.Op})
		}
		isThere := content[e.Name] != nil
		switch o := e.Op; o.Kind {
		case Write:
			b := l.contentByNumber(content, o.File)
			b = b[min(o.At, int64(len(b))):]
			n := 0 // a kill ends a write between two pages
			for n < len(o.Data) && n < len(b) && o.Data[n] == b[n] {
				n++
			}
			o.Data, o.Failed = o.Data[:n], n == 0
		case Truncate:
			o.Failed = int64(len(l.contentByNumber(content, o.File))) != o.Size
		case Create:
			if o.Failed = !isThere; o.Failed {
				delete(l.names, o.Name)
			}
		case Link:
			if o.Failed = content[o.To] == nil; o.Failed {
				delete(l.names, o.To)
			}
		case Unlink:
			if o.Failed = isThere; o.Failed {
				l.names[o.Name] = o.File
			}
		case Rename:
			if o.Failed = isThere; o.Failed {
				l.names[o.Name] = o.File
				delete(l.names, o.To)
			}
		}
	}
}

func (l *Log) contentByNumber(content map[string][]byte, file int) []byte {
	for name, number := range l.names {
		if number == file {
			return content[name]
		}
	}
	return nil
}

// compare requires that the log explains every byte of the folder, so that no write is
// missing.
func (l *Log) compare(content map[string][]byte) error {
	names, files := l.replay()
	var wrong []error
	for name, is := range content {
		number, ok := names[name]
		switch {
		case !ok:
			wrong = append(wrong, fmt.Errorf("the log does not explain the file %s", name))
		case string(files[number]) != string(is):
			wrong = append(wrong, fmt.Errorf("the log does not explain what is in %s, of %d bytes, by the log %d", name, len(is), len(files[number])))
		}
	}
	for name := range names {
		if _, ok := content[name]; !ok {
			wrong = append(wrong, fmt.Errorf("the log has the file %s, and the folder does not", name))
		}
	}
	return errors.Join(wrong...)
}

// replay returns the folder after all ops that happened.
func (l *Log) replay() (names map[string]int, files map[int][]byte) {
	names, files = maps.Clone(l.Names), make(map[int][]byte)
	for number, content := range l.Files {
		files[number] = slices.Clone(content)
	}
	for _, e := range l.Events {
		if !e.Begin || e.Failed {
			continue
		}
		switch o := e.Op; o.Kind {
		case Write:
			files[o.File] = Put(files[o.File], o.At, o.Data)
		case Truncate:
			files[o.File] = Resize(files[o.File], o.Size)
		default:
			Rewrite(names, o)
		}
	}
	return names, files
}

// Put writes into bytes, which grow as needed.
func Put(to []byte, at int64, data []byte) []byte {
	if end := at + int64(len(data)); end > int64(len(to)) {
		to = Resize(to, end)
	}
	copy(to[at:], data)
	return to
}

// Resize truncates b or appends zeros.
func Resize(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}

// Rewrite applies an op to names.
func Rewrite(names map[string]int, o *Op) {
	switch o.Kind {
	case Create:
		names[o.Name] = o.File
	case Link:
		names[o.To] = o.File
	case Rename:
		delete(names, o.Name)
		names[o.To] = o.File
	case Unlink:
		delete(names, o.Name)
	}
}

// inFolder returns the name of a path in the folder, "." for the folder itself, and "" for a
// path elsewhere.
func (l *Log) inFolder(path string) string {
	if path == l.Folder {
		return "."
	}
	name, ok := strings.CutPrefix(path, l.Folder+"/")
	if !ok || strings.Contains(name, "/") {
		return ""
	}
	return name
}
