package core

import (
	"fmt"
	"runtime/debug"

	"github.com/gopawl/pawl/driver"
)

// Careful turns a panic of a half of a mutation into an error: it runs on a goroutine of the queue.
func Careful(half func() error) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("mutation panicked: %v\n\n%s", panicked, debug.Stack())
		}
	}()
	return half()
}

// DeleteSpan is the DeleteSpan of a writer that removes rows one by one.
func DeleteSpan(w driver.Writer, t *driver.Table, s driver.Span, size int) (n, removed int, err error) {
	var keys [][]byte
	if size > 0 {
		err = w.Scan(t, s, func(key, value []byte) bool {
			keys = append(keys, key)
			removed += len(key) + len(value)
			return removed < size
		})
	}
	if err != nil {
		return 0, 0, err
	}
	for _, key := range keys {
		if err := w.Delete(t, key); err != nil {
			return n, removed, err
		}
		n++
	}
	return n, removed, nil
}
