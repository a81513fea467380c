package admin

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Spool copies input that can be read only once, such as standard input, to a temporary file
// that only its owner can read, because [Import] reads its input twice. Closing the file removes
// it. On most systems the file has no name once Spool returns.
func Spool(r io.Reader) (io.ReadSeekCloser, error) {
	f, err := os.CreateTemp("", "pawl-import-*")
	if err != nil {
		return nil, fmt.Errorf("spool the input: %w", err)
	}
	s := &spooled{File: f}
	if err := os.Remove(f.Name()); err != nil {
		s.name = f.Name() // Windows cannot remove an open file
	}
	if _, err = io.Copy(f, r); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("spool the input: %w", err), s.Close())
	}
	return s, nil
}

// spooled is a temporary file.
type spooled struct {
	*os.File
	name string // to remove on Close, if any
}

// Close closes and removes the file.
func (s *spooled) Close() error {
	err := s.File.Close()
	if s.name != "" {
		err = errors.Join(err, os.Remove(s.name))
	}
	return err
}
