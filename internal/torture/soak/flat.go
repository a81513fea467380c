package soak

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
)

// sample is the resource use of a process after a round, with idle workers. -1 is unknown.
type sample struct {
	heap       int // reachable bytes
	goroutines int
	files      int   // open files
	used       int   // bytes of the queue's file, without its free pages
	size       int64 // size of the queue's file, in bytes
}

func (s sample) String() string {
	return fmt.Sprint(s.heap, s.goroutines, s.files, s.used, s.size)
}

func parseSample(text string) (s sample, err error) {
	_, err = fmt.Sscan(text, &s.heap, &s.goroutines, &s.files, &s.used, &s.size)
	return s, err
}

// sample takes a sample.
func (l *life) sample(ctx context.Context) (s sample, err error) {
	stats, err := l.q.Stats(ctx)
	if err != nil {
		return s, err
	}
	info, err := os.Stat(l.path)
	if err != nil {
		return s, err
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s = sample{int(m.HeapAlloc), runtime.NumGoroutine(), -1, int(stats.Size - stats.Free), info.Size()}
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
	usedFactor     = 1.25
	usedRoom       = 64 << 10 // bytes that a compaction would save

	// mostSize is the limit of every single sample of the file's size, in bytes. A file grows to
	// the largest backlog since it was compacted. A machine that stalls makes a backlog of a
	// whole round, which takes up to 5 MiB.
	mostSize = 16 << 20

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
		{"bytes in the file", func(s sample) int { return s.used }, func(n int) int { return int(float64(n)*usedFactor) + usedRoom }},
	} {
		before, after := median(first, use.of), median(last, use.of)
		if after > use.most(before) {
			return fmt.Errorf("the process grows: it had %d %s, and after %d rounds it has %d", before, use.what, len(samples)-third, after)
		}
	}
	for i, s := range samples {
		if s.size > mostSize {
			return fmt.Errorf("the file grows: after %d rounds it has %d bytes, and the jobs of a round need a third of that", i, s.size)
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
