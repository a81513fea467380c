package offline

import (
	"fmt"
	"os"
	"sync"

	"github.com/gopawl/pawl"
)

// noticeChanges reports what opening for writing has changed.
func (f *File) noticeChanges(before os.FileInfo, found *orphans) {
	if after, err := os.Stat(f.path); err == nil && !os.SameFile(before, after) {
		f.opts.Notice("a sync had failed when the file was last open: it was replaced by a copy of all that was acknowledged")
	}
	ready, dead := found.count()
	f.took = ready + dead
	if ready > 0 {
		f.opts.Notice(leases(ready) + " whose process had ended: ready again too")
	}
	if dead > 0 {
		f.opts.Notice(leases(dead) + " whose process had ended: dead now (cancelled, or past a deadline)")
	}
}

func leases(n int) string {
	if n == 1 {
		return "1 leased job"
	}
	return fmt.Sprintf("%d leased jobs", n)
}

// orphans counts the jobs whose leases opening recovers.
type orphans struct {
	mu        sync.Mutex
	recovered map[pawl.ID]bool // whether each became dead; nil once they are counted
	counted   bool
}

func (o *orphans) hear(e pawl.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.counted {
		return
	}
	switch e.Type {
	case pawl.EventRecovered:
		if o.recovered == nil {
			o.recovered = make(map[pawl.ID]bool)
		}
		o.recovered[e.Job.ID] = false
	case pawl.EventDied:
		if _, ok := o.recovered[e.Job.ID]; ok {
			o.recovered[e.Job.ID] = true
		}
	}
}

func (o *orphans) count() (ready, dead int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, died := range o.recovered {
		if died {
			dead++
		} else {
			ready++
		}
	}
	o.recovered, o.counted = nil, true
	return ready, dead
}
