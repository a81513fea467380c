// Package usage reports what this process uses. Families limit CPU time, because the machine
// may be busy.
package usage

import "runtime/metrics"

// Allocated returns the bytes that were allocated so far.
func Allocated() uint64 { return read("/gc/heap/allocs:bytes") }

// Held returns the bytes of memory that the process holds.
func Held() uint64 {
	return read("/memory/classes/total:bytes") - read("/memory/classes/heap/released:bytes")
}

func read(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
