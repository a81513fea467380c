package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bench/report"
	"github.com/gopawl/pawl/bench/system"
)

// opening times what an app waits for when it starts.
func opening(t *trial) error {
	dir := filepath.Join(t.dir, "queue")
	err := t.onPawl(dir, func(q *system.PawlQueue) error { return t.store(t.million, q.EnqueueAll) })
	if err != nil {
		return err
	}
	var all []opened
	open := func(metric, dir string) error {
		o, err := t.open(dir)
		all = append(all, o)
		t.report(metric, report.Milli(o.took), milliseconds)
		return err
	}
	if err := open("clean-warm", dir); err != nil {
		return err
	}
	// A process that was killed leaves two things to do: to find the free pages, and to
	// take back what it had leased. The first kill leaves the first alone.
	for _, killed := range []struct {
		metric string
		leased int
	}{{"killed-unleased", 0}, {"killed", t.million / 10}} {
		if err := t.killed(dir, killed.leased); err != nil {
			return err
		}
		// Each time on a copy, since opening repairs what the kill left.
		for _, state := range []struct {
			name    string
			prepare func(path string) error
		}{{"warm", readWhole}, {"cold", dropCache}} {
			sub := filepath.Join(t.dir, killed.metric+"-"+state.name)
			path, err := copyQueue(sub, dir)
			if err == nil {
				err = state.prepare(path)
			}
			if errors.Is(err, errors.ErrUnsupported) {
				continue
			}
			if err == nil {
				err = open(killed.metric+"-"+state.name, sub)
			}
			if err = errors.Join(err, os.RemoveAll(sub)); err != nil {
				return err
			}
		}
	}
	most := func(of func(opened) float64) float64 {
		return of(slices.MaxFunc(all, func(a, b opened) int { return cmp.Compare(of(a), of(b)) }))
	}
	t.report("recovered", most(func(o opened) float64 { return report.Milli(o.recovered) }), milliseconds)
	t.report("heap", most(func(o opened) float64 { return o.heap }), mebibytes)
	return nil
}

// opened is what one opening of a queue cost.
type opened struct {
	took      time.Duration
	recovered time.Duration // from then on until nothing was leased any more
	heap      float64       // MiB
}

func (t *trial) open(dir string) (o opened, err error) {
	before := heap()
	began := time.Now()
	q, err := system.OpenPawl(dir)
	o.took = time.Since(began)
	if err != nil {
		return o, err
	}
	err = until(t.ctx, q, func(c pawl.Counts) bool { return c.Leased == 0 })
	o.recovered = time.Since(began) - o.took
	o.heap = report.MiB(max(0, heap()-before))
	return o, errors.Join(err, q.Close())
}

// heap is what is left of it after a collection. The second one takes what the first
// left to finalizers and pools.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// killed leaves the queue in a folder as a process leaves it that was killed while it
// had leased so many jobs.
func (t *trial) killed(dir string, leased int) error {
	p, err := t.start(roleLease, dir, fmt.Sprint(leased))
	if err != nil {
		return err
	}
	p.kill()
	return nil
}

// copyQueue copies the file of a queue to a new folder and syncs it.
func copyQueue(to, from string) (path string, err error) {
	if err := os.Mkdir(to, 0o755); err != nil {
		return "", err
	}
	in, err := os.Open(filepath.Join(from, system.PawlFile))
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(to, system.PawlFile))
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return out.Name(), errors.Join(err, out.Close())
}

// readWhole brings a file into the page cache.
func readWhole(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err
}
