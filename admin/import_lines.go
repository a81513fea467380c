package admin

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine is how long a line of an export may be: the largest payload in base64, and 10 MiB
// for the rest, of which a whole history of the longest errors needs the most.
const maxLine = 96 << 20

var errLongLine = errors.New("it is too long")

// lines reads an export line by line, from any place of it.
type lines struct {
	from io.ReadSeeker
	buf  *bufio.Reader
	next int64  // where the line begins that buf is at
	text []byte // of the line that was read last, while it is longer than buf
	max  int    // bytes of a line
}

func newLines(from io.ReadSeeker) *lines {
	return &lines{from: from, buf: bufio.NewReaderSize(from, 64<<10), max: maxLine}
}

// read returns the next line, without what ends it, until read is called again; io.EOF
// behind the last.
func (l *lines) read() ([]byte, error) {
	l.text = l.text[:0]
	for {
		part, err := l.buf.ReadSlice('\n')
		l.next += int64(len(part))
		switch {
		case len(l.text)+len(part) > l.max+1:
			return nil, fmt.Errorf("%w: %d bytes are the most that a job needs", errLongLine, l.max)
		case err == nil && len(l.text) == 0:
			return part[:len(part)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
			l.text = append(l.text, part...)
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("read the export: %w", err)
		}
		l.text = append(l.text, part...)
		if len(l.text) == 0 {
			return nil, io.EOF
		}
		return bytes.TrimSuffix(l.text, []byte("\n")), nil
	}
}

// at returns the line that begins at an offset.
func (l *lines) at(offset int64) ([]byte, error) {
	if offset != l.next {
		if err := l.seek(offset); err != nil {
			return nil, err
		}
	}
	return l.read()
}

func (l *lines) seek(offset int64) error {
	if _, err := l.from.Seek(offset, io.SeekStart); err != nil {
		return fmt.Errorf("read the export: %w; an input that cannot be read twice goes through Spool first", err)
	}
	l.buf.Reset(l.from)
	l.next = offset
	return nil
}

// number is that of the line which begins at an offset, counted from 1; 0 when that cannot
// be read. It reads all that stands before it, so it is for errors alone.
func (l *lines) number(offset int64) int64 {
	if err := l.seek(0); err != nil {
		return 0
	}
	l.next = -1 // wherever that leaves buf
	n := int64(1)
	part := make([]byte, 64<<10)
	for before := io.LimitReader(l.buf, offset); ; {
		k, err := before.Read(part)
		n += int64(bytes.Count(part[:k], []byte("\n")))
		if err != nil {
			return n
		}
	}
}
