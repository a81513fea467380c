package admin

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine limits a line of an export: the largest payload in base64, and 10 MiB for the rest. A
// full history of the longest errors needs most of that.
const maxLine = 96 << 20

var errLongLine = errors.New("it is too long")

// lines reads an export line by line, from any position.
type lines struct {
	from io.ReadSeeker
	buf  *bufio.Reader
	next int64  // offset of the line at the start of buf
	text []byte // the last line, if it is longer than buf
	max  int    // bytes of the longest permitted line
}

func newLines(from io.ReadSeeker) *lines {
	return &lines{from: from, buf: bufio.NewReaderSize(from, 64<<10), max: maxLine}
}

// read returns the next line without its line ending; the line is valid until the next call. It
// returns io.EOF after the last line.
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

// number returns the number, from 1, of the line that begins at an offset; 0 if that cannot be
// read. It reads everything before that line, so only errors use it.
func (l *lines) number(offset int64) int64 {
	if err := l.seek(0); err != nil {
		return 0
	}
	l.next = -1 // the position of buf is unknown now
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
