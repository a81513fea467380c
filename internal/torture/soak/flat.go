package soak

import (
	"fmt"
	"os"
	"runtime"
	"slices"
)

// sample is the resource use of a process after a round, with idle workers. -1 is unknown.
type sample struct {
	heap       int // reachable bytes
	goroutines int
	files      int   // open ones
	size       int64 // of the queue's file, in bytes
}

func (s sample) String() string {
	return fmt.Sprint(s.heap, s.goroutines, s.files, s.size)
}

func parseSample(text string) (s sample, err error) {
	_, err = fmt.Sscan(text, &s.heap, &s.goroutines, &s.files, &s.size)
	return s, err
}

// sample takes a sample.
func (l *life) sample() (s sample, err error) {
	info, err := os.Stat(l.path)
	if err != nil {
		return s, err
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s = sample{int(m.HeapAlloc), runtime.NumGoroutine(), -1, info.Size()}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		s.files = len(open)
	}
	return s, nil
}

// The limits of growth, between the medians of the first and of the last third of the
// samples. Single samples differ by timers, goroutines and pools.
const (
	heapFactor     = 1.25
	heapRoom       = 512 << 10 // bytes, for the runtime's own memory
	goroutinesRoom = 2
	sizeFactor     = 2

	// fewSamples is the minimum number of samples for a comparison of thirds.
	fewSamples = 24
	// warmUp is the divisor of the samples before buffers, pools and the file have their full
	// size.
	warmUp = 5
)

// flat requires that the resource use of a process does not grow.
func flat(samples []sample) error {
	if len(samples) < fewSamples {
		return nil
	}
	samples = samples[len(samples)/warmUp:]
	third := len(samples) / 3
	first, last := samples[:third], samples[len(samples)-third:]
	for _, use := range []struct {
		what string
		of   func(sample) int
		most func(int) int
	}{
		{"bytes of heap", func(s sample) int { return s.heap }, func(n int) int { return int(float64(n)*heapFactor) + heapRoom }},
		{"goroutines", func(s sample) int { return s.goroutines }, func(n int) int { return n + goroutinesRoom }},
		{"open files", func(s sample) int { return s.files }, func(n int) int { return n }},
	} {
		before, after := median(first, use.of), median(last, use.of)
		if after > use.most(before) {
			return fmt.Errorf("the process grows: it had %d %s, and after %d rounds it has %d", before, use.what, len(samples)-third, after)
		}
	}
	size := func(s sample) int { return int(s.size) }
	steady := median(first, size)
	for i, s := range samples {
		if size(s) > sizeFactor*steady {
			return fmt.Errorf("the file grows: it had %d bytes, and after %d rounds it has %d", steady, i, s.size)
		}
	}
	return nil
}

func median(samples []sample, of func(sample) int) int {
	all := make([]int, len(samples))
	for i, s := range samples {
		all[i] = of(s)
	}
	slices.Sort(all)
	return all[len(all)/2]
}
