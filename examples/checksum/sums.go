package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// sums is the log of finished sums, one line each. Add syncs a line before it returns, and so before
// its job is acked. A job that is killed in between runs again and adds the same line, which is
// harmless.
type sums struct {
	file *os.File

	mu     sync.Mutex
	size   int64             // synced bytes
	byPath map[string]string // synced sums
	next   *flush            // lines for the next sync
	busy   bool              // a sync is running
	broken error             // of a failed sync, after which the file cannot be trusted
}

// flush is a group of lines that one sync makes durable.
type flush struct {
	lines bytes.Buffer
	added map[string]string
	done  chan struct{}
	err   error
}

func newFlush() *flush {
	return &flush{added: make(map[string]string), done: make(chan struct{})}
}

// openSums reads the sums of an earlier run. It removes an incomplete last line, which no acked job
// relies on.
func openSums(path string) (*sums, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	s := &sums{file: f, byPath: make(map[string]string), next: newFlush()}
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	for line := range bytes.Lines(b) {
		path, sum, ok := parseLine(string(line))
		if !ok {
			break
		}
		s.byPath[path] = sum
		s.size += int64(len(line))
	}
	if err := errors.Join(f.Truncate(s.size), syncFolder(filepath.Dir(path))); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

func (s *sums) Close() error { return s.file.Close() }

// Add returns when the sum is on disk. Concurrent calls share a sync.
func (s *sums) Add(path, sum string) error {
	s.mu.Lock()
	f := s.next
	f.lines.WriteString(formatLine(path, sum))
	f.added[path] = sum
	if s.busy {
		s.mu.Unlock()
		<-f.done
		return f.err
	}
	s.busy = true
	for s.next.lines.Len() > 0 {
		group := s.next
		s.next = newFlush()
		size, err := s.size, s.broken
		s.mu.Unlock()
		if err == nil {
			// The next write overwrites a failed one.
			_, err = s.file.WriteAt(group.lines.Bytes(), size)
		}
		var unsynced error
		if err == nil {
			unsynced = s.file.Sync()
			err = unsynced
		}
		s.mu.Lock()
		s.broken = errors.Join(s.broken, unsynced)
		if group.err = err; err == nil {
			s.size += int64(group.lines.Len())
			maps.Copy(s.byPath, group.added)
		}
		close(group.done)
	}
	s.busy = false
	s.mu.Unlock()
	return f.err
}

// sha256Of returns the sum of a file. It stops when ctx ends.
func sha256Of(ctx context.Context, path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no longer a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, stopReader{ctx, f}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// stopReader fails when its context ends.
type stopReader struct {
	ctx context.Context
	r   io.Reader
}

func (s stopReader) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.r.Read(p)
}

// formatLine formats a line as sha256sum does: escaped paths begin with a backslash.
func formatLine(path, sum string) string {
	escaped := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(path)
	mark := ""
	if escaped != path {
		mark = `\`
	}
	return mark + sum + "  " + escaped + "\n"
}

// parseLine is the inverse of formatLine.
func parseLine(line string) (path, sum string, ok bool) {
	line, complete := strings.CutSuffix(line, "\n")
	line, escaped := strings.CutPrefix(line, `\`)
	sum, path, found := strings.Cut(line, "  ")
	if _, err := hex.DecodeString(sum); !complete || !found || err != nil || len(sum) != 2*sha256.Size || path == "" {
		return "", "", false
	}
	if escaped {
		path = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace(path)
	}
	return path, sum, true
}

// writeManifest writes all sums, sorted by path.
func writeManifest(path string, byPath map[string]string) error {
	var b bytes.Buffer
	for _, p := range slices.Sorted(maps.Keys(byPath)) {
		b.WriteString(formatLine(p, byPath[p]))
	}
	return replaceFile(path, b.Bytes())
}

// replaceFile writes a file atomically.
func replaceFile(path string, content []byte) (err error) {
	temp := path + ".new"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
