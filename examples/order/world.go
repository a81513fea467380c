package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// maxCents is the largest amount that the bank accepts.
const maxCents = 1000_00

var errDeclined = errors.New("the bank declined")

// world stands in for the stock, the bank and the courier: services of others, which do not share a
// transaction with the program. It is a file with a line for each effect. Like payment services, it
// answers a call with a known key without another effect.
type world struct {
	file *os.File

	mu   sync.Mutex
	size int64           // of complete lines
	had  map[string]bool // known keys
}

// openWorld reads the effects and removes an incomplete last line.
func openWorld(path string) (*world, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	w := &world{file: f, had: make(map[string]bool)}
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	lines := b[:bytes.LastIndexByte(b, '\n')+1]
	for line := range strings.Lines(string(lines)) {
		key, _, _ := strings.Cut(line, " ")
		w.had[key] = true
	}
	w.size = int64(len(lines))
	if err := f.Truncate(w.size); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return w, nil
}

func (w *world) Close() error { return w.file.Close() }

// call does something for an order, once for each key, and returns a number for reference. When it
// returns nil the effect is durable.
func (w *world) call(key, what, order string) (number string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	number = fmt.Sprintf("%s/%s", what, order)
	if w.had[key] {
		return number, nil
	}
	line := fmt.Sprintf("%s %s %s\n", key, what, order)
	if _, err := w.file.WriteAt([]byte(line), w.size); err != nil {
		return "", err
	}
	if err := w.file.Sync(); err != nil {
		return "", err
	}
	w.size += int64(len(line))
	w.had[key] = true
	return number, nil
}
