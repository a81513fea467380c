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

// mostCents is the largest sum that the bank lends.
const mostCents = 1000_00

var errDeclined = errors.New("the bank declined")

// world stands for the stock, the bank and the courier: other people's services, which do
// not share a transaction with the program. It is a file to which a line is added for each
// effect. All that it knows of a caller is the key that a call brings: a call whose key it
// has had changes nothing and gives the same answer, as payment services do.
type world struct {
	file *os.File

	mu   sync.Mutex
	size int64           // of the whole lines
	had  map[string]bool // keys
}

// openWorld reads what was done. A line that was being written when the machine stopped is
// cut off.
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
	whole := b[:bytes.LastIndexByte(b, '\n')+1]
	for line := range strings.Lines(string(whole)) {
		key, _, _ := strings.Cut(line, " ")
		w.had[key] = true
	}
	w.size = int64(len(whole))
	if err := f.Truncate(w.size); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return w, nil
}

func (w *world) Close() error { return w.file.Close() }

// call does something for an order, once for each key, and returns a number to quote. When
// it returns nil the effect is there to stay.
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
