package faults

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/gopawl/pawl/internal/torture/harness"
)

// Syncs makes each sync of one run fail in turn. Consecutive seeds try all faults.
var Syncs = &harness.Family{
	Name:  "syncs",
	Goals: "R4",
	Method: "every sync of a run fails, alone, with all until the next open, or followed by a failing call of " +
		"that open; nothing is acknowledged after it, nothing is built on what it left, and the next open " +
		"repairs the file",
	Unit: "failed syncs",
	PR:   syncsOfScript, Nightly: syncsOfScript, Share: 40, Parallel: 4,
	Missing: missingSupervision,
	Prepare: eachFault(syncsOfScript, func(ctx context.Context, every []at) ([]at, error) {
		all := syncFaults(every)
		more, err := wayBackFaults(ctx, all)
		return append(all, more...), err
	}),
}

// syncsOfScript is an upper bound of the faults in the script's syncs.
const syncsOfScript = 1_100

// syncFaults returns the faults of a run's syncs.
func syncFaults(every []at) (all []at) {
	for _, a := range every {
		if !isSync(a.call) || a.errno != syscall.EIO {
			continue
		}
		all = append(all, a)
		if a.file == queueName { // the queue has a file that can be opened again
			more := fault{name: "input/output error, also of all syncs until the next open", errno: syscall.EIO, lasting: true}
			all = append(all, at{a.n, a.call, more, nil})
		}
	}
	return all
}

// wayBackFaults returns double faults: a sync of the queue's file during the run, and a call
// of the open that repairs the file. Only every eighth read of that open is included.
func wayBackFaults(ctx context.Context, syncs []at) (all []at, err error) {
	var firsts []at
	for _, a := range syncs {
		if a.kind == "fdatasync" && a.file == queueName && !a.lasting && a.errno == syscall.EIO {
			firsts = append(firsts, a)
		}
	}
	for _, first := range firsts[len(firsts)/2:][:2] { // a sync of pages, and one of a meta page
		p := &injection{at: first, index: -1, again: -1}
		r, err := runScript(ctx, fixedScript, p.plan)
		if err != nil {
			return nil, err
		}
		if p.again < 0 {
			return nil, fmt.Errorf("%s: the script did not open the queue again", first)
		}
		for n, c := range repairCalls(r.calls[p.again:]) {
			if c.kind == "pread64" && n%8 != 0 {
				continue // there are hundreds, one for each page
			}
			for _, f := range faultsOf(c.kind) {
				a := first
				a.then = &later{n, c, f}
				if !f.part { // only the first fault can be partial
					all = append(all, a)
				}
			}
		}
	}
	return all, nil
}

// repairCalls returns the calls of an open until the first write to the file that replaced
// the damaged one, and none without a replacement.
func repairCalls(calls []call) []call {
	replaced := false
	for n, c := range calls {
		replaced = replaced || c.kind == "renameat" && c.to == queueName
		if replaced && c.kind == "pwrite64" {
			return calls[:n]
		}
	}
	return nil
}

func isSync(c call) bool { return c.kind == "fsync" || c.kind == "fdatasync" }

// builtOn finds violations after the failed sync n: a write to the queue's file before
// another file has replaced it, or a name for an unfinished file.
func (r *ran) builtOn(n int) error {
	failed := r.calls[n]
	if !isSync(failed) {
		return nil
	}
	for _, c := range r.calls[n+1:] {
		switch c.kind {
		case "linkat", "renameat":
			if c.file == failed.file && failed.file != "" {
				return fmt.Errorf("%s got the name %s after its sync had failed", c.file, c.to)
			}
			if c.to == failed.file {
				return nil
			}
		case "pwrite64", "write", "ftruncate":
			if c.file == failed.file {
				return fmt.Errorf("%s was written to after its sync had failed", c.file)
			}
		}
	}
	return nil
}

// reported requires that a failed sync of the queue's file reached a caller, or the next open
// by a marker. Marked reports whether there is a marker now.
func (r *ran) reported(n int, h *childReport, marked bool) error {
	if !isSync(r.calls[n]) || r.calls[n].file != queueName || marked ||
		h.notes[poisoned]+h.notes[openRefused]+h.notes[closeRefused] > 0 {
		return nil
	}
	for _, c := range r.calls[n:] {
		if c.kind == "renameat" && c.to == queueName {
			return nil
		}
	}
	return errors.New("a failed sync of the queue's file was not reported")
}

// extra returns the files whose names start with the name of the queue's file: markers.
func extra(dir string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, queueName+"?*"))
	return names
}
