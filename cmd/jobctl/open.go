package main

import (
	"fmt"
	"os"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// openToWrite opens the file to change it, and says what the open itself has changed.
//
// It takes back every lease in the file: the file's lock proves that the process which
// held them is gone, and whoever opens it next, this tool or the app, finds the same
// orphans and makes them ready. It counts one crash for each, as the app would. The
// crash cap is the app's to set and not known here, so none is applied: no job dies
// because an operator looked after another. What was cancelled, or is past its deadline,
// dies as it would for the app.
func (a *app) openToWrite() (*bolt.Queue, error) {
	if _, err := os.Stat(a.flags.db); err != nil { // bolt.Open would create it
		return nil, err
	}
	found := orphans{recovered: make(map[pawl.ID]bool)}
	q, err := bolt.Open(a.flags.db, &bolt.Options{
		MaxCrashes: bolt.NoMaxCrashes,
		Logger:     hclog.NewNullLogger(), // errors come back to us
		Now:        a.now,
		OnEvent:    found.hear,
	})
	if err != nil {
		return nil, err
	}
	ready, dead := found.count()
	if ready > 0 {
		a.say("note: %s whose process had ended: ready again too", plural(ready, "leased job"))
	}
	if dead > 0 {
		a.say("note: %s whose process had ended: dead now (cancelled, or past a deadline)", plural(dead, "leased job"))
	}
	return q, nil
}

// orphans counts the jobs whose leases an open takes back.
type orphans struct {
	mu        sync.Mutex
	recovered map[pawl.ID]bool // and whether they died of it
}

func (o *orphans) hear(e pawl.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch e.Type {
	case pawl.EventRecovered:
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
	return ready, dead
}

// convert brings a file of an older release to the format of this one, as every open to
// write does. Since the older release cannot open it from then on, that takes a yes: on
// a terminal, or by -y.
func (r *retry) convert(a *app) error {
	switch {
	case r.yes:
	case !a.terminal || a.flags.output != "table":
		return &failure{exitFormat, fmt.Sprintf("%s has the format of an older release, and a retry converts it", a.flags.db),
			"Add -y to have that; the older release cannot open it from then on."}
	default:
		a.say("%s has the format of an older release. A retry converts it; the older release\ncannot open it from then on.", a.flags.db)
		if !a.confirm("Convert it?") {
			return notConfirmed()
		}
	}
	q, err := a.openToWrite()
	if err != nil {
		return err
	}
	r.converted = true
	a.say("note: %s was converted to the format of this release", a.flags.db)
	return q.Close()
}

func notConfirmed() error { return &failure{exitError, "not confirmed, nothing was changed", ""} }
