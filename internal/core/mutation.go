package core

import (
	"fmt"
	"runtime/debug"

	"github.com/gopawl/pawl/driver"
)

// Careful calls one half of a mutation, Check or Apply, and turns a panic into an error. The panic
// would end the process, since the half runs on a goroutine of the queue.
func Careful(half func() error) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("mutation panicked: %v\n\n%s", panicked, debug.Stack())
		}
	}()
	return half()
}

// DeleteSpan implements the method DeleteSpan for a writer that removes rows one by one.
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
